"""Turns a demo shop's simplified page into a web page that looks like a shop.

Each element becomes a link, or a form with a button or field, with its own URL. The markup encodes the element's name,
so the simplifier derives the same name from the web page: parts of the page with a class (`in-product`), cards with a
title, the element's text, and a class (`go-add_to_cart`) if the text differs from the name. The recipe
simplify/recipes/demo_shop.toml maps the classes to names.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple
from urllib.parse import quote, unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from replay_sessions.elements import find_elements

_CARD_ENDS = ("view_product", "remove")  # element names with these ends contain the name of an article
_FLATTENED = frozenset({"aside", "main", "nav", "ul", "form"})
_GROUPS = frozenset({"header", "footer", "section", "div"})
_WORDS = {"brand": "Brand", "style": "Style", "price": "Price", "customer_reviews": "Customer reviews", "size": "Size"}


def write_web_page(page: str, address: str, *, head: str = "", foot: str = "") -> str:
    """Writes the web page of a simplified page.

    Args:
        page: Simplified page of a demo shop.
        address: Prefix of the URLs of actions: `ADDRESS/do/NAME`, `ADDRESS/search?q=TEXT`.
        head, foot: HTML for the head and for the end of the body.
    """
    tree = LexborHTMLParser(page)
    assert tree.body is not None
    title = tree.css_first("title")
    kind = title.text() if title is not None else ""
    body = "".join(_Dresser(escape(address), kind).write(_items(tree.body)))
    return write_study_page(f"{kind.capitalize()} · Demo shop", body, head=head, foot=foot, kind=kind)


def write_named_page(page: str) -> str:
    """Writes the web page with the element names of the simplified page, for `page_document`."""
    tree = LexborHTMLParser(write_web_page(page, ""))
    fields = (element.name for element in find_elements(page) if element.accepts == "type")
    for node in tree.css("a[href], .acting button, .searching input"):
        if node.tag == "input":
            node.attrs["name"] = next(fields, "")
            continue
        address = node.attributes.get("href") or (node.parent and node.parent.attributes.get("action")) or ""
        node.attrs["name"] = unquote(address.removeprefix("/do/"))
    return tree.html or ""


def write_study_page(title: str, body: str, *, head: str = "", foot: str = "", kind: str = "study-page") -> str:
    """Writes a page in the shop's style with the given body."""
    return (
        '<!DOCTYPE html><html lang="en" class="shop-r1-demo-shop"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(title)}</title><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="/shop.css">{head}</head>'
        f'<body class="{escape(kind)}">{body}{foot}</body></html>'
    )


def _items(parent: LexborNode) -> Iterator[LexborNode]:
    """Yields the nodes inside a part of a simplified page in order, and the content of lists and the like instead."""
    for node in parent.iter():
        if node.tag in _FLATTENED:
            yield from _items(node)
        else:
            yield node


def _name(node: LexborNode) -> list[str]:
    """Returns the parts of an element's name; [] for nodes that are not elements."""
    name = "" if node.tag in _GROUPS else node.attributes.get("name") or ""
    return name.split(".") if name else []


def _text(node: LexborNode) -> str:
    return node.attributes.get("value") or node.text().strip()


def _is_of_article(name: Sequence[str]) -> bool:
    return len(name) > 2 and name[-1] in _CARD_ENDS


def _part_of(node: LexborNode) -> Sequence[str]:
    """Returns the part of the page that an element's name begins with, without an article; [] if the name has none."""
    if node.tag == "section":
        return next((part for inner in _items(node) if (part := _part_of(inner))), [])
    name = _name(node)
    return name[:-2] if _is_of_article(name) else name[:-1]


class _Dresser(NamedTuple):
    """Writes the nodes of one page of a kind, such as "product"."""

    address: str
    kind: str

    def write(self, nodes: Iterable[LexborNode]) -> Iterator[str]:
        """Yields the HTML of nodes in order; consecutive nodes of one part of the page share a container."""
        for part, run in groupby(nodes, _part_of):
            inside = "".join(map(self._item, run))
            if not part:
                yield inside
            elif part[0].startswith("recommended_"):
                label = part[0].replace("_", " ").capitalize()
                yield f'<section class="strip cards" aria-label="{escape(label)}">{inside}</section>'
            else:
                legend = f"<h2>{_WORDS[part[-1]]}</h2>" if part[-1] in _WORDS else ""
                start = "".join(f'<div class="in-{escape(word)}">' for word in part[:-1])
                style = "cards" if part[-1] in ("search_results", "also_viewed") else "row"
                yield f'{start}<div class="in-{escape(part[-1])} {style}">{legend}{inside}</div>'
                yield "</div>" * (len(part) - 1)

    def _item(self, node: LexborNode) -> str:
        tag, name = node.tag, _name(node)
        if tag == "section" or _is_of_article(name):
            return self._card([node] if name else list(_items(node)))
        if tag == "div":
            return f'<div class="in-cart">{self._card(list(_items(node)))}</div>'
        if tag in _GROUPS:
            logo = '<span class="logo">Demo shop</span>' if tag == "header" else ""
            return f"<{tag}>{logo}{''.join(self.write(_items(node)))}</{tag}>"
        return self._action(node, name) if name else self._plain(node)

    def _plain(self, node: LexborNode) -> str:
        text = _text(node)
        is_article = node.tag == "h1" and self.kind in ("product", "reviews")
        picture = _picture(text.lower().split()) if is_article else ""
        return f'{picture}<{node.tag} class="{escape(node.attributes.get("class") or "")}">{escape(text)}</{node.tag}> '

    def _card(self, nodes: Sequence[LexborNode]) -> str:
        """Writes an article: picture, name and facts, and in the cart also a button."""
        action = next(node for node in nodes if _name(node))
        name = _name(action)
        words = name[-2].split("_")
        title = " ".join(words).title()
        facts = "".join(self._plain(node) for node in nodes if not _name(node) and _text(node) != title)
        picture = _picture(words)
        if name[-1] == "view_product":
            heading = f'<h3><a href="{self._to(name)}">{escape(title)}</a></h3>'
            return f'<article class="card">{picture}{heading}<div class="facts">{facts}</div></article>'
        button = self._button(name, _text(action))
        return f'<article class="card line">{picture}<h3>{escape(title)}</h3>{facts}{button}</article>'

    def _action(self, node: LexborNode, name: Sequence[str]) -> str:
        last, text = name[-1], _text(node)
        if node.tag == "input":
            field = f'<input class="go-{last}" type="search" name="q" aria-label="Search" value="{escape(text)}">'
            return (
                f'<form class="searching" role="search" action="{self.address}/search">{field}'
                "<button>Search</button></form>"
            )
        if text in name[:-1]:  # a checkbox of the small shop has the kind of refinement as its text
            text = last
        if node.tag == "button":
            return self._button(name, text)
        role, checked = node.attributes.get("role"), node.attributes.get("aria-checked")
        state = f' role="{role}" aria-checked="{checked or "false"}"' if role else ""
        return f'<a class="go-{escape(last)}"{state} href="{self._to(name)}">{escape(_capitalized(text))}</a>'

    def _button(self, name: Sequence[str], text: str) -> str:
        return (
            f'<form class="acting" method="post" action="{self._to(name)}">'
            f'<button class="go-{escape(name[-1])}">{escape(_capitalized(text))}</button></form>'
        )

    def _to(self, name: Sequence[str]) -> str:
        return f"{self.address}/do/{quote('.'.join(name))}"


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _picture(words: Sequence[str]) -> str:
    """Writes the picture of an article: its colour and the first letter of its kind."""
    _, colour, noun = [*words, "", "", ""][:3]
    return f'<span class="picture tint-{escape(colour)}" data-letter="{escape(noun[:1])}"></span>'
