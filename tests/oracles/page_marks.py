"""Marks on the controls of a page's source, so that each is the same one for the browser and the simplifier.

The source is marked and not a parsed page: what either parser makes of it is part of what is measured. The attribute is
one that the simplifier writes out.
"""

import re

MARK = "aria-current"
BARE = frozenset({"class", "id", "name", "style"})  # an anchor with nothing else is no link
_LETTERS = str.maketrans("0123456789", "abcdefghij")  # a long number could be taken for private data
_CONTROLS = frozenset({b"a", b"button", b"input", b"select", b"textarea", b"summary"})
_ROLES = frozenset(
    b"button link checkbox radio switch tab menuitem menuitemcheckbox menuitemradio option combobox slider".split()
)
_TEXT = rb"script|style|noscript|title|iframe|noframes|noembed|xmp"  # elements whose content holds no tags
_ATTRIBUTE = rb"""[^\s/>=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+))?+"""
_TOKEN = re.compile(
    rb"<!--.*?-->|<(?P<text>" + _TEXT + rb")(?=[\s/>]).*?</(?P=text)\s*>"
    rb"|<(?P<tag>[a-z][^\s/>]*+)(?P<attributes>(?:[\s/]++|=|" + _ATTRIBUTE + rb")*+)>",
    re.IGNORECASE | re.DOTALL,
)
_NAMES = re.compile(rb"(?:^|[\s/])(" + _ATTRIBUTE + rb")", re.DOTALL)
_ROLE = re.compile(rb"""(?:^|\s)role\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_NAMED = re.compile(rf'<[\w-]+ name="([^"]+)"[^>]*? {MARK}="(shopr[a-j]+)"')


def mark_controls(page: bytes) -> tuple[bytes, list[str]]:
    """The page with a mark on each link, button, field, summary and element with such a role; the marks in order."""
    marks: list[str] = []

    def insert(match: re.Match[bytes]) -> bytes:
        tag, attributes = match["tag"], match["attributes"]
        if tag is None or not _is_control(tag.lower(), attributes):
            return match[0]
        marks.append(mark(len(marks)))
        return b'<%s %s="%s"%s>' % (tag, MARK.encode(), marks[-1].encode(), attributes)

    return _TOKEN.sub(insert, page), marks


def mark(index: int) -> str:
    """Returns the mark of the element with an index."""
    return f"shopr{index}".translate(_LETTERS)


def _is_control(tag: bytes, attributes: bytes) -> bool:
    role = _ROLE.search(attributes)
    if role is not None and role[1].lower() in _ROLES:
        return True
    if tag == b"a":  # an anchor with nothing else is no link
        names = (attribute.split(b"=")[0].strip().lower().decode() for attribute in _NAMES.findall(attributes))
        return not BARE.issuperset(names)
    return tag in _CONTROLS


def named_marks(html: str) -> dict[str, str]:
    """The name of each marked element of a simplified page, by its mark."""
    return {mark: name for name, mark in _NAMED.findall(html)}
