"""Whose names go from a page: announced in many languages and forms, and nothing that is no person's."""

import html
import re

import pytest

from replay_sessions.private_data import remove_from_text
from replay_sessions.simplify import simplify
from replay_sessions.simplify.page import SimplifiedPage


def page_of(body: str) -> SimplifiedPage:
    return simplify(f"<body>{body}</body>")


ANNOUNCED = [
    ("<p>¡Hola, Iñaki!</p>", "Iñaki"),
    ("<p>You are logged in as Wendell Ashcombe.</p>", "Wendell Ashcombe"),
    ("<h1>Svetlana's baby registry</h1>", "Svetlana"),
    ("<a href=/logout>Abmelden (Holger Brandis)</a>", "Holger Brandis"),
    ('<input id="lastname" value="Thornburgh">', "Thornburgh"),
    ("<select><option>Ship to Maud Trevelyan</option></select>", "Maud Trevelyan"),
    ("<ul><li><b>Marlowe Pettigrew</b>, 2210 Birchwood Ave Apt 6, Duluth, MN 55811</li></ul>", "Marlowe Pettigrew"),
    ("<p>Delivered, signed for by Mr T. Okonkwo</p>", "Okonkwo"),
    ("<label>Your message<textarea>Happy 40th! Lots of love from Godfrey</textarea></label>"
     "<label>From<input value='Godfrey Lascelles'></label>", "Godfrey"),
    ("<p>Szia, Bence!</p>", "Bence"),
    ("<p>Bun\u0103, Ionu\u021b!</p>", "Ionu\u021b"),
    ("<p>Xin chào, Thảo Nhi</p>", "Thảo Nhi"),
    ("<p>สวัสดี คุณณัฐพล</p>", "ณัฐพล"),
    ("<p>Γεια σου, Ευγενία!</p>", "Ευγενία"),
    ("<p>नमस्ते, आरती</p>", "आरती"),
    # Further forms of page and language.
    ("<p>Hello! My name is anna schmidt, order 4</p>", "anna schmidt"),
    ("<p>Kind regards,<br>Thaddeus Winterbourne</p>", "Winterbourne"),
    ("<p>Osoba kontaktowa: Bogusława Niedźwiedzka</p>", "Niedźwiedzka"),
    ("<p>Your order is on its way, Ptolemy!</p>", "Ptolemy"),
    ("<p>Sayın Nurcihan Kösemihal,</p>", "Kösemihal"),
    ("<p>Список желаний: Ярослав Щукин</p>", "Щукин"),
    ("<p>长谷的订单 收货人：王雨桐</p>", "王雨桐"),
    ("<p>山本 翔太 様のご注文</p>", "山本"),
    ("<p>AUGUSTINE PRIDEAUX</p><p>Member no. 6034 9910 2274</p>", "PRIDEAUX"),
    ("<p>Rechnungsempfänger<br>Gundula Petersen<br>Hafenkante 11<br>23966 Wismar</p>", "Gundula Petersen"),
    ("<label for=a>Name on card</label><input id=a value='Oswin Carrickfergus'>", "Carrickfergus"),
    ("<p>We write to anneke.holloway@example.org</p><p>Parcel shop: Anneke Holloway</p>", "Holloway"),
    ("<h1>Wish List of Cordelia Nwosu</h1><p>Cordelia and Dominic wait.</p>", "Dominic"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "name"), ANNOUNCED)
def test_a_name_goes_where_a_page_announces_it(body: str, name: str) -> None:
    page = html.unescape(page_of(body).html)
    assert not re.search(re.escape(name), page, re.IGNORECASE), page


@pytest.mark.parametrize(
    "body",
    [
        "<h1>Hey Google</h1><p>Works with Google Home</p><a href=/g>Google Nest</a>",
        "<a href=/terms>User Agreement</a>",
        "<header><a href=/account>SE CONNECTER</a></header>",
        "<header><a href=/account>Shipping Destination</a></header>",
        "<h2>Dear Santa Mug</h2><p>Dear Santa</p>",
        "<p>Ships to 90 countries</p>",
        "<p>Versand in 90 Länder</p>",
        "<p>Sold by Home Comfort Direct</p>",
        "<p>Sign in with Google</p>",
        "<p>Name: Stainless Steel Kettle</p>",
        "<p>Delivery by Royal Mail</p>",
        "<p>Gift for Mother</p>",
        "<p>Model 5, 12000 Watt</p>",
        "<p>Galaxy S21, 2021 Edition</p>",
        "<p>Best Sellers Rank: 12</p>",
    ],
)
def test_brands_products_and_words_of_the_interface_stay(body: str) -> None:
    assert page_of(body).html == simplify(f"<body>{body}</body>", private_data=False).html


def test_a_name_with_one_more_sign_goes_from_all_of_its_page() -> None:
    page = page_of("<p>Hello, Anna Lindqvist</p><p>Anna L.</p><p>Parcel shop Lindqvist</p><p>LINDQVIST</p>").html
    assert not re.search("anna|Lindqvist", page)


def test_a_name_goes_from_the_names_of_what_is_in_its_card() -> None:
    tile = "<li><h3>{}</h3><p>{}<br>{}</p><a href=/e>Edit</a><a href=/r>Remove</a></li>"
    tiles = (("Lionel Fanshawe", "1 Orchard Lea", "Malvern WR14 2BX"), ("Irma Gessner", "Am Wall 4", "54290 Trier"))
    assert not re.search("lionel|irma", page_of(f"<ul>{''.join(tile.format(*one) for one in tiles)}</ul>").html.lower())


def test_what_is_greeted_once_and_unknown_stays_elsewhere() -> None:
    page = page_of("<p>Thanks Zorblax!</p><h1>Zorblax 3000 toaster</h1>")
    assert "Zorblax 3000 toaster" in page.html
    assert [(removal.text, removal.signs) for removal in page.removed] == [("Zorblax", 2)]


def test_two_ways_to_announce_a_name_are_one_more_sign() -> None:
    page = page_of("<p>Thanks Zorblax!</p><p>Not Zorblax? Sign out</p><p>Zorblax, buy again</p>").html
    assert "Zorblax" not in page


def test_the_value_of_a_field_that_is_called_after_a_name_goes_from_the_page() -> None:
    page = page_of(
        "<label>Recipient's name<input name=n value='Tamsin Quillfeather'></label><p>We will tell Tamsin.</p>"
    )
    assert "Tamsin" not in page.html
    assert page.removed[0].found_by == "field"
    kept = page_of(
        "<label>Company name<input value='Acme Tools'></label><input placeholder='Search city' value='Lahore'>"
    )
    assert kept.removed == ()


@pytest.mark.parametrize(
    ("said", "cleaned"),
    [
        ("my name is anna schmidt and i wait", "my name is [name] and i wait"),
        ("je m'appelle océane tribolet et je veux payer", "je m'appelle [name] et je veux payer"),
        ("i live at 44 willow crescent", "i live at [address]"),
        ("a shirt by kate spade in navy", "a shirt by kate spade in navy"),
    ],
)
def test_names_and_streets_in_small_letters_go_from_what_a_shopper_says(said: str, cleaned: str) -> None:
    assert remove_from_text(said) == cleaned


@pytest.mark.parametrize(
    "lines",
    [
        "<p>Nádražní 762/31, 702 00 Ostrava</p>",
        "<p>Oude Gracht 212<br>3511 NR Utrecht</p>",
        "<p>6722 Szeged, Tisza Lajos körút 44.</p>",
        "<p>Τσιμισκή 43, 546 23 Θεσσαλονίκη</p>",
        "<p>Rua das Laranjeiras, 482, apto 301, 22240-006 Rio de Janeiro - RJ</p>",
    ],
)
def test_a_house_beside_a_postcode_is_an_address_whatever_its_street_is_called(lines: str) -> None:
    assert not re.search(r"\d", page_of(lines).html)
