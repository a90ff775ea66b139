"""What would this change of a shop's pages do? Agents answer logged steps on the page as it was, and as changed.

change.py       a TOML of rules, or a function -> the page of B; source_edits.py applies rules in a page's source
changed.py      which logged steps the change touches, and what an agent sees there on A, on B and on a placebo
answers.py      asks agents about them and keeps what they answer; shifts.py counts that as shares of actions
shifts.py       how much a share differs between two pages, over users, and whether that is more than chance
report.py       tables, sentences, a forest plot
"""
