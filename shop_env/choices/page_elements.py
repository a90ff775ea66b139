"""The elements of a page with their words and places, cached by page, because successive steps show the same pages."""

from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser

from replay_sessions.elements import Element, find_elements
from shop_env.choices.offers import read_offers
from shop_env.lists import Place, read_places
from shop_env.shopper_words import words_of

CACHED_PAGES = 512
PAGE_WORDS = 200
ELEMENT_WORDS = 32


@lru_cache(CACHED_PAGES)
def page_elements(page: str) -> list[Element]:
    """Returns the named elements of a simplified page in document order."""
    return find_elements(page)


@lru_cache(CACHED_PAGES)
def element_places(page: str) -> dict[str, Place]:
    """Returns the place of each element in its list, by the element's name."""
    return read_places(page_elements(page))


@lru_cache(CACHED_PAGES)
def element_words(page: str) -> dict[str, tuple[str, ...]]:
    """Returns the distinct words of each element's name, text and card, by the element's name."""
    cards = read_offers(page).card_texts
    return {
        element.name: tuple(
            dict.fromkeys(words_of(f"{element.name} {element.text} {cards.get(element.name, '')}")[:ELEMENT_WORDS])
        )
        for element in page_elements(page)
    }


@lru_cache(CACHED_PAGES)
def visible_words(page: str) -> list[str]:
    """Returns the first words of a page's visible text."""
    body = LexborHTMLParser(page).body
    return words_of(body.text(separator=" ") if body is not None else "")[:PAGE_WORDS]
