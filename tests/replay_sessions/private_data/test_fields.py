"""Form fields that are called after what they hold."""

import pytest

from replay_sessions.private_data import kind_of_field, kinds_in_page, remove_from_page


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"type": "email", "value": "a@b.example"}, "email"),
        ({"type": "tel"}, "phone"),
        ({"autocomplete": "shipping given-name"}, "name"),
        ({"autocomplete": "name"}, "name"),
        ({"autocomplete": "address-line1"}, "address"),
        ({"autocomplete": "cc-number"}, "card"),
        ({"autocomplete": "bday-year"}, "birth_date"),
        ({"name": "customer[last_name]"}, "name"),
        ({"id": "shipping_zipcode"}, "address"),
        ({"name": "name"}, ""),
        ({"name": "q", "type": "search"}, ""),
        ({"name": "email", "type": "checkbox"}, ""),
        ({"type": "email", "value": "your email"}, ""),
        ({"type": "tel", "value": "Phone"}, ""),
    ],
)
def test_the_kind_of_a_field(attributes, kind):
    assert kind_of_field(attributes) == kind


def test_fields_of_a_simplified_page_lose_typed_text():
    page = '<input name="checkout.first_name" type="text" value="Anna"><input name="search" value="Anna">'
    assert remove_from_page(page) == page.replace('"Anna"', '"[name]"', 1)
    assert kinds_in_page(page) == ["name"]
