"""The A/B lab: simulated shoppers answer a test whose true answer is known."""
