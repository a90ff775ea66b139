"""Removes the values of a session's own user from texts, URLs and simplified pages, element names included.

A word of a name that other users' pages hold too (Brown, Rose) is the shop's word as well. It is removed only beside
another value of the user and in an account area. An element's name loses only the words that its own texts lose.
"""

import html
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import unquote

from replay_sessions.private_data.customers import PHONE_DIGITS, WORD, Customer, Customers, Words, fold, pattern_of
from replay_sessions.private_data.removal import PUT_IN
from replay_sessions.private_data.urls import without_private_parts

# Greetings and words for the user's account, as in texts and in URLs.
ACCOUNT = re.compile(
    r"(?<![^\W_])(?:accounts?|konto|compte|cuenta|profile?|orders?|checkout|addresses|(?:sign|log) ?out|logout|"
    r"abmelden|hello|hi|hey|welcome|dear|hallo|willkommen|guten tag|lieber?|bonjour|bienvenue|hola|bienvenid[oa]|"
    r"ciao|ola|(?:deliver|ship) to|(?:signed|logged) in)(?![^\W_])"
)
_TAG = re.compile(r"(<[^<>]*>)")
_SHOWN = re.compile(r'(?<= )(alt|aria-label|placeholder|title|value)="([^"]*)"')
_NAME = re.compile(r'(?<= name=")[^"]*')
_VOID = re.compile(r"<(?:area|br|hr|img|input)\b")
_ENTITY = re.compile(r"&#?\w{2,8};")
_PHONE = re.compile(r"\+?\(?[0-9](?:[ ()./_‑–-]{0,3}[0-9]){6,16}(?![0-9])")
_LONGEST_LINE = 80
_MANY_USERS = 3  # a phone number on the pages of this many other users is the shop's

Span = tuple[int, int, str]


class SharedWords:
    """Counts how many users' pages contain each customer's words, and the lines that differ only by such words."""

    def __init__(self, customers: Customers) -> None:
        self._customers = customers.by_user
        self._words = {word for customer in self._customers.values() for form in customer.forms for word in form}
        self._words |= {number for customer in self._customers.values() for number in customer.phones}
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        self._lines: defaultdict[str, set[str]] = defaultdict(set)

    def count(self, user_id: str, pages: Iterable[str]) -> None:
        """Counts the words and phone numbers on the pages of a user, except the user's own."""
        customer = self._customers.get(user_id, Customer())
        pattern = pattern_of(customer.forms)
        words: set[str] = set()
        for line in {line for page in pages for line in lines_of(fold(page))}:
            words.update(WORD.findall(line), map(_end_of, _PHONE.finditer(line)))
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
        counts: Counter of shared words by outcome: removed "beside" another value, removed in an "account" area, or
            "stayed". If None, a new counter is used.
    """

    def __init__(self, customer: Customer, shared: SharedWords | None, counts: Counter[str] | None = None) -> None:
        self._kinds = customer.forms
        self._shared = shared
        shared_forms = {form for form, kind in self._kinds.items() if _is_shops(form, kind, shared)}
        self._shared_pattern = pattern_of(shared_forms)
        self._own_pattern = pattern_of(self._kinds.keys() - shared_forms)
        self._any_pattern = pattern_of(self._kinds)
        self._phones = {end for end in customer.phones if shared is None or shared.users_of(end) < _MANY_USERS}
        self._counts = Counter[str]() if counts is None else counts

    def remove_from_text(self, text: str) -> str:
        """Returns a text with the user's values replaced by their kinds."""
        return self._clean(text)[0]

    def remove_from_url(self, url: str) -> str:
        """Returns a URL without the user's values.

        If the URL holds a value that is not shared or a `[kind]`, shared words are removed from all of its parts.
        """
        is_personal = bool(self._own_pattern.search(fold(unquote(url))) or PUT_IN.search(url))
        return without_private_parts(url, lambda part: self._clean(part, is_account=is_personal)[0])

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
            cleaned, removed = self._clean(text, is_account=is_account)
            for tag in open_tags if removed else ():
                if name := _NAME.search(tag):
                    words[name[0]] |= removed
            return cleaned

        for part in _TAG.split(_ENTITY.sub(_decode_letter, page)):
            if part.startswith("</"):
                end = part[1:-1].replace("/", "<")
                while open_tags and not re.match(rf"{end}\b", open_tags.pop()):
                    pass
            elif part.startswith("<"):
                open_tags.append(part)
                part = _SHOWN.sub(lambda match: f'{match[1]}="{clean(match[2])}"', part)
                if _VOID.match(part):
                    open_tags.pop()
            else:
                part = clean(part)
            parts.append(part)
        names: dict[str, str] = {}
        for name in filter(None, _NAME.findall(page)):
            scope, dot, last = name.rpartition(".")
            scope = names.get(scope) or ".".join(self._rename(part, words[name]) for part in scope.split("."))
            names[name] = scope + dot + self._rename(last, words[name])
        return "".join(parts), names

    def _rename(self, part: str, removed: Collection[str]) -> str:
        return self._clean(part, removed=removed)[0].replace("[", "").replace("]", "")

    def _clean(self, text: str, *, is_account: bool = False, removed: Collection[str] = ()) -> tuple[str, set[str]]:
        """Returns a text without the user's values, and the folded values that were removed.

        Args:
            is_account: True in an account area, where shared words are removed. Short texts may be one by themselves.
            removed: Folded shared words that are removed wherever they stand.
        """
        folded = fold(text)
        own_matches = list(self._own_pattern.finditer(folded))
        phones = [match for match in _PHONE.finditer(folded) if _end_of(match) in self._phones]
        spans = [*map(self._span, own_matches), *((*match.span(), "phone") for match in phones)]
        shared_matches = list(self._shared_pattern.finditer(folded))
        if shared_matches and len(text) <= _LONGEST_LINE:
            is_account = is_account or bool(ACCOUNT.search(folded)) or self._is_personal(folded)
        for match in shared_matches:
            is_beside = any(
                not WORD.search(folded[min(match.end(), private.end()) : max(match.start(), private.start())])
                for private in (*own_matches, *phones, *PUT_IN.finditer(folded))
            )
            self._counts["beside" if is_beside else "account" if is_account else "stayed"] += 1
            if is_beside or is_account or match[0] in removed:
                spans.append(self._span(match))
        return (_put_in(text, spans) if spans else text), {folded[start:end] for start, end, _ in spans}

    def _is_personal(self, folded: str) -> bool:
        """Returns whether a line stands on the pages of several users, each time with the user's own values in it."""
        return self._shared is not None and self._shared.users_with(self._any_pattern.sub("", folded)) > 1

    def _span(self, match: re.Match[str]) -> Span:
        return *match.span(), self._kinds[tuple(WORD.findall(match[0]))]


def _is_shops(form: Words, kind: str, shared: SharedWords | None) -> bool:
    """Returns whether a form is the shop's as well, because the pages of other users hold all of its words.

    E-mail addresses, full names, and forms of several words with a digit never are.
    """
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


def _end_of(phone: re.Match[str]) -> str:
    return "".join(filter(str.isdigit, phone[0]))[-PHONE_DIGITS:]


def _put_in(text: str, spans: list[Span]) -> str:
    """Replaces each span by its kind in brackets; spans of one kind with only punctuation between them share one."""
    parts: list[str] = []
    done, last = 0, ""
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= done:
            if kind != last or WORD.search(text, done, start):
                parts += (text[done:start], f"[{kind}]")
            done, last = end, kind
    return "".join((*parts, text[done:]))


def _decode_letter(entity: re.Match[str]) -> str:
    letter = html.unescape(entity[0])
    return letter if letter.isalnum() else entity[0]
