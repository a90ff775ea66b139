"""Text as it is written out: white space collapsed, and nothing in it that cannot be seen."""

_JOINERS = "\u200c\u200d"  # invisible, but they shape the letters of some scripts


def quoted(words: str) -> str:
    """Text as it stands between the quotes of an attribute."""
    if "&" in words or '"' in words or "<" in words or ">" in words:
        return words.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return words


def tidy(raw: str | None) -> str:
    r"""Text with single blanks and without control, formatting and unassigned characters.

    >>> tidy("  Red\n kettle\x01 "), tidy(None)
    ('Red kettle', '')
    """
    if not raw:
        return ""
    words = " ".join(raw.split())
    if words.isprintable():
        return words
    return " ".join("".join([letter for letter in words if letter.isprintable() or letter in _JOINERS]).split())
