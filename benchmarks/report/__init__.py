"""One HTML file that shows what a training run or a leaderboard found, and a viewer for every session behind it.

    RUN | BOARD ─► evidence.py (training_run.py, leaderboard_run.py) ─► judged_steps.py
                ─► comparisons.py, step_figures.py, calibration.py ─► tables.py ─┐
    store ─► session_data.py ─► packing.py (deduplicated, deflated) ─────────────┤
    metrics.jsonl ─► curves.py ──────────────────────────────────────────────────┤
                                                 page.py, templates/ (the file) ◄┤
                                                 table_files.py (--tables) ◄─────┘

Nothing is asked again: figures are those of results.json, counted anew from the kept replies and compared. The file
needs no network and no other file.
"""
