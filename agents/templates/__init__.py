"""What `python -m agents new` writes: parts that run, and their tests, under the names that authors choose."""
