"""What would this change do? Simulated shoppers answer an A/B test whose true answer is known."""
