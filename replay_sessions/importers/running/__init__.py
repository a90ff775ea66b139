"""Runs an import in parts, with several processes, and with results in order."""
