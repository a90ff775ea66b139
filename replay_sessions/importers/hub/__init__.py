"""Stores as data sets of the Hugging Face hub: written, read back, fetched at a pinned revision."""
