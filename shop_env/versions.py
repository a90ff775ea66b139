"""Versions of the scores' meaning: records of different versions are never compared, ranked or reused together.

A change that could move a score raises one of these numbers, and the CHANGELOG says what moved.
"""

from typing import Final

SCORING_VERSION: Final = 3
"""Version of reading and scoring a reply: observations, prompts, extraction, reward (the env's is in its id)."""

METRICS_VERSION: Final = 8
"""Version of computing metrics from records: the steps that count, the metrics in a table, formulas, clusters."""
