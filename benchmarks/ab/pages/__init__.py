"""Predicts the effect of a change of any shop's pages: agents answer logged steps on the original and the changed page.

change.py       loads a change (a TOML file of rules, or a function) that turns a page of A into that of B
touched.py      finds the logged steps that the change touches, and builds what an agent sees on A, B and the placebo
answers.py      runs agents on these steps and saves their answers
shifts.py       computes shares of kinds of action, and tests whether a share differs
question.py     runs all of this
report.py       formats tables and sentences
"""
