"""Rationales that a log lacks, written by a language model: the synthesis step of Shop-R1 (appendix B) and Customer-R1.

store ─► request.py (page and action ─► messages) ─► agents.prompting.chat ─► reply ─► rationale | why there is none
      └► synthesis.py ─► a new version of the store, its steps with `rationale_source` ─► report.py

__main__.py      the command: shop-r1 rationales (its options: request.py)
"""
