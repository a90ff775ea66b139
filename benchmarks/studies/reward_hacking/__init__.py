"""Do rewards pay spam? Trivial policies, the arithmetic of spam, and GRPO begun from spam.

policies.py ─► earnings.py ─► disagreements.py                       what trivial policies earn, and their worth
guesses.py ─► states.py ─► gradients.py ─► arithmetic.py             one state: expected rewards, where GRPO ends
certainty.py                                                         what self-certainty alone can pay
training.py ─► trained.py                                            a tiny model taught to spam, then GRPO
tables.py, plots.py                                                  hacking.md and the pictures
"""
