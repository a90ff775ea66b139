"""How an import is run: in parts, by many processes, ending in order when stopped."""
