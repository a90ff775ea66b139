"""The papers' tables: trained here, and printed beside what was published (python -m benchmarks.paper).

published.py (tables/*.toml) ─► runs.py ─► ../training_runs.py ─► records ─► orders.py, result.py ─► written.py, plot.py
"""
