"""How an import is run: in parts, by many processes, going on where a killed one was, ending in order when stopped."""
