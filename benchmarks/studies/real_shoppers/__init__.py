"""What agents that learnt from real shoppers are worth, on shops whose pages are rendered from events.

effects.py       does what agents predict follow place and price as the clicks of later months do?
sim_to_real.py   is a model that learnt from an agent's simulated sessions as good on people as one that learnt from
                 people's? (logged_shop.py lets agents run freely)
shoppers.py      the sessions of both, and agents to compare with
"""
