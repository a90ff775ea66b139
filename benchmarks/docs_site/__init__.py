"""Generates the tables of the docs: recorded results, the help of every command, the keys of a training run.

__main__.py    writes the tables of recorded results into README.md and docs
hook.py        fills the tables that come from the code, when `make docs` builds the site with mkdocs
"""
