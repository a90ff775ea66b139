"""The tables of the docs: recorded results, the help of every command, the keys of a training run.

__main__.py    writes the tables of recorded results into README.md and docs
hook.py        for mkdocs: fills the tables that say what the code says, as `make docs` builds the site
"""
