"""The papers' tables: trained here, and printed beside what was published (python -m benchmarks.paper).

published.py (tables/*.toml) ─► training.py ─► records ─► figures.py, orders.py ─► result.py ─► written.py, plot.py
"""
