"""What a browser shows of a page and what the simplifier keeps of it: built shop pages, and real ones.

pages/ ─► build (npm, Chromium) ─► built/FRAMEWORK/PAGE.html.gz ─┬─► browser: each control visible or hidden ─┬─► table
                                      ../shared/data/raw_pages ─┴─► simplify, at the same viewport ──────────┘
"""
