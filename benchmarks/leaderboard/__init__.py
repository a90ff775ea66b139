"""The leaderboard ranks agents on the same logged steps, with intervals, provenance and the replies to verify them.

ranking.py      runs a leaderboard: configuration ─► evaluation log, table
compare.py      compares two agents on the same steps
verify.py       recomputes everything and compares; records what matches
spot_checks.py  runs agents again to check that the replies are theirs

shop-r1 rank --agents random,majority,oracle --store demo --split test --out runs/leaderboard
"""

from benchmarks.leaderboard.ranking import rank

__all__ = ["rank"]
