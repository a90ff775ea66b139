"""Rollout engines, which sample replies to prompts."""
