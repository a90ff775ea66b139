"""The parts of a raw page that stay, and how they are written."""

import gc

import pytest

from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import BadSession
from replay_sessions.simplify import simplify


def body(html: str, **options: object) -> str:
    page = simplify(html, **options).html
    return page.split("<body>")[1].split("\n</body>")[0].strip()


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>secret</p>",
        "<p style='color: red; display : none !important'>secret</p>",
        "<p style='VISIBILITY:HIDDEN'>secret</p>",
        "<div hidden><section><a href=x>secret</a></section></div>",
        "<input type=hidden value=secret>",
        "<input type=' HIDDEN ' value=secret>",
        "<script>secret</script>",
        "<style>secret {}</style>",
        "<noscript><p>secret</p></noscript>",
        "<template><p>secret</p></template>",
        "<!-- secret -->",
        "<iframe src=secret></iframe>",
        "<svg><text>secret</text></svg>",
    ],
)
def test_invisible_parts_are_left_out(hidden):
    assert body(f"<body><p>shown</p>{hidden}</body>") == "<p>shown</p>"


def test_the_off_screen_text_that_carries_amazons_price_stays():
    price = (
        "<span class=a-price><span class=a-offscreen>$12.99</span><span aria-hidden=true>$12<sup>99</sup></span></span>"
    )
    assert body(f"<p>{price}</p>") == "<p>$12.99</p>"


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("<b>Dress</b> <i aria-hidden=true>19 €</i>", "Dress 19 €"),
        ("<b>New price</b> <i aria-hidden=true>price</i>", "New price"),
        ("<i aria-hidden=true>$12<sup>99</sup></i> <b>now $12.99!</b>", "now $12.99!"),
        ("<b>$112.99</b> <i aria-hidden=true>$12.99</i>", "$112.99 $12.99"),
        ("<b style=display:none>19 €</b> <i aria-hidden=true>19 €</i>", "19 €"),
        ("<i aria-hidden=true>×</i> <b>Close</b>", "Close"),
        ("<img alt='Red kettle'> <i aria-hidden=true>Red kettle</i>", '<img alt="Red kettle">'),
        ("<div role=dialog aria-hidden=true><h4>Ask us</h4></div><b>shown</b>", "shown"),
        ("<div aria-hidden=true><h1>Kettle</h1></div>OK", "<h1>Kettle</h1>OK"),
        ("<i aria-hidden=true>New</i> New year", "New year"),
        ("<i aria-hidden=true>New</i> <i aria-hidden=true>New</i>", "New"),
    ],
)
def test_text_that_only_screen_readers_do_not_read_stays_but_for_copies(page, seen):
    assert body(f"<p>{page}</p>").replace("\n", "").removeprefix("<p>").removesuffix("</p>") == seen


def test_wrappers_and_empty_elements_are_left_out_and_structure_stays():
    page = "<div><div><span></span><div><p>one</p></div><ul><li>two</li><li></li><li>three</li></ul></div></div>"
    assert body(page) == "<div>\n<p>one</p>\n<ul>\n<li>two</li>\n<li>three</li></ul></div>"


def test_words_are_kept_apart_as_the_page_shows_them():
    assert body("<p>5.0<span>stars</span><b>K</b>ettle</p>") == "<p>5.0 stars<!-- -->Kettle</p>".replace(
        "<!-- -->", " "
    )
    assert body("<p><span>$</span><span>12</span><sup>99</sup></p>") == "<p>$12 99</p>"
    assert body("<p>red<br>kettle</p>") == "<p>red kettle</p>"
    assert body("<p>a\u200b\u00a0 b\n\tc\x00</p>").replace("\ufffd", "") == "<p>a b c</p>"


def test_text_that_looks_like_markup_stays_text():
    page = "<p>1 &lt; 2 &amp; <a href=x title='a &quot;b&quot; &lt;c>'>x</a></p>"
    assert body(page) == '<p>1 &lt; 2 &amp; <a name="x" title="a &quot;b&quot; &lt;c&gt;">x</a></p>'


def test_fields_show_perceived_text_alone():
    page = "<input type=checkbox checked value=7 data-x=1 onclick='f()' aria-label='In stock'>"
    assert body(page) == '<input name="in_stock" type="checkbox" aria-label="In stock" checked>'
    assert "hunter2" not in body("<input type=password value=hunter2>")
    assert 'value="red kettle"' in body("<input type=search value='red kettle'>")


def test_labels_come_from_where_the_page_keeps_them():
    page = """
        <label for=q>Search term</label><input id=q>
        <label><input type=radio> Blue</label>
        <input type=submit aria-labelledby=announce><span id=announce aria-hidden=true>Add to Cart</span>
        <button><svg><title>Close</title></svg></button><a href=x><img alt="Red kettle" src=y></a>
        <button title="Next page"></button><input placeholder="E-mail"><input type=submit value=Go>
        <a href=x id=promo></a>
    """
    names = [element.name for element in simplify(page).elements]
    assert names == [
        "search_term", "blue", "add_to_cart", "close", "red_kettle", "next_page", "e_mail", "go", "promo",
    ]  # fmt: skip


def test_a_select_lends_its_name_to_its_options():
    page = "<select aria-label=Quantity><option selected>1</option><option>2</option></select>"
    assert '<option name="quantity.2">2</option>' in body(page)
    assert [element.name for element in simplify(page).elements] == ["quantity.1", "quantity.2"]


def test_a_tick_box_in_a_link_is_named_after_the_link():
    page = "<a href=x><input type=checkbox id=autoid-42><span>Nike</span></a>"
    assert [element.name for element in simplify(page).elements] == ["nike", "nike_checkbox"]


def test_five_thousand_nested_divs_are_no_matter():
    page = "<div>" * 5000 + "<a href=x>deep</a>" + "</div>" * 5000
    assert body(page) == '<a name="deep">deep</a>'


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<p>Käse".encode(), "Käse"),
        ("<meta charset=iso-8859-1><p>Käse".encode("latin-1"), "Käse"),
        ("<meta charset=windows-1251><p>Чайник".encode("cp1251"), "Чайник"),
        ("<meta charset=shift_jis><p>電気ケトル".encode("shift_jis"), "電気ケトル"),
        ("\ufeff<p>Käse".encode("utf-16"), "Käse"),
    ],
)
def test_bytes_are_decoded_as_the_page_declares(raw, text):
    assert text in simplify(raw).html


@pytest.mark.parametrize(
    "page", ["", b"", "\x00", "\ud800", "<", "<frameset><frame src=x></frameset>", b"\xff\xfe\xfa"]
)
def test_pages_of_nothing_are_pages(page):
    assert simplify(page).html.startswith("<html>")


def test_the_same_page_gives_the_same_bytes_and_simple_html_stays_simple():
    page = "<title>Shop</title><nav><a href=1>Home</a></nav><main><h1>Kettle</h1><button>Buy</button></main>"
    first = simplify(page)
    assert first == simplify(page)
    assert first.html.startswith("<html>\n<head><title>Shop</title></head>\n<body>")
    assert first.elements == find_elements(first.html)


@pytest.mark.parametrize("is_on", [True, False])
def test_the_garbage_collector_is_left_as_it_was_found(is_on):
    was_on = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        simplify("<a href=x>Kettle</a>")
        with pytest.raises(BadSession):
            simplify("<div>" * 200_000)
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if was_on else gc.disable)()
