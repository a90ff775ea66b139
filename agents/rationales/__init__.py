"""Writes the rationales that a log lacks with a language model, as Shop-R1 (appendix B) and Customer-R1 do.

store ─► request.py (page and action ─► messages) ─► agents.prompting.chat ─► reply ─► rationale or NoRationale
      └► synthesis.py ─► a new version of the store, its steps with `rationale_source` ─► report.py

__main__.py      the command: shop-r1 rationales (its options: request.py)
"""
