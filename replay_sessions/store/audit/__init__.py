"""Can a store be trusted? One pass over its sessions, the findings, and a store without the sessions at fault."""
