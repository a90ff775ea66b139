"""Floors: agents that learn from the train split by counting and by classic models, without a language model.

    choices.py   what a floor sees of a step          floor.py   what all of them have in common
    context_majority.py  ngram.py  nearest.py  logistic.py  boosting.py          one floor each

What a language model adds over the best of them is what it adds. All give probabilities, so that NLL exists for them:

    python -m benchmarks.leaderboard --agents floors,copy_match,random --likelihood --out runs/floors
"""
