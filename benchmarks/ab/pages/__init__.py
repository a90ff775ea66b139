"""A change of any shop's pages: agents answer logged steps on the page as it was, and as changed.

change.py       a TOML of rules, or a function -> the page of B
touched.py      which logged steps the change touches, and what an agent sees there on A, on B and on a placebo
answers.py      runs agents on them and keeps what they answer
shifts.py       counts answers as shares of kinds of action, and whether a share differs by more than chance
report.py       tables and sentences
"""
