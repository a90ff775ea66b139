"""Agents without a language model: fixed rules, and classic models that are fitted to the train split.

rules.py         random, majority, repeat_last, copy_match; oracle, the demo shop's own policy
choices.py       reads an observation as a page of choices, the input of fitted models
fitted.py        the base class of fitted models; context_majority, ngram
page_counts.py   page_counts, step_number, history_*: counts of next actions and of session lengths (witten_bell.py)
classifiers.py   logistic, boosting, boosted_choice (scikit-learn: the extra `baselines`)
choice_model.py  choice, a conditional logit over the facts of facts.py, which reads offers.py
coefficients.py  the effects of prices, ratings and places according to `choice`
"""
