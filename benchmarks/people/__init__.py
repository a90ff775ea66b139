"""Is an agent like people, beyond how often it is right? All metrics of people.py and skill.py, of one run.

evidence (benchmarks.report) ─► measuring.py ─► tables.py ─► people.json, people.md
"""
