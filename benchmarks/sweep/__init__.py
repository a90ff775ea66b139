"""Sweeps repeat runs over seeds and stores and pool them into one table, such as a paper's with its published values.

file.py (a .toml, papers/*.toml) ─► runs.py, processes.py ─► pooling.py, result.py, orders.py ─► written.py
"""
