"""What `python -m agents new` writes: running agents and their test, under the names that authors choose."""
