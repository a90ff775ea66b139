"""People as agents: a person predicts a shopper's next action on a local page, and is ranked like any other agent.

recording.py      the folder of predictions, and the agent `human`   sitting.py   one person's steps, in their order
introduction.py   consent and practice, which come before them       server.py    the local page over HTTP
page/             the page's files                                   __main__.py  the commands; how far people agree

python -m agents.human --store demo --sessions 5 --person ada --out runs/people
python -m agents.human agreement runs/people
python -m benchmarks.leaderboard --agents "ada=human?replies=runs/people&person=ada,oracle" --sessions 5 --out runs/b
"""

__all__ = ["HumanAgent"]

from agents.human.recording import HumanAgent
