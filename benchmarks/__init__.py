"""Benchmarks that rank agents, repeat the papers' tables and measure speed."""

import os
import sys

# `python -m` searches the current folder first. That folder may come from a stranger, so it is searched last.
if sys.path[0] in ("", os.getcwd()) and os.getcwd() != os.path.dirname(os.path.dirname(__file__)):
    sys.path.append(sys.path.pop(0))
