"""What agents that learnt from real shoppers are worth, on shops whose pages are rendered from events.

effects.py       does what agents predict follow place and price as the clicks of later months do? (logit.py)
sim_to_real.py   is a model that learnt from an agent's simulated sessions as good on people as one that learnt from
                 people's? (logged_shop.py lets agents run freely, predictors.py is what is trained)
references.py    agents to compare with; samples.py draws the sessions of both
"""
