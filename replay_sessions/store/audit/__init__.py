"""Audits whether a store can be trusted: one pass over its sessions, the findings, and a repair."""
