"""Agents: whatever answers an observation with a reply."""
