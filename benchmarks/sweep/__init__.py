"""Sweeps: runs over seeds and stores, pooled into one table; the papers' tables with the published values beside ours.

file.py (a .toml, papers/*.toml) ─► runs.py, processes.py ─► pooling.py, result.py, orders.py ─► written.py
"""
