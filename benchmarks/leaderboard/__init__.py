"""The leaderboard: agents against the same logged steps, with intervals, provenance and replies to check them by.

config.py         what a run is made of                ranking.py   ask, record, count, write the table
agent_files.py    where an agent's files lie           verify.py    everything made anew and compared
compare.py        two agents on the same steps

python -m benchmarks.leaderboard --agents random,majority,oracle --store demo --split test --out runs/leaderboard
"""

__all__: list[str] = []
