"""GRPO on session trees (Shop-R1, section 3, equation 4)."""
