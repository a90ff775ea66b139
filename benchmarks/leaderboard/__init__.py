"""The leaderboard: agents against the same logged steps, with intervals, provenance and replies to check them by.

ranking.py    configuration ─► evaluation log, table      verify.py       everything recomputed and compared
compare.py    two agents on the same steps                submission.py   replies of other machines, recorded results

python -m benchmarks.leaderboard --agents random,majority,oracle --store demo --split test --out runs/leaderboard
"""
