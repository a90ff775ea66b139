"""Benchmarks: rank agents, repeat the papers' tables, measure speed."""
