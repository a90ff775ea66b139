"""A shop's data of a customer go from that customer's sessions in all forms, and nothing else does."""

import unicodedata

import pytest

from replay_sessions.private_data.customer_values import OwnValues, SharedWords
from replay_sessions.private_data.customers import Customers

ROWS = [
    {
        "user_id": "u1",
        "first_name": "Zoë",
        "last_name": "Brown",
        "email": "zoe.b@example.org",
        "phone": "+49 (30) 901 82-041",
        "street": "4 Orchard Close",
        "city": "Leeds",
        "postcode": "LS1 4AB",
        "birth_date": "1985-03-02T00:00:00",  # as pandas writes it
        "order_id": "A-100-2345",
    },
    {"user_id": "u1", "address": "Mühlenweg 12, 50667 Köln"},
    {"user_id": "u2", "name": "Rose Marie Miller", "city": "New York"},
    {"user_id": "u3", "name": "李明"},
]
OTHERS = '<p>Brown desk</p><a name="rose_gold">Rose gold</a><p>Ships from New York</p>'


def values(user: str = "u1", *pages: str) -> OwnValues:
    customers = Customers(ROWS)
    shared = SharedWords(customers)
    shared.count(["else"], pages)
    return OwnValues(customers.by_user[user], shared)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Hello, Zoë!", "Hello, [name]!"),
        ("ZOE BROWN", "[name]"),
        ("Brown, Zoë", "[name]"),
        ("Zoe's lists, Zoes Listen", "[name]'s lists, [name] Listen"),
        ("zoebrown", "[name]"),
        ("Zoey, Browning", "Zoey, Browning"),
        ("Zoe.B@Example.org", "[email]"),
        ("call 030/901 82 041 now", "call [phone] now"),
        ("0049-30-90182041", "[phone]"),
        ("4, orchard close, Leeds, LS1 4AB", "[address]"),
        ("Orchard Close", "[address]"),
        ("Leeds", "[address]"),
        ("4 cups, close", "4 cups, close"),
        ("Muehlenweg 12 or MÜHLENWEG 12", "[address] or [address]"),
        ("50667 Köln", "[address]"),
        ("born 02.03.1985; from 2/3/1985 on", "born [birth_date]; from [birth_date] on"),
        ("1985", "1985"),
        ("A1002345 or a-100-2345", "[order] or [order]"),
    ],
)
def test_a_value_goes_in_all_its_forms(text, left):
    assert values().remove_from_text(text) == left


def test_a_name_that_is_written_without_blanks_goes_from_other_words():
    assert values("u3").remove_from_text("您好李明先生") == "您好[name]先生"


@pytest.mark.parametrize(
    ("user", "text", "left"),
    [
        ("u1", "Brown desk", "Brown desk"),
        ("u1", "Zoe Brown", "[name]"),
        ("u1", "Hello, Brown", "Hello, [name]"),
        ("u1", "Hello desk of brown oak, " + "solid wood, " * 8, "Hello desk of brown oak, " + "solid wood, " * 8),
        ("u2", "Rose gold", "Rose gold"),
        ("u2", "Rose M.", "Rose M."),
        ("u2", "Rose ([email])", "[name] ([email])"),
        ("u2", "Rose Miller", "[name]"),
        ("u2", "Miller", "[name]"),
        ("u2", "Ships from New York", "Ships from New York"),
        ("u2", "Miller, New York", "[name], [address]"),
    ],
)
def test_a_word_on_others_pages_goes_beside_another_and_in_an_account_area(user, text, left):
    page = f"<p>{text}</p>"
    assert values(user, OTHERS).remove_from_page(page) == (f"<p>{left}</p>", {})


def test_a_line_that_each_user_has_with_a_name_of_their_own_is_an_account_area():
    customers = Customers(ROWS)
    shared = SharedWords(customers)
    shared.count(["u1"], (["<b>Moin Zoë</b>", "<p>Rose oil</p>"]))
    shared.count(["u2"], (["<b>Moin Rose</b>"]))
    page, _ = OwnValues(customers.by_user["u2"], shared).remove_from_page("<b>Moin Rose</b><b>Tea Rose</b>")
    assert page == "<b>Moin [name]</b><b>Tea Rose</b>"


def test_values_go_from_a_text_and_from_the_name_of_its_element_alone():
    page = (
        '<a name="hello_rose_account" title="Rose">Hello, Rose: account</a>'
        '<a name="lists_of_miller">Lists of Miller</a>'
        '<select name="hello_rose"><option name="hello_rose.rose">Hi Rose</option></select>'
        '<a name="rose_gold">Rose gold</a><img alt="Rose Marie Miller"><input name="who" value="Miller">'
    )
    cleaned, names = values("u2", OTHERS).remove_from_page(page)
    assert names == {
        "hello_rose_account": "hello_name_account",
        "lists_of_miller": "lists_of_name",
        "hello_rose": "hello_name",
        "hello_rose.rose": "hello_name.name",
        "rose_gold": "rose_gold",
        "who": "who",
    }
    assert "Hello, [name]: account" in cleaned
    assert '<img alt="[name]"><input name="who" value="[name]">' in cleaned
    assert ">Rose gold</a>" in cleaned


def test_entities_and_tags_are_no_words():
    page, _ = values().remove_from_page("<p class=brown>Zo&euml; &amp; co</p><b title='x'>M&uuml;hlenweg 12</b>")
    assert page == "<p class=[name]>[name] &amp; co</p><b title='x'>[address]</b>"


def test_values_go_from_addresses_of_pages():
    url = "https://shop.example/u/Zo%C3%AB-Brown/lists?q=orchard+close&p=3"
    assert values().remove_from_url(url) == "https://shop.example/u/[name]/lists?q=[address]&p=3"


def test_an_address_with_any_value_is_personal_as_a_whole():
    remover = values("u2", OTHERS)
    assert remover.remove_from_url("https://shop.example/rose/ring") == "https://shop.example/rose/ring"
    assert remover.remove_from_url("https://shop.example/rose?n=Miller") == "https://shop.example/[name]?n=[name]"


def test_a_page_of_the_account_is_an_account_area():
    url = "https://shop.example/account/addresses"
    assert values("u2", OTHERS).remove_from_page("<p>Rose</p>", url)[0] == "<p>[name]</p>"


def test_a_number_on_the_pages_of_many_users_is_the_shops():
    customers = Customers(ROWS)
    shared = SharedWords(customers)
    for user in ("a", "b", "c"):
        shared.count([user], (["<p>Call 030 90182041</p>"]))
    assert OwnValues(customers.by_user["u1"], shared).remove_from_text("+49 30 90182041") == "+49 30 90182041"


SCRIPTS = {
    "민수": ("김민수님 민숙", "김[name]님 민숙"),
    "अनिता": ("नमस्ते, अनिता! अनिताओं", "नमस्ते, [name]! अनिताओं"),
    "สมชาย": ("สวัสดีสมชายครับ", "สวัสดี[name]ครับ"),
    "রহিম": ("রহিম, রহিমা", "[name], রহিমা"),
    "முருகன்": ("வணக்கம் முருகன்", "வணக்கம் [name]"),
    "أحمد": ("لأحمد أَحْمَد", "ل[name]"),
    "Müller": ("Mu\u0308ller, Mul\u00adler, Mu\u0308llerin", "[name], Mu\u0308llerin"),
    "がき": ("がきさん、かき", "[name]さん、かき"),
}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_words_of_every_script_stay_or_go_whole(name, form):
    text, left = (unicodedata.normalize(form, part) for part in SCRIPTS[name])
    customers = Customers([{"user_id": "u", "name": name}])
    removed = OwnValues(customers.by_user["u"], SharedWords(customers)).remove_from_text(text)
    assert unicodedata.normalize("NFC", removed) == unicodedata.normalize("NFC", left)


def test_a_name_of_one_syllable_is_no_part_of_other_words_even_in_an_account_area():
    customers = Customers([{"user_id": "u", "first_name": "지영", "last_name": "이"}])
    remover = OwnValues(customers.by_user["u"], SharedWords(customers))
    page, _ = remover.remove_from_page("<p>상품이 좋아요, 이지영님 (이)</p>", "https://shop.example/account")
    assert page == "<p>상품이 좋아요, [name]님 ([name])</p>"


def test_a_text_without_values_stays_as_it_was_written():
    text = "Cafe\u0301 &eacute; <b>T&amp;C</b>"
    assert values().remove_from_page(text)[0] == text


def test_values_go_from_every_attribute_and_from_comments():
    page = "<!-- for {0} --><a href='/u/{1}?x=1' data-user=\"{0} Brown\" id={2} class=nav>x</a><img src='/{2}.png'>"
    cleaned = page.replace("{0} Brown", "{0}").format("[name]", "[name]", "[name]")
    assert values().remove_from_page(page.format("Zoë", "zo%C3%AB", "zoe"))[0] == cleaned


def test_a_phone_number_goes_between_other_numbers():
    assert values().remove_from_text("030 901 82041 7") == "[phone] 7"


def test_a_value_of_many_users_is_private_in_columns_of_a_private_kind_alone():
    rows = [{"user_id": f"u{n}", "currency": "EUR", "city": "Leeds", "note": f"note-{n % 2}1"} for n in range(3)]
    customers = Customers(rows)
    assert customers.shared_values == {("currency", "eur")}
    text = OwnValues(customers.by_user["u0"], SharedWords(customers)).remove_from_text("129.00 EUR, note-01, Leeds")
    assert text == "129.00 EUR, [customer], [address]"
    assert ("currency", "eur") not in Customers(rows[:2]).shared_values
