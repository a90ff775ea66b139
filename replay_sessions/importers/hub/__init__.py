"""Reads exported stores from data sets of the Hugging Face hub, at a pinned revision."""
