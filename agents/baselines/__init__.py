"""Agents without a language model: fixed rules, and classic models that are fitted to the train split.

rules.py        random, majority, repeat_last, copy_match; oracle, the demo shop's own policy
choices.py      what a fitted model sees of a step
fitted.py       what all fitted models share; context_majority, ngram
page_counts.py  page_counts, step_number, history_*: counts of what was done next, and of when sessions end
classifiers.py  logistic, boosting, boosted_choice (scikit-learn: the extra `baselines`)
choice_model.py choice, a conditional logit over facts.py, which reads offers.py
"""
