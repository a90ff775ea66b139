"""Does the reward pay what is worth nothing? Trivial policies, the arithmetic of spam, and GRPO begun from spam.

policies.py ─► earned.py ─► disagreements.py        what trivial policies earn on a store, beside what they are worth
certainty.py                                        what self-certainty alone can pay
guesses.py ─► states.py ─► direction.py ─► ends.py    one state: expected rewards, where GRPO goes, where it ends
                       └─► leaving.py                the same over DARS × τ × mixes of actions
training.py                                         a tiny model taught to spam, then GRPO: does it leave?
answer.py, report.py, plots.py                      all of it in sentences, tables and pictures
"""
