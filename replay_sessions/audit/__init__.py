"""Can a store be trusted? One pass over its sessions, what was found, and a store without what is at fault."""
