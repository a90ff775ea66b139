"""Names by how a sentence or a line is built, whatever its words are: behind the label of a role and a colon, where
somebody is spoken to ("Anna, your order …"), and as owners anywhere.
"""

import functools
import re
from collections.abc import Iterator

from replay_sessions.private_data.people import is_person, leading_name
from replay_sessions.private_data.spans import GAP, SEPARATOR, PageText, word_set, word_list

_LONGEST_NAME = 80
_MOST_LABEL_WORDS = 5
CAPITAL = r"[^\W\d_a-zß-öø-ÿа-яα-ω]"
_SPOKEN_TO = re.compile(rf", ({CAPITAL}[\w’'-]+(?: {CAPITAL}[\w’'-]+)?) ?[!?.…]*(?=[{GAP}]|$)")
_SPEAKING_TO = re.compile(rf"[{GAP}] ?[¡¿]?({CAPITAL}[\w’'-]+), (\w+)")
# What stands between a role and a name: a colon, or "is".
_COLON = re.compile(r"(?:[:：] ?| (?:is|ist|est|es|è|é|är|er|on|jest|je) )(?=[^\W\d_a-z])")
_AROUND_LABEL = re.compile(rf"[{GAP}.·|;,()]")
_LONGEST_ROLE = 40
_MOST_WORDS = 14


def find_roles(page: PageText) -> Iterator[tuple[int, str]]:
    """Names behind the label of a role and a colon: "Pickup person: …"."""
    text = page.joined
    for match in _COLON.finditer(text):
        before = text[max(0, match.start() - _LONGEST_ROLE) : match.start()]
        label = _AROUND_LABEL.split(before)[-1].split()
        if not label or len(label) > _MOST_LABEL_WORDS:
            continue
        if label[-1].lower().startswith(_roles()) or label[0].lower().startswith(_roles()) or label[-1][-1] in "者人名氏":
            name = leading_name(text[match.end() : match.end() + _LONGEST_NAME].partition(SEPARATOR)[0])
            if name:
                yield match.end(), name


def find_spoken_to(page: PageText) -> Iterator[tuple[int, str]]:
    """Who is spoken to: a name before or behind a comma in a sentence to a shopper."""
    text = page.joined
    spoken = word_set("second_person")
    if spoken.isdisjoint(page.lowered):
        return
    for match in _SPOKEN_TO.finditer(text):
        start, end = page.piece_around(match.start(1))
        words = [word.strip(".,!?¡¿") for word in text[start:end].split()]
        is_titled = match[1].split()[0].lower().rstrip(".") in word_set("titles")
        is_sentence = is_titled or sum(word[:1].isupper() for word in words) <= 1 + len(match[1].split())
        if is_sentence and len(words) <= _MOST_WORDS and not spoken.isdisjoint(map(str.lower, words)):
            yield match.start(1), match[1]
    for match in _SPEAKING_TO.finditer(text):
        if match[2].lower() in spoken:
            yield match.start(1), match[1]


@functools.cache
def _roles() -> tuple[str, ...]:
    return tuple(word_list("roles"))
