"""Training: SFT and GRPO on session trees."""
