"""Logged shopping sessions at rest: records, stores, importers, the demo shop."""
