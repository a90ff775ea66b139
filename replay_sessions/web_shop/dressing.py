"""A demo shop's simplified page -> a web page that looks like a shop's.

What can be acted on becomes a link, or a form with a button or field, under an address of its own. Its name is taken
apart into what makes the same name again when the web page is simplified: parts of the page with a class
(`in-product`), cards with a title, the words on it, and for words that are not its name a class (`go-add_to_cart`).
The recipe simplify/recipes/demo_shop.toml knows the classes.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from urllib.parse import quote

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

__all__ = ["dressed", "told_page"]

_CARD_ENDS = ("view_product", "remove")  # their names hold an article's between the part and the last word
_FLATTENED = frozenset({"aside", "main", "nav", "ul"})
_GROUPS = frozenset({"header", "footer", "section", "div"})
_WORDS = {"brand": "Brand", "style": "Style", "price": "Price", "customer_reviews": "Customer reviews", "size": "Size"}


class _Act(msgspec.Struct, frozen=True):
    """Something that can be acted on.

    Attributes:
        checked: "true" or "false" for what is ticked or not.
    """

    name: str
    tag: str
    text: str
    role: str
    checked: str

    @property
    def parts(self) -> list[str]:
        return self.name.split(".")

    @property
    def part(self) -> tuple[str, ...]:
        """The part of the page that its name begins with, without an article."""
        return tuple(self.parts[:-2] if self.parts[-1] in _CARD_ENDS and len(self.parts) > 2 else self.parts[:-1])


class _Text(msgspec.Struct, frozen=True):
    tag: str
    kind: str
    text: str


class _Group(msgspec.Struct, frozen=True):
    """What stands together: a card, a line of the cart, the header, the footer."""

    tag: str
    items: list["_Act | _Text | _Group"]


_Item = _Act | _Text | _Group


def dressed(page: str, address: str, *, head: str = "", foot: str = "") -> str:
    """The web page.

    Args:
        page: As the shop shows it.
        address: Under which it can be acted on: `ADDRESS/do/NAME`, `ADDRESS/search?q=TEXT`.
        head, foot: HTML for the head, and for the end of the body.
    """
    tree = LexborHTMLParser(page)
    assert tree.body is not None
    title = tree.css_first("title")
    kind = title.text() if title is not None else ""
    body = "".join(_Dresser(address, kind).write(list(_items(tree.body))))
    return told_page(f"{kind.capitalize()} · Demo shop", body, head=head, foot=foot, kind=kind)


def told_page(title: str, body: str, *, head: str = "", foot: str = "", kind: str = "study-page") -> str:
    """A page of the shop's around what it tells."""
    return (
        '<!DOCTYPE html><html lang="en" class="shop-r1-demo-shop"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(title)}</title><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="/shop.css">{head}</head>'
        f'<body class="{escape(kind)}">{body}{foot}</body></html>'
    )


def _items(around: LexborNode) -> Iterator[_Item]:
    """What stands in a part of a simplified page, in its order."""
    node = around.first_child
    while node is not None:
        tag = node.tag or ""
        attributes = node.attributes
        if node.is_element_node:
            if tag in _FLATTENED or tag == "form":
                yield from _items(node)
            elif tag in _GROUPS:
                yield _Group(tag, list(_items(node)))
            elif attributes.get("name"):
                yield _Act(
                    name=attributes["name"] or "",
                    tag=tag,
                    text=attributes.get("value") or node.text().strip(),
                    role=attributes.get("role") or "",
                    checked=attributes.get("aria-checked") or "",
                )
            else:
                yield _Text(tag, attributes.get("class") or "", node.text().strip())
        node = node.next


def _part_of(item: _Item) -> tuple[str, ...]:
    """The part of the page that an item belongs to; () for what belongs to none."""
    if isinstance(item, _Group):
        return next((part for inner in item.items if (part := _part_of(inner))), ()) if item.tag == "section" else ()
    return item.part if isinstance(item, _Act) else ()


class _Dresser:
    """Writes the items of one page of a kind."""

    def __init__(self, address: str, kind: str) -> None:
        self._address = escape(address)
        self._kind = kind

    def write(self, items: Sequence[_Item]) -> Iterator[str]:
        """Items in their order; those of one part that follow one another stand together."""
        for part, run in groupby(items, _part_of):
            together = [self._item(item) for item in run]
            if not part:
                yield from together
                continue
            legend = f"<h2>{_WORDS[part[-1]]}</h2>" if part[-1] in _WORDS else ""
            if part[0].startswith("recommended_"):
                label = part[0].replace("_", " ").capitalize()
                yield f'<section class="strip cards" aria-label="{escape(label)}">{"".join(together)}</section>'
                continue
            start = "".join(f'<div class="in-{escape(word)}">' for word in part[:-1])
            kind = "cards" if part[-1] in ("search_results", "also_viewed") else "row"
            yield f'{start}<div class="in-{escape(part[-1])} {kind}">{legend}{"".join(together)}</div>'
            yield "</div>" * (len(part) - 1)

    def _item(self, item: _Item) -> str:
        if isinstance(item, _Text):
            is_article = item.tag == "h1" and self._kind in ("product", "reviews")
            picture = _picture(item.text.lower().split()) if is_article else ""
            return f'{picture}<{item.tag} class="{escape(item.kind)}">{escape(item.text)}</{item.tag}> '
        if isinstance(item, _Act):
            return self._card([item]) if item.parts[-1] in _CARD_ENDS and len(item.parts) > 2 else self._act(item)
        if item.tag == "section":
            return self._card(item.items)
        if item.tag == "div":
            return f'<div class="in-cart">{self._card(item.items)}</div>'
        inside = "".join(self.write(item.items))
        if item.tag == "header":
            inside = f'<span class="logo">Demo shop</span>{inside}'
        return f"<{item.tag}>{inside}</{item.tag}>"

    def _card(self, items: Sequence[_Item]) -> str:
        """An article: its picture, its name, and what is told of it; in the cart with a button."""
        act = next(item for item in items if isinstance(item, _Act))
        words = act.parts[-2].split("_")
        title = " ".join(words).title()
        told = "".join(self._item(item) for item in items if isinstance(item, _Text) and item.text != title)
        picture = _picture(words)
        if act.parts[-1] == "view_product":
            heading = f'<h3><a href="{self._to(act)}">{escape(title)}</a></h3>'
            return f'<article class="card">{picture}{heading}<div class="told">{told}</div></article>'
        button = self._button(act, act.text)
        return f'<article class="card line">{picture}<h3>{escape(title)}</h3>{told}{button}</article>'

    def _act(self, act: _Act) -> str:
        last = act.parts[-1]
        if act.tag == "input":
            field = f'<input class="go-{last}" type="search" name="q" aria-label="Search" value="{escape(act.text)}">'
            return (
                f'<form class="searching" role="search" action="{self._address}/search">{field}'
                "<button>Search</button></form>"
            )
        text = last if act.text in act.parts[:-1] else act.text  # the small shop calls a box by what it is about
        text = text[:1].upper() + text[1:]
        if act.tag == "button":
            return self._button(act, text)
        state = f' role="{act.role}" aria-checked="{act.checked or "false"}"' if act.role else ""
        return f'<a class="go-{escape(last)}"{state} href="{self._to(act)}">{escape(text)}</a>'

    def _button(self, act: _Act, text: str) -> str:
        label = text[:1].upper() + text[1:]
        return (
            f'<form class="acting" method="post" action="{self._to(act)}">'
            f'<button class="go-{escape(act.parts[-1])}">{escape(label)}</button></form>'
        )

    def _to(self, act: _Act) -> str:
        return f"{self._address}/do/{quote(act.name)}"


def _picture(words: Sequence[str]) -> str:
    """Of an article: its colour, and the first letter of its kind."""
    _, colour, noun = [*words, "", "", ""][:3]
    return f'<span class="picture tint-{escape(colour)}" data-letter="{escape(noun[:1])}"></span>'
