"""Writes the simplified page as a list of pieces of HTML.

An element whose tags depend on its content begins with an empty piece, which is filled in when the element ends: empty
elements are dropped, and elements that only wrap another element lose their tags. White space is written where the page
shows it: between words that the source separates, and at the edges of elements between two words.
"""

import bisect
import re
from collections.abc import Mapping
from html import unescape

from replay_sessions.simplify.apart import without_remarks
from replay_sessions.simplify.names import quoted, tidy
from replay_sessions.simplify.tags import BLOCK, TAGS

_STARTS = {tag: f"\n<{tag}>" for tag, _ in TAGS.values()}
_ENDS = {tag: f"</{tag}>" for tag, _ in TAGS.values()}
_VOID = frozenset({"area", "input"})
_IMAGE = re.compile('<img alt="(.*)">')
_MAX_TEXT = 1_000  # maximum length of a label, enough for any name
_MAX_PIECES = 500
# Texts in an own element within a target or a heading that change while the target stays.
_LONGEST_BADGE = 40
_COUNT_OR_PRICE = re.compile(
    r"(?:[^\W\d_]{0,4}\W{0,3}[(\[]?\d[\d.,\s]*[kKmM]?\+?[)\]]?\W{0,3}[^\W\d_]{0,4}[.]?|[^\w\s]{1,3})"
)
_BADGE = re.compile(
    r"[-–−+]?\s*\d+\s*%(?:\s*off)?|(?:save|up to|bis zu|jusqu.à|hasta|ahorra)\s.{0,20}\d.{0,10}|"
    r"new!?|sale!?|sponsored|ad|hot!?|"
    r"(?:our )?best[ -]?sellers?|neu!?|nouveau|nuevo|nuovo|novo|promo(?:tion)?|oferta|gesponsert|anzeige|sponsorisé|"
    r"sponsorizzato|patrocinado|top|exclusive|limited",
    re.IGNORECASE,
)


class PieceWriter:
    """Writes texts, images and elements into pieces.

    Attributes:
        pieces: The pieces written so far.
        visible: Indices of the pieces that are texts or images.
        badges: Ranges (start, end) of pieces that are no part of names.
        private: Kind of private data at the current position; "" if there is none, or if it may stay.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.visible: list[int] = []
        self.badges: list[tuple[int, int]] = []
        self.private = ""
        self._tail = ""  # the last character of the line so far
        self._blank = False  # whether white space came after it
        self._edge = False  # whether an element began or ended after it
        self._last_start = -1  # the range of pieces of the last element that was written
        self._last_end = -1

    def write_text(self, raw: str) -> None:
        """Writes a text node."""
        words = " ".join(raw.split())
        if not words.isprintable():
            words = tidy(words)
        if not words:
            self._blank = self._blank or bool(raw)
            return
        if self.private:
            words = f"[{self.private}]"
        if "&" in words or "<" in words or ">" in words:
            words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        pieces = self.pieces
        self.visible.append(len(pieces))
        tail = self._tail
        if tail and (self._blank or raw[0].isspace() or (self._edge and tail.isalnum() and words[0].isalnum())):
            words = " " + words
        pieces.append(words)
        self._tail = words[-1]
        self._blank = raw[-1].isspace()
        self._edge = False

    def write_image(self, words: str) -> None:
        """Writes an image with its alternative text."""
        self._last_start = len(self.pieces)
        self.visible.append(self._last_start)
        self.pieces.append(f'<img alt="{quoted(words)}">')
        self._last_end = len(self.pieces)
        self._tail = ">"

    def end_block(self, kind: int, piece: int, tag: str) -> None:
        """Ends a BLOCK or ITEM: writes its tags, or leaves them out if it is empty or only wraps another element."""
        pieces = self.pieces
        end = len(pieces)
        if end == piece + 1:
            pieces.pop()
            self._blank = True
        elif kind == BLOCK and self._last_start == piece + 1 and self._last_end == end:
            self._last_start = piece
            self._blank = True
        else:
            pieces[piece] = _STARTS[tag]
            self.write_end(piece, tag)

    def write_end(self, piece: int, tag: str) -> None:
        """Writes the end tag of the block that begins at a piece."""
        pieces = self.pieces
        first = pieces[piece + 1]
        if first and first[0] == " ":
            pieces[piece + 1] = first[1:]
        pieces.append(_ENDS[tag])
        self._last_start = piece
        self._last_end = len(pieces)
        self._tail = ""

    def end_target(self, piece: int, tag: str) -> None:
        """Writes the end tag of a target; its start tag is filled in when its name is known."""
        if tag not in _VOID:
            self.pieces.append(f"</{tag}>")
        self._last_start = piece
        self._last_end = len(self.pieces)
        self._tail = ">"
        self._blank = False

    def end_struck(self, piece: int, tag: str) -> None:
        """Ends a struck-out text, which blanks separate from other words."""
        if len(self.pieces) == piece + 1:
            self.pieces.pop()
        else:
            first = self.pieces[piece + 1]
            self.pieces[piece] = f" <{tag}>" if first[:1] == " " else f"<{tag}>"
            self.pieces[piece + 1] = first.lstrip()
            self.pieces.append(_ENDS[tag])
        self._blank = True

    def steady_text(self, piece: int, words: str, alt: str, attributes: Mapping[str, str | None]) -> str:
        """Returns a target's text without badges, and without the prices and counts at its end.

        If the image's description or the URL has words of some of the texts, the other texts are remarks (`2 for 1`,
        `Last one!`), which are left out as well. Returns "" if no other text remains.

        Args:
            piece: Index of the piece at which the text begins.
            words: The complete text.
            alt: Alternative text of the target's image; "" if none.
            attributes: Attributes of the target; `href` and `title` are read.
        """
        visible = self.visible
        is_badge = self.badges and self.badges[-1][0] >= piece
        if not is_badge and (len(visible) < 2 or visible[-2] < piece):
            return words
        start = bisect.bisect_left(visible, piece)
        pieces = self.pieces
        candidates = [index for index in visible[start : start + _MAX_PIECES] if "<" not in pieces[index]]
        selected = candidates
        if is_badge:
            badges = [extent for extent in self.badges[-_MAX_PIECES:] if extent[0] >= piece]
            selected = [index for index in candidates if not any(begin <= index < end for begin, end in badges)]
        if len(selected) > 1:
            selected = [
                index
                for index in selected
                if len(pieces[index]) > _LONGEST_BADGE or not _BADGE.fullmatch(pieces[index].strip())
            ]
        while (
            len(selected) > 1
            and len(pieces[selected[-1]]) <= _LONGEST_BADGE
            and _COUNT_OR_PRICE.fullmatch(pieces[selected[-1]].strip())
        ):
            selected.pop()
        address = attributes.get("href")
        if selected and (alt or address):
            kept_texts = without_remarks([pieces[index] for index in selected], alt, address, attributes.get("title"))
            selected = [index for index, is_kept in zip(selected, kept_texts, strict=True) if is_kept]
        if len(selected) == len(candidates):
            return words
        remaining = set(selected)
        texts = [pieces[index] if index - 1 in remaining else f" {pieces[index]}" for index in selected]
        return _unescaped(" ".join("".join(texts).split())[:_MAX_TEXT])

    def text_since(self, piece: int, end: int | None = None) -> str:
        """Returns the text written from a piece on, or up to the piece `end`, up to a maximum length."""
        pieces = self.pieces
        end = len(pieces) if end is None else end
        if end == piece + 1:
            words = pieces[piece][:_MAX_TEXT]
            if "<" in words:
                return ""
            words = words.strip()
        else:
            texts = pieces[piece : min(end, piece + _MAX_PIECES)]
            words = "".join([text[:_MAX_TEXT] if text and "<" not in text else " " for text in texts])
            words = " ".join(words.split())[:_MAX_TEXT]
        return _unescaped(words)

    def images_since(self, piece: int) -> str:
        """Returns the alternative texts of the images written from a piece on."""
        images = map(_IMAGE.fullmatch, self.pieces[piece : piece + _MAX_PIECES])
        return " ".join(unescape(image[1]) for image in images if image)[:_MAX_TEXT]


def _unescaped(words: str) -> str:
    return words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if "&" in words else words
