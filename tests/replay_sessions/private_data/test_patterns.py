"""Data that are private by their form go, and the texts of shops stay."""

import tomllib
from pathlib import Path

import pytest

from replay_sessions.private_data import find_private_data, remove_from_text

_FOLDER = Path(__file__).parent
_HARD_TEXTS = tomllib.loads((_FOLDER / "hard_product_texts.toml").read_text("utf-8"))
_PRODUCT_TEXTS = (_FOLDER / "product_texts.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Write to h-mueller_77@example.de.", "email", "h-mueller_77@example.de"),
        ("\ufdd0\ufdd1anna@example.org\ufdd2", "email", "anna@example.org"),  # signs of our own
        ("t.okonkwo+shop@example.co.uk", "email", "t.okonkwo+shop@example.co.uk"),
        ("officer.jane@gmail.com", "email", "officer.jane@gmail.com"),
        ("sales.maria@example.org", "email", "sales.maria@example.org"),
        ("hello.kitty@example.org", "email", "hello.kitty@example.org"),
        ("info@gmail.com", "email", "info@gmail.com"),  # anybody's
        ("邮箱：wang.fang@example.cn", "email", "wang.fang@example.cn"),
        ("Phone: (415) 555-0134", "phone", "(415) 555-0134"),
        ("617-555-0199", "phone", "617-555-0199"),
        ("303.555.0142", "phone", "303.555.0142"),
        ("We will call +1 212-555-0187 on arrival.", "phone", "+1 212-555-0187"),
        ("+44 7700 900123", "phone", "+44 7700 900123"),
        ("+49 30 23125 014", "phone", "+49 30 23125 014"),
        ("+33 6 39 98 55 21", "phone", "+33 6 39 98 55 21"),
        ("+86 139 1234 5678", "phone", "+86 139 1234 5678"),
        ("Paid with 4111 1111 1111 1111", "card", "4111 1111 1111 1111"),
        ("5500-0000-0000-0004", "card", "5500-0000-0000-0004"),
        ("3782 822463 10005", "card", "3782 822463 10005"),
        ("6011000990139424", "card", "6011000990139424"),
        ("IBAN: DE89 3704 0044 0532 0130 00 BIC COBADEFF", "card", "DE89 3704 0044 0532 0130 00"),
        ("GB29NWBK60161331926819", "card", "GB29NWBK60161331926819"),
        ("SSN: 536-90-4399", "id_number", "536-90-4399"),
        ("my social security number is 536-90-4399", "id_number", "536-90-4399"),
        ("Steuer-ID: 86 095 742 719", "id_number", "86 095 742 719"),
        ("N° de sécurité sociale : 2 55 08 14 168 025 38", "id_number", "2 55 08 14 168 025 38"),
        ("DNI 12345678Z", "id_number", "12345678Z"),
        ("Codice fiscale RSSMRA85T10A562S", "id_number", "RSSMRA85T10A562S"),
        ("PESEL: 44051401359", "id_number", "44051401359"),
        ("Olá, o CPF 529.982.247-25 foi confirmado", "id_number", "529.982.247-25"),
        ("Aadhaar 2341 2341 2346", "id_number", "2341 2341 2346"),
    ],
)
def test_a_value_is_found_by_its_form(text, kind, value):
    assert [(span.kind, span.text) for span in find_private_data(text)] == [(kind, value)]
    assert remove_from_text(text) == text.replace(value, f"[{kind}]")


@pytest.mark.parametrize(
    "text",
    [
        "Color Name: Midnight Blue",
        "Brand Name: Hugo Boss",
        "Ordinateur portable 15 pouces",
        "Hello, Anna Lindqvist",
        "Call 1-800-275-2273 or +1 800 275 2273",  # free lines are nobody's
        "support@shop.example",
        "customer-service@shop.example",
        "44051401359",  # a tax number somewhere, and no word says so
        "DNI 12345678A",  # not its letter
        "CPF 529.982.247-24",  # not its check digits
        "4111 1111 1111 1112",
        "DE89 3704 0044 0532 0130 01",
        "EAN 4405140135912",
    ],
)
def test_texts_that_look_private_stay(text):
    assert find_private_data(text) == []


@pytest.mark.parametrize("text", [*_PRODUCT_TEXTS, *(text for texts in _HARD_TEXTS.values() for text in texts)])
def test_no_text_of_a_product_loses_anything(text):
    assert remove_from_text(text) == text


def test_a_tax_number_goes_wherever_the_text_repeats_it():
    assert remove_from_text("SSN\n536-90-4399\n536-90-4399") == "SSN\n[id_number]\n[id_number]"


def test_a_mailbox_is_a_shops_at_its_own_domain_alone():
    text = "info@shop.example, info@mail.shop.example, info@annas-blog.example"
    assert remove_from_text(text) == text
    assert remove_from_text(text, {"m.shop.example", "shop.example"}) == text.replace(
        "info@annas-blog.example", "[email]"
    )
