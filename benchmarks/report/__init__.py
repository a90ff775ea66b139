"""One HTML file that shows what a training run or a leaderboard found, and a viewer for every session behind it.

    RUN | BOARD ─► evidence.py ─► step_figures.py ──────────────┐
    store ─► session_data.py (deduplicated, deflated) ──────────┤
    metrics.jsonl ─► train/curves.py ───────────────────────────┤
              page.py, templates/ (the file; plots, --tables) ◄─┘

No agent runs again: figures are those of results.json, counted anew from the saved replies and compared. The file
needs no network and no other file.
"""
