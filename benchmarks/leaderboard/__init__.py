"""The leaderboard: agents against the same logged steps, with intervals, provenance and records to check them by.

config.py    what a run is made of               run.py      agents -> records -> rows -> files
records.py   an agent's records on disk          verify.py   figures recomputed from the records
compare.py   two agents on the same steps        __main__.py the command line

python -m benchmarks.leaderboard --agents random,majority,oracle --store demo --split test --out runs/leaderboard
"""

__all__: list[str] = []
