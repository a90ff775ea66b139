"""How often tests of a difference err, on simulated agents whose difference is known.

error_rates.py  pairs of simulated agents, and how often each test finds a difference; the percentile bootstrap over
                users, and the exact test by swapping agents
__main__.py     the command
"""
