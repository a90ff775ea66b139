"""What a plain reading of a page with BeautifulSoup finds to click or type into: slow, obvious, on another parser."""

from collections import Counter

from bs4 import BeautifulSoup, Tag

NEVER_SEEN = {
    "script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "math", "canvas", "audio",
    "video", "map", "datalist", "noembed", "noframes", "head",
}  # fmt: skip


def visible_targets(page: str, dropped: str = "", parser: str = "lxml") -> Counter[tuple[str, str]]:
    """The links, buttons and inputs that no attribute, their own or around them, hides: (tag, key) -> how many.

    Args:
        dropped: A selector of what is not to be counted, nor anything inside it.
    """
    soup = BeautifulSoup(page, parser)
    for element in soup.select(dropped) if dropped else ():
        element.extract()
    found: Counter[tuple[str, str]] = Counter()
    for element in soup.find_all(["a", "button", "input", "select", "textarea"]):
        if element.name == "a" and not element.has_attr("href"):
            continue
        if element.name == "input" and str(element.get("type", "")).strip().lower() == "hidden":
            continue
        if not any(_is_hidden(ancestor) for ancestor in [element, *element.parents] if isinstance(ancestor, Tag)):
            found[element.name, key_of(element.name, element.attrs)] += 1
    return found


def key_of(tag: str, attributes: dict[str, str | None]) -> str:
    """What tells a target from others of its tag on the same page, as far as its attributes go."""
    value = attributes.get("href" if tag == "a" else "type" if tag in ("button", "input") else "id")
    return " ".join((value or "").split())


def _is_hidden(element: Tag) -> bool:
    if element.name in NEVER_SEEN or element.has_attr("hidden"):
        return True
    if str(element.get("aria-hidden", "")).strip().lower() == "true":
        return True
    for declaration in str(element.get("style", "")).lower().split(";"):
        name, _, value = declaration.partition(":")
        value = value.replace("!important", "").strip()
        if (name.strip(), value) in {("display", "none"), ("visibility", "hidden"), ("visibility", "collapse")}:
            return True
    return False
