"""`python -m train.show`: a run's curves as figures and as a table.

metrics.jsonl of one or more runs ─► curves (per phase and figure) ─► panels ─► PNG and SVG, and a table
"""
