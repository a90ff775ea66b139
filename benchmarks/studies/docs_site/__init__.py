"""What the pages of the site hold beyond their own text: written from the code as `make docs` builds them.

hook.py        for mkdocs: fills the tables that a page of docs/ names by <!-- table: NAME -->
commands.py    the help of every command
keys.py        every key of a training run; every field and metric of metrics.jsonl and results.json
"""
