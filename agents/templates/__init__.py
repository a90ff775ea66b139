"""Templates that `shop-r1 new` writes: parts that run, and their tests, under the names that authors choose."""
