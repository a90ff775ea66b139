"""The leaderboard: agents against the same logged steps, with intervals, provenance and replies to check them by.

ranking.py    configuration ─► evaluation log, table
compare.py    two agents on the same steps
verify.py     everything recomputed and compared; what verifies is recorded

shop-r1 rank --agents random,majority,oracle --store demo --split test --out runs/leaderboard
"""

from benchmarks.leaderboard.ranking import rank

__all__ = ["rank"]
