"""Writes a training run or a leaderboard as one HTML file: metrics, plots, and a viewer for every session.

    RUN | BOARD ─► evidence.py ─► step_tables.py ───────────────┐
    store ─► session_data.py (deduplicated, deflated) ──────────┤
    metrics.jsonl ─► curves.py ─────────────────────────────────┤
              page.py, templates/ (the file; plots, --tables) ◄─┘

No agent is run. The metrics are those of results.json, after a comparison with those computed from the saved replies.
The file needs no network and no other file.
"""
