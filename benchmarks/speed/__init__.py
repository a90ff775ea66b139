"""Measures the speed of the env, the reward, the simplifier, training and sampling, beside usual implementations."""
