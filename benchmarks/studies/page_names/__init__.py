"""How good simplified pages are: names that need no number, names that stay, and what a browser shows."""
