"""The leaderboard: agents against the same logged steps, with intervals, provenance and replies to check them by.

config.py         what a run is made of                ranking.py   ask, record, count, write the table
kept_replies.py   every reply, kept as it comes        verify.py    everything made anew and compared
agent_files.py    where an agent's files lie           compare.py   two agents on the same steps
agent_code.py     what an agent is made of

python -m benchmarks.leaderboard --agents random,majority,oracle --store demo --split test --out runs/leaderboard
"""

__all__: list[str] = []
