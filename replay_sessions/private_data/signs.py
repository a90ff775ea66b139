"""How much says that a name is a person's, and what a name ends with.

Shops greet products too, and brands are named like people. So signs are counted: the words that announce a name, the
comma or colon between, whether a text says no more, whether people are called so, whether it has the shape of a full
name. Two signs take a name out where it stands, three (`SURE`) wherever the session repeats it.
"""

import functools
import re
from typing import NamedTuple

from replay_sessions.private_data.people import PARTICLES, is_brand, is_given, is_person
from replay_sessions.private_data.phrases import phrases_on
from replay_sessions.private_data.spans import AROUND_WORDS, EAST_ASIAN, GAP, PageText, lower, word_list, word_set

TO_REMOVE = 2  # signs
LONGEST_NAME = 80
# A character class: a letter that is no small one.
CAPITAL = rf"[^\W\d_{''.join(filter(str.islower, map(chr, range(0x590))))}]"
# What ends a name: the punctuation after it, or the end of its text.
AFTER = re.compile(
    rf" ?(?:(?P<mark>[!！?？;，。、।\U0001f300-\U0001faff\u2600-\u27bf]|[,.،:](?!\w))|[)–—·|(…:：-]|(?=[{GAP}])|$)"
)
_FULL_NAME = range(2, 5)  # words of one
_LONGEST_EAST_ASIAN = 6
_DOMAIN = re.compile(r"\w{4}\.\w\w")
_POSSESSIVE = re.compile(r"['’]s?\Z")


class Hit(NamedTuple):
    """A name, how many signs there are of it, and the words that announce it."""

    start: int
    name: str
    signs: int
    words: str


def signs_of(page: PageText, name: str) -> int:
    """How many signs are in a name itself: that people are called so, and that it has the shape of a full one."""
    is_full = len(name.split()) in _FULL_NAME
    if is_brand(name) or _DOMAIN.search(name):
        return -2
    words = [word.strip(".") for word in name.split() if word.lower() not in PARTICLES]
    lowered = [word.lower() for word in words]
    if is_person(name) and not word_set("not_private").issuperset(lowered):
        return 1 + is_full
    bare = {_POSSESSIVE.sub("", word) for word in lowered if len(word) > 1}
    if not interface_words().isdisjoint(bare):
        return -2
    if name[0].lower() == name[0]:  # a script without capitals
        return 0 if name < EAST_ASIAN or len(name) <= _LONGEST_EAST_ASIAN else -2
    is_ordinary = any(word in page.words for word in lowered)  # the page has it with a small letter too
    return -1 if is_ordinary else int(is_full and not (name.isupper() or any(map(str.isdigit, name))))


@functools.cache
def interface_words() -> frozenset[str]:
    """Words of shops' own language, which are no names though they are written like them."""
    labels = word_list(
        "name_labels", "weak_name_labels", "address_labels", "weak_address_labels", "phone_labels",
        "card_labels", "code_labels", "owned", "owned_after_s", "accounts", "entries", "exits", "closings",
        "greetings",
    )  # fmt: skip
    words = {lower(word.strip(AROUND_WORDS)) for label in labels for word in label.split()}
    no_names = word_set("not_private", "menu_words", "after_names", "order_stems")
    names = no_names | word_set("and_words", "name_fields", "address_fields")
    return frozenset(word for word in words | names if len(word) > 1 and (word in no_names or not is_given(word)))


def says_who_it_is(page: PageText) -> bool:
    """Whether a page asks nobody to sign in, so that it may show who did."""
    return not any(phrase.kind == "entries" for phrase, _ in phrases_on(page))
