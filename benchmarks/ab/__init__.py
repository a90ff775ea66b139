"""The A/B lab: agents predict the effect of a change of the demo shop, where the true effect is known."""
