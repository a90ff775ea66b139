"""Agents without a model: what a trained policy has to beat, and, on the demo shop, what none can."""
