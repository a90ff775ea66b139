"""Speed of the env, the reward, the simplifier, training and sampling, beside the usual ways to do the same."""
