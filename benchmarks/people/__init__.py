"""Is an agent like people, beyond how often it is right? All figures of shop_env/metrics/people and skill, of one run.

evidence (benchmarks.report) ─► measuring.py ─► tables.py ─► people.json, people.md
"""
