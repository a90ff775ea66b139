"""How often tests of a difference err, on simulated agents whose difference is known.

worlds.py       pairs of simulated agents: the sums of each user's steps       __main__.py   the command
error_rates.py  how often each test finds a difference; the percentile bootstrap over users, and the exact test by
                swapping agents
"""
