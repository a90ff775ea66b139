"""Templates that `shop-r1 new` writes under names that authors choose: parts that run, and their tests."""
