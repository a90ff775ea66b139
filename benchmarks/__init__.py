"""Benchmarks: rank agents, repeat the papers' tables, measure speed."""

import os
import sys

# `python -m` looks into the current folder first, which may be one that somebody sent: its modules come last.
if sys.path[0] in ("", os.getcwd()) and os.getcwd() != os.path.dirname(os.path.dirname(__file__)):
    sys.path.append(sys.path.pop(0))
