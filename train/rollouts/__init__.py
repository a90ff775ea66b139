"""Engines that turn prompts into sampled replies."""
