"""Agents without a language model: fixed rules, and classic models that are fitted to the train split.

rules.py         random, majority, repeat_last, copy_match; oracle, the demo shop's own policy
fitted.py        the base class of fitted models; context_majority, ngram
page_counts.py   page_counts, step_number, history_*: counts of next actions and of session lengths (witten_bell.py)
session_knn.py   session_knn: the choices of the most similar sessions
classifiers.py   logistic, boosting, boosted_choice (scikit-learn: the extra `baselines`)
choice_model.py  choice, a conditional logit over the facts of an offer
coefficients.py  the effects of prices, ratings and places according to `choice`

Fitted models read an observation as a page of choices (shop_env/choices).
"""
