"""Names: unique, the same on every run, and steady when the page changes elsewhere."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_sessions.simplify import simplify
from replay_sessions.simplify.names import Namer, Scope, leaf, slug


def names(page: str) -> list[str]:
    return re.findall(r' name="([^"]*)"', simplify(page).html)


def card(title: str, price: str = "$20") -> str:
    links = f"<h3><a href=x>{title}</a></h3><p>{price}</p><a href=y>{price}</a>"
    return f"<li>{links}<button>Add to cart - {price}</button></li>"


def grid(*cards: str) -> str:
    return f"<main><ul>{''.join(cards)}</ul></main>"


def test_a_card_is_a_scope_named_by_its_title():
    assert names(grid(card("Red kettle"))) == ["red_kettle.view", "red_kettle.price", "red_kettle.add_to_cart"]


def test_a_changed_price_leaves_names_as_they_are():
    before = names(grid(card("Red kettle", "$20"), card("Toaster", "€ 35,90")))
    assert names(grid(card("Red kettle", "$1,299.00"), card("Toaster", "35 kr"))) == before


def test_an_added_card_leaves_other_names_as_they_are():
    before = names(grid(card("Red kettle"), card("Toaster")))
    after = names(grid(card("Blue kettle"), card("Red kettle"), card("Mug"), card("Toaster")))
    assert [name for name in after if name in before] == before


def test_cards_of_one_title_and_links_of_one_text_are_numbered_in_the_order_of_the_page():
    assert [name for name in names(grid(card("Mug"), card("Mug"))) if name.endswith("add_to_cart")] == [
        "mug.add_to_cart",
        "mug_2.add_to_cart",
    ]
    assert names("<a href=1>More</a><a href=2>More</a><a href=3>More 2</a>") == ["more", "more_2", "more_2_2"]


def test_landmarks_are_scopes():
    top = "<header><nav><a href=1>Deals</a></nav><form role=search><input placeholder=Find></form></header>"
    page = f"{top}<footer><a href=2>Help</a></footer>"
    assert names(page) == [
        "header", "header.nav", "header.nav.deals", "header.search", "header.search.find", "footer", "footer.help",
    ]  # fmt: skip


def test_deep_scopes_lose_their_middle():
    page = (
        "<header><nav><section><h2>One</h2><section><h3>Two</h3><a href=x>Three</a></section></section></nav></header>"
    )
    assert names(page)[-1] == "header.one.two.three"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("4 Stars & Up", "4_stars_up"),
        ("Kärcher K1800", "kärcher_k1800"),
        ("電気ケトル 1.7L", "電気ケトル_1_7l"),
        ("Чайник электрический", "чайник_электрический"),
        ("قلاية هوائية", "قلاية_هوائية"),
        ("इलेक्ट्रिक केतली", "इलेक्ट्रिक_केतली"),
        ("กาต้มน้ำไฟฟ้า", "กาต้มน้ำไฟฟ้า"),
        ("__a__b__", "a_b"),
        ("!?", ""),
    ],
)
def test_slugs_keep_the_letters_of_all_scripts(text, word):
    assert slug(text) == word


def test_slugs_end_at_a_word_and_at_about_sixty_characters():
    assert slug("electric kettle with " * 10) == "electric_kettle_with_electric_kettle_with_electric_kettle"
    assert len(slug("x" * 500)) == 60


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("$25 - $50", "25_50"),
        ("9,19 € - 23,64 €", "price"),
        ("Under $25", "under_25"),
        ("$200 & above", "200_above"),
        ("€ 1.299,00", "price"),
        ("-15% $59.49 $69.99", "price"),
        ("Kettle 1.7 L for 29,99 €", "kettle_1_7_l_for"),
        ("Canon EOS R5", "canon_eos_r5"),
        ("Nike (1,204)", "nike"),
        ("¥3,980", "price"),
    ],
)
def test_prices_are_left_out_of_names_unless_they_are_chosen(text, word):
    assert leaf(text) == word


def test_a_name_is_never_empty():
    assert names("<a href=x>!</a><button></button><input><a href=y id=nav-17>!</a>") == [
        "link",
        "button",
        "text",
        "link_2",
    ]


@given(st.lists(st.sampled_from(["a", "a_2", "a_2_2", "b", "a_3"]), max_size=30))
def test_no_name_is_handed_out_twice(wanted):
    namer, scope = Namer(), Scope(None, "")
    given_names = [namer.name(scope, word) for word in wanted]
    assert len(set(given_names)) == len(given_names)


def test_ten_thousand_elements_of_one_name_take_no_longer_each():
    assert names("<a href=x>More</a>" * 10_000)[-1] == "more_10000"


@pytest.mark.parametrize(
    ("link", "name"),
    [
        ("<a href=x><span class=badge>Sponsored</span><h3>Nike Air</h3><p>$30</p></a>", "nike_air"),
        ("<a href=x><span>New</span><span>Nike Air</span><span>$30</span></a>", "nike_air"),
        ("<a href=x>Cart <span>3</span></a>", "cart"),
        ("<a href=x>Cart 3</a>", "cart"),
        ("<a href=x>Cart (3)</a>", "cart"),
        ("<a href=x aria-label='Cart, 3 items'>3</a>", "cart"),
        ("<a href=x>iPhone 14</a>", "iphone_14"),
        ("<a href=x>4 stars</a>", "4_stars"),
        ("<a href='https://www.facebook.com/shop'><svg></svg></a>", "facebook_shop"),
        ("<a href='/p/odger-chair-00457311/'><img src=x></a>", "odger_chair"),
    ],
)
def test_a_link_is_named_by_its_heading_and_without_badges_and_counts(link, name):
    assert names(link) == [name]


def test_repeated_parts_of_a_page_are_cards():
    product = (
        "<div class='card {0}'><a href=1><img alt='{0}'></a><a href=1>{0}</a><span>$3</span><button>Buy</button></div>"
    )
    assert names(product.format("Kettle") + product.format("Mug")) == [
        "kettle.image", "kettle.view", "kettle.buy", "mug.image", "mug.view", "mug.buy",
    ]  # fmt: skip


def test_elements_of_a_tag_of_the_site_s_own_are_cards():
    tile = (
        "<shop-tile{}><template shadowrootmode=open><a href=1>{}</a><button>Buy</button></template><p>x</p></shop-tile>"
    )
    page = tile.format("", "Kettle") + tile.format(" class=sold", "Mug")
    assert names(page) == ["kettle.view", "kettle.buy", "mug.view", "mug.buy"]
    assert names(page.replace("shop-tile", "div")) == ["kettle", "buy", "mug", "buy_2"]


def test_a_menu_is_named_by_the_link_that_opens_it():
    menu = "<li><a href=1>{}</a><ul><li><a href=2>Jeans</a></li><li><a href=3>Tops</a></li></ul></li>"
    page = f"<nav><ul>{menu.format('Women')}{menu.format('Men')}</ul></nav>"
    assert names(page)[1:] == [
        "nav.women.view", "nav.women.jeans", "nav.women.tops", "nav.men.view", "nav.men.jeans", "nav.men.tops",
    ]  # fmt: skip


def test_parts_of_which_all_begin_alike_are_named_by_their_text():
    vendor = "<div class=vendor><p>{}</p><a href=x>Expand</a><input type=checkbox aria-label=Allow></div>"
    assert names(vendor.format("Google") + vendor.format("Criteo") + vendor.format("Adobe"))[:2] == [
        "google.expand",
        "google.allow",
    ]


def test_the_title_of_a_section_is_not_the_title_of_the_first_product_in_it():
    product = "<div class=product><h3><a href=1>{}</a></h3><button>Buy</button></div>"
    page = f"<section>{product.format('Kettle')}{product.format('Mug')}</section>"
    assert names(page) == ["kettle.view", "kettle.buy", "mug.view", "mug.buy"]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("<label><input type=radio name=c value=1><img alt=Navy></label>", "navy"),
        ("<label><input type=checkbox name=b value=1><img alt=Acme> (12)</label>", "acme"),
        ("<input type=radio name=c id=c1><label for=c1><img alt=Olive></label>", "olive"),
        ("<input type=radio name=c id=c1><label for=c1 title=Plum><span></span></label>", "plum"),
        ("<label aria-label=Zeta><input type=checkbox name=b></label>", "zeta"),
        ("<label for=c1><svg><title>Nord</title></svg></label><input id=c1 type=checkbox name=b>", "nord"),
        ("<label><input type=radio name=c>Sand<img alt=swatch></label>", "sand"),
        ("<button class=close><span aria-label='Remove mug'>×</span></button>", "remove_mug"),
        ("<button><b aria-label='Remove mug'>Remove</b></button>", "remove_mug"),
        ("<button>Add <span aria-label='to the cart'>+</span></button>", "add"),
        ("<button aria-labelledby=t><span aria-label=Other>x</span></button><i id=t>Mug</i>", "mug"),
        ("<button aria-labelledby=t>x</button><img id=t alt='Red mug'>", "red_mug"),
        ("<button aria-labelledby=t>x</button><i id=t><img alt='A &amp; \"B\"'></i>", "a_b"),
        ("<button aria-labelledby=t>x</button><p id=t hidden><img alt='Tea pot'></p>", "tea_pot"),
        ("<button aria-labelledby='b t'>x</button><b id=b>Remove</b><img id=t alt=Mug>", "remove_mug"),
        ("<input type=checkbox aria-labelledby=t><img id=t alt=Acme hidden>", "acme"),
        ("<button aria-labelledby=t>x</button><i id=t><img alt=Red> <img alt=mug></i>", "red_mug"),
        ("<button aria-labelledby=t>x</button><svg id=t><title>Menu</title></svg>", "menu"),
        ("<button aria-labelledby=t>x</button><svg id=t aria-label='Main menu'></svg>", "main_menu"),
        ("<button id=b aria-label=Remove aria-labelledby='b t'>x</button><i id=t>Red mug</i>", "remove_red_mug"),
        ("<button aria-label=Remove aria-labelledby=gone>x</button><i id=t>Red mug</i>", "remove"),
        ("<a href=/p><img alt='Red kettle'><span>$39.50</span></a>", "red_kettle"),
        ("<a href=/p><img alt='Red kettle'><s>39,50 €</s> <b aria-label='now 29,50 €'>29,50 €</b></a>", "red_kettle"),
        ("<a href=?b=7><img alt=Sud> <span>(12)</span></a>", "sud"),
        ("<a href=?b=7><img alt=photo>Sud</a>", "sud"),
    ],
)
def test_images_and_inner_labels_name_elements_without_text(label, name):
    assert [element.name for element in simplify(f"<h1>Shop</h1>{label}").elements] == [name]


@pytest.mark.parametrize("select", ["<select>{}</select>", "<span>by</span> <select id=s name=7>{}</select> order"])
def test_a_label_around_a_list_of_options_names_it_whatever_its_options(select):
    for options in ("<option>Price<option>Name", "<option>Name<option>Date"):
        page = simplify(f"<h1>Shop</h1><label>Sort {select.format(options)}</label>")
        assert {element.name.partition(".")[0] for element in page.elements} == {
            "sort_by" if "by" in select else "sort"
        }


def test_tiles_of_an_image_and_a_price_keep_their_names_when_prices_and_other_tiles_change():
    tile = "<a class=tile href=/p/{0}><img alt='{0} pot'><span>${1}</span></a>"
    before = simplify("".join(tile.format(word, 10) for word in ("Red", "Blue", "Red"))).elements
    after = simplify("".join(tile.format(word, 8.5) for word in ("New", "Red", "Blue", "Red"))).elements
    assert [element.name for element in before] == ["red_pot", "blue_pot", "red_pot_2"]
    assert [element.name for element in after] == ["new_pot", *(element.name for element in before)]


def test_labels_inside_private_places_name_nothing():
    page = "<a href=# id=nav-x><span class=nav-shortened-name aria-label=Anna>A</span></a>"
    assert "anna" not in simplify(page, "amazon").html.lower()
