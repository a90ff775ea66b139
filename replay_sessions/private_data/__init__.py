"""Private data out of pages and sessions, by what can be relied on: form, place and the names of fields.

    patterns.py    values that prove by their form to be private: e-mail addresses, phone, card, account, tax numbers
    fields.py      form fields and parameters that are called after what they hold
    urls.py        addresses of pages: credentials, parameters, patterns
    removal.py     texts and simplified pages without all of these
    customers.py   what a shop knows of its customers, in the forms in which it stands on pages
    own_values.py  sessions without what is known of their own user
    ner.py         adapters for models that find names

What stands in the places that a recipe calls `private` the simplifier leaves out. Nothing else changes a page:
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
