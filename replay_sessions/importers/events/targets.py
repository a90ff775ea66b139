"""Finds the element of a screen that an event was done on, by its name."""

from typing import NamedTuple

from replay_sessions.importers.events.mapping import Event
from replay_sessions.importers.events.screens import ADD_TO_CART, Screen
from replay_sessions.importers.events.shop import Control


class Target(NamedTuple):
    """The name of the element that an action was done on, and the control that pages need for it."""

    name: str
    control: Control | None = None


OTHER = {
    "add_to_cart": Target("other.add_to_cart", "add_to_cart"),
    "remove_from_cart": Target("other.remove_from_cart", "remove_from_cart"),
}


def find_on(screen: Screen, event: Event) -> Target | None:
    """Returns the element of a screen that an action was done on; None if the screen has no such element."""
    item, detail = event.item, screen.detail
    name = screen.offer_names.get(item.id) if item else None
    match event.kind:
        case "select_item" if name:
            return Target(f"{name}.view_product")
        case "quickview" if name:
            return Target(f"{name}.quickview")
        case "follow_link" if event.links and (link := screen.link_names.get(event.links[0])):
            return Target(link)
        case "add_to_cart" if detail and (not item or item.id == detail.id or item.name == detail.name):
            return Target(ADD_TO_CART)
        case "add_to_cart":
            return Target(f"{name}.add_to_cart", "offer.add_to_cart") if name else OTHER["add_to_cart"]
        case "remove_from_cart":
            in_cart = screen.cart_names.get(item.id) if item else None
            control: Control | None = None if screen.is_of_cart else "mini_cart"
            return Target(f"{in_cart}.remove", control) if in_cart else OTHER["remove_from_cart"]
    return None
