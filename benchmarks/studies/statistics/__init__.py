"""How often tests of a difference err, on simulated agents whose difference is known.

worlds.py      pairs of simulated agents: the sums of each user's steps       __main__.py   the command
bootstrap.py   the percentile bootstrap over users      sign_flips.py    the exact test by swapping agents
error_rates.py how often each test finds a difference
"""
