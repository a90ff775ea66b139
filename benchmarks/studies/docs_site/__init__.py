"""What the pages of the site hold beyond their own text: written from the code as `make docs` builds them.

hook.py        for mkdocs: fills the tables that a page of docs/ names by <!-- table: NAME -->
commands.py    the help of every command
"""
