"""What turns prompts into sampled replies."""
