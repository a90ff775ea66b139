"""How good the names of simplified pages are: those that need no number, and those that stay."""
