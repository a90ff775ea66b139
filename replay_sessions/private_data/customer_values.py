"""Removes the values of a session's own user from texts, URLs and simplified pages, element names included.

A word of a name that other users' pages hold too (Brown, Rose) is the shop's word as well. It is removed only beside
another value of the user and in an account area. An element's name loses only the words that its own texts lose.
"""

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from urllib.parse import unquote

from replay_sessions.private_data.customers import (
    LETTERS,
    PHONE_DIGITS,
    WORD,
    Customer,
    Customers,
    Words,
    fold,
    is_unspaced,
    parts_of_words,
    pattern_of,
)
from replay_sessions.private_data.removal import PUT_IN
from replay_sessions.private_data.urls import with_changed_parts, without_private_parts

# Greetings and words for the user's account, as in texts and in URLs.
ACCOUNT = re.compile(
    r"(?<![^\W_])(?:accounts?|konto|compte|cuenta|profile?|orders?|checkout|addresses|(?:sign|log) ?out|logout|"
    r"abmelden|hello|hi|hey|welcome|dear|hallo|willkommen|guten tag|lieber?|bonjour|bienvenue|hola|bienvenid[oa]|"
    r"ciao|ola|(?:deliver|ship) to|(?:signed|logged) in)(?![^\W_])"
)
_TAG = re.compile(r"(<[^<>]*>)")
_SHOWN = re.compile(r'(?<= )(alt|aria-label|placeholder|title|value)="([^"]*)"')
_NAME = re.compile(r'(?<= name=")[^"]*')
_ATTRIBUTE = re.compile(r"""(\s([\w:.@-]+)\s*=\s*)(?:"([^"]*)"|'([^']*)'|([^\s"'<>=`]+))""")
_VOID = re.compile(r"<(?:area|br|hr|img|input)\b")
_PUT_IN = re.compile(PUT_IN.pattern.replace("_", " "))  # in a folded text
_DIGIT_GAP = "[ ()./‑–-]{0,3}"
_PHONE = re.compile(rf"\+?\(?[0-9](?:{_DIGIT_GAP}[0-9]){{6,16}}(?![0-9])")
_LONGEST_LINE = 80
_MANY_USERS = 3  # a phone number on the pages of this many other users is the shop's

Span = tuple[int, int, str]


class SharedWords:
    """Counts how many users' pages contain each customer's words, and the lines that differ only by such words."""

    def __init__(self, customers: Customers) -> None:
        self._customers = customers
        self._unspaced_words = customers.unspaced_words
        self._words = customers.words.keys() | {
            number for customer in customers.by_user.values() for number in customer.phones
        }
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        self._lines: defaultdict[str, set[str]] = defaultdict(set)

    def count(self, user_ids: Sequence[str], pages: Iterable[str]) -> None:
        """Counts the words and phone numbers on the pages of a user, markup included, except the user's own.

        Args:
            user_ids: The ids of the user, by the first of which users are counted.
        """
        user_id, customer = user_ids[0], self._customers.customer_of(user_ids)
        pattern = pattern_of(customer.forms)
        folded_pages = [fold(html.unescape(page)) for page in pages]
        words = {word for page in folded_pages for word in WORD.findall(page)}
        words |= parts_of_words(words, self._unspaced_words)
        for line in {line for page in folded_pages for line in lines_of(page)}:
            words.update(phone_ends(line))
            if len(line) <= _LONGEST_LINE and pattern.search(line):
                self._lines[pattern.sub("", line).strip()].add(user_id)
        for word in self._words & words - customer.phones - {word for form in customer.forms for word in form}:
            self._users[word].add(user_id)

    def users_of(self, word: str) -> int:
        """Returns how many users have a word, or a phone's last digits, on their pages that is not their own."""
        return len(self._users.get(word, ()))

    def users_with(self, line: str) -> int:
        """Returns how many users have a line with their own values in it on their pages.

        Args:
            line: The folded line without the values.
        """
        return len(self._lines.get(line.strip(), ())) if WORD.search(line) else 0


class OwnValues:
    """Removes the values of one user.

    Args:
        shared: The words that several users' pages hold. If None, each word of a name or an address counts as shared.

    Attributes:
        removed: The folded values that were removed so far.
    """

    def __init__(self, customer: Customer, shared: SharedWords | None) -> None:
        self._kinds = customer.forms
        self._shared = shared
        shared_forms = {
            form for form, kind in self._kinds.items() if form in customer.doubtful or _is_shops(form, kind, shared)
        }
        self._shared_pattern = pattern_of(shared_forms)
        self._own_pattern = pattern_of(self._kinds.keys() - shared_forms)
        self._any_pattern = pattern_of(self._kinds)
        phones = [end for end in sorted(customer.phones) if shared is None or shared.users_of(end) < _MANY_USERS]
        ends = "|".join(_DIGIT_GAP.join(end) for end in phones)
        self._phones = re.compile(rf"\+?\(?(?:[0-9]{_DIGIT_GAP}){{0,10}}(?:{ends})(?![0-9])" if ends else "(?!)")
        self.removed: set[str] = set()

    def remove_from_text(self, text: str) -> str:
        """Returns a text with the user's values replaced by their kinds."""
        return self._clean(text)[0]

    def remove_from_url(self, url: str) -> str:
        """Returns a URL without the user's values, and without parameters that are private by their names.

        If the URL holds a value that is not shared or a `[kind]`, shared words are removed from all of its parts.
        """
        return without_private_parts(url, self._cleaner_of(url))

    def _cleaner_of(self, url: str) -> Callable[[str], str]:
        is_personal = bool(self._own_pattern.search(fold(unquote(url))) or PUT_IN.search(url))
        return lambda part: self._clean(part, is_account=is_personal)[0]

    def remove_from_page(self, page: str, url: str = "") -> tuple[str, dict[str, str]]:
        """Removes the user's values from a simplified page.

        Returns:
            The page with its element names unchanged, and a mapping of each element name to its new name.
        """
        is_account = bool(ACCOUNT.search(fold(unquote(url.partition("://")[2].partition("/")[2]))))
        parts: list[str] = []
        words: defaultdict[str, set[str]] = defaultdict(set)  # name of an element -> folded words that its texts lost
        open_tags: list[str] = []  # the start tags of the open elements

        def clean(text: str) -> str:
            plain = html.unescape(text) if "&" in text else text
            cleaned, removed = self._clean(plain, is_account=is_account)
            for tag in open_tags if removed else ():
                if name := _NAME.search(tag):
                    words[name[0]] |= removed
            return (html.escape(cleaned) if plain != text else cleaned) if removed else text

        def clean_attribute(match: re.Match[str]) -> str:
            value = next(filter(None, match.groups()[2:]), "")
            if match[2] == "name" or not value:
                return match[0]
            is_url = "/" in value or "%" in value
            cleaner = self._cleaner_of(value)
            cleaned = clean(with_changed_parts(value, lambda _, part: cleaner(part)) if is_url else value)
            return match[0] if cleaned == value else match[1] + match[0][len(match[1]) :].replace(value, cleaned)

        for part in _TAG.split(page):
            if part.startswith("</"):
                end = part[1:-1].replace("/", "<")
                while open_tags and not re.match(rf"{end}\b", open_tags.pop()):
                    pass
            elif part.startswith("<") and not part.startswith("<!"):
                open_tags.append(part)
                part = _ATTRIBUTE.sub(clean_attribute, part)
                if _VOID.match(part):
                    open_tags.pop()
            else:  # a text or a comment
                part = clean(part)
            parts.append(part)
        names: dict[str, str] = {}
        for name in filter(None, _NAME.findall(page)):
            scope, dot, last = name.rpartition(".")
            scope = names.get(scope) or self.remove_from_name(scope, words[name])
            names[name] = scope + dot + self.remove_from_name(last, words[name])
        return "".join(parts), names

    def remove_from_name(self, name: str, removed: Collection[str] = ()) -> str:
        """Returns the name of an element without the user's values.

        Args:
            removed: Folded shared words that are removed, too.
        """
        parts = (self._clean(part, removed=removed)[0] for part in name.split("."))
        return ".".join(part.replace("[", "").replace("]", "") for part in parts)

    def _clean(self, text: str, *, is_account: bool = False, removed: Collection[str] = ()) -> tuple[str, set[str]]:
        """Returns a text without the user's values, and the folded values that were removed.

        Args:
            is_account: True in an account area, where shared words are removed. Short texts may be one by themselves.
            removed: Folded shared words that are removed wherever they stand.
        """
        text = unicodedata.normalize("NFC", text)
        folded = fold(text)
        own_matches = list(self._own_pattern.finditer(folded))
        phones = list(self._phones.finditer(folded))
        spans = [*map(self._span, own_matches), *((*match.span(), "phone") for match in phones)]
        shared_matches = list(self._shared_pattern.finditer(folded))
        if shared_matches and len(text) <= _LONGEST_LINE:
            is_account = is_account or bool(ACCOUNT.search(folded)) or self._is_personal(folded)
        for match in shared_matches:
            is_beside = any(
                not WORD.search(folded[min(match.end(), private.end()) : max(match.start(), private.start())])
                for private in (*own_matches, *phones, *_PUT_IN.finditer(folded))
            )
            if is_beside or is_account or match[0] in removed:
                spans.append(self._span(match))
        lost = {folded[start:end] for start, end, _ in spans}
        self.removed |= lost
        return (_put_in(text, _in_text(text, folded, spans)) if spans else text), lost

    def _is_personal(self, folded: str) -> bool:
        """Returns whether a line stands on the pages of several users, each time with the user's own values in it."""
        return self._shared is not None and self._shared.users_with(self._any_pattern.sub("", folded)) > 1

    def _span(self, match: re.Match[str]) -> Span:
        return *match.span(), self._kinds[tuple(WORD.findall(match[0]))]


def _in_text(text: str, folded: str, spans: list[Span]) -> list[Span]:
    """Returns the spans of a folded text in the text, which also has the characters that folding leaves out."""
    if len(text) == len(folded):
        return spans
    places = [index for index, letter in enumerate(text) if LETTERS[ord(letter)]]
    places.append(len(text))
    return [(places[start], places[end], kind) for start, end, kind in spans]


def _is_shops(form: Words, kind: str, shared: SharedWords | None) -> bool:
    """Returns whether a form is the shop's as well, because the pages of other users hold all of its words.

    E-mail addresses, full names, and forms of several words with a digit never are. A name of two letters, or of one
    syllable of Chinese, Japanese or Korean, always is.
    """
    if len(form) == 1 and len(form[0]) < 3 - is_unspaced(form[0]):
        return True
    if kind == "email" or (len(form) > 1 and (kind == "name" or any(map(str.isdigit, "".join(form))))):
        return False
    return kind in ("name", "address") if shared is None else all(map(shared.users_of, form))


def account_lines(page: str) -> list[str]:
    """Returns the lines of a simplified page that greet a user or speak of an account or an order."""
    return [line for line in lines_of(page) if len(line) <= _LONGEST_LINE and ACCOUNT.search(fold(line))]


def lines_of(page: str) -> Iterator[str]:
    """Yields the texts of a simplified page and those of its visible attributes."""
    yield from filter(None, map(str.strip, _TAG.sub("\n", page).split("\n")))
    yield from (value for _, value in _SHOWN.findall(page))


def phone_ends(text: str) -> Iterator[str]:
    """Yields the last digits of each number in a text that may be a phone number."""
    for number in _PHONE.findall(fold(text)):
        yield "".join(filter(str.isdigit, number))[-PHONE_DIGITS:]


def _put_in(text: str, spans: list[Span]) -> str:
    """Replaces each span by its kind in brackets; spans of one kind with only punctuation between them share one."""
    parts: list[str] = []
    done, last = 0, ""
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= done:
            if kind != last or WORD.search(text[done:start].replace("_", " ")):
                parts += (text[done:start], f"[{kind}]")
            done, last = end, kind
    return "".join((*parts, text[done:]))
