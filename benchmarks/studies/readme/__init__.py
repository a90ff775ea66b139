"""The README's tables, written from the recorded results and from nothing else."""
