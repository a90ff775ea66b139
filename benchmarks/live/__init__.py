"""Free running: agents walk through the demo shop by themselves, and are compared with its shoppers as a population.

figures.py   visits -> figures with intervals      __main__.py  agents -> visits -> figures -> files

python -m benchmarks.live --agents copy_match,runs/demo/shop_r1 --sessions 400 --out runs/live

No figure of this package stands in one table with those of the leaderboard, whose pages are the logged ones.
"""
