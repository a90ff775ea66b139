"""Evaluates agents: runs them on logged steps, stores and scores their replies, and compares them in tables."""
