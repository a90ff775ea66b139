"""Studies of the method itself, run in a checkout and left out of the wheel."""
