"""Removes private data from pages and sessions by reliable signs: a value's form, its place, the name of its field.

    patterns.py         finds values that are private by their form: e-mail addresses, phone, card, account, tax numbers
    fields.py           recognizes form fields and URL parameters by their names
    urls.py             cleans page URLs: credentials, parameters, patterns
    removal.py          applies all of these to texts and simplified pages
    customers.py        reads a shop's table of customers and derives the forms of their values on pages
    customer_values.py  removes the values of a session's own user
    ner.py              loads a function of the user that finds names

The simplifier leaves out the content of places that a recipe calls `private`. Nothing else changes a page:
names of people and postal addresses that no table of customers holds stay (docs/privacy.md).
"""

from replay_sessions.private_data.fields import kind_of_field
from replay_sessions.private_data.patterns import find_private_data
from replay_sessions.private_data.removal import (
    kinds_in_page,
    kinds_in_text,
    kinds_in_url,
    remove_from_page,
    remove_from_text,
    remove_from_url,
)
from replay_sessions.private_data.urls import without_credentials

__all__ = [
    "find_private_data",
    "kind_of_field",
    "kinds_in_page",
    "kinds_in_text",
    "kinds_in_url",
    "remove_from_page",
    "remove_from_text",
    "remove_from_url",
    "without_credentials",
]
