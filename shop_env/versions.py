"""Versions of what a score means: records made under other versions are never compared, ranked or reused together.

A change that could move a score raises one of them, and the CHANGELOG says what moved.
"""

from typing import Final

SCORING_VERSION: Final = 2
"""How a reply is read and what it earns: observations, prompts, extraction, reward (the env's number is in its id)."""

METRICS_VERSION: Final = 6
"""How records become figures: which steps count, which figures a table shows, formulas, clusters of intervals."""
