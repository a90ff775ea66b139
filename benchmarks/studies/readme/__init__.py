"""The README's tables, written from the recorded results alone."""
