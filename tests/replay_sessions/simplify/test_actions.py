"""Elements that can be acted on, and their names where no text gives one."""

import pytest

from replay_sessions.simplify import simplify


def names(html: str) -> list[str]:
    return [element.name for element in simplify(html).elements]


@pytest.mark.parametrize(
    "attributes",
    [
        "role=Button", "role='LINK x'", "onclick='x()'", "ng-click=x", "data-ng-click=x", "@click=x",
        "@click.prevent=x", "v-on:click=x", "x-on:click.stop=x", "wire:click=x", "(click)=x", "on:click=x",
        "hx-get=/x", "tabindex=0", "data-action='click->menu#open'", "jsaction='click:x.y'", "contenteditable",
    ],
)  # fmt: skip
def test_roles_in_any_case_and_handlers_of_clicks_make_an_element_one_to_act_on(attributes):
    assert names(f"<div {attributes}>Buy</div>") == ["buy"]


@pytest.mark.parametrize(
    "page",
    [
        "<div tabindex=-1>Buy</div>",
        "<div data-action=a-modal>Buy</div>",
        "<div jsaction='mouseover:x'>Buy</div>",
        "<section tabindex=0>Buy</section>",
        "<div tabindex=0></div>",
    ],
)
def test_look_alikes_of_clickable_elements_are_none(page):
    assert names(page) == []


def test_a_box_that_the_keyboard_reaches_leaves_its_links_to_themselves():
    assert names("<div tabindex=0><a href=/a>A</a></div>") == ["a"]


def test_areas_of_an_image_are_links():
    page = "<map name=m><area href=/shoes alt='Red shoes'><area alt=none></map><img usemap='#m' src=x>"
    assert names(page) == ["red_shoes"]


def test_links_in_a_drawing_are_links():
    page = (
        "<svg><style>.x{}</style><a href=/fr><text>France</text></a><a xlink:href=/de><title>Germany</title></a></svg>"
    )
    assert names(page) == ["france", "germany"]


def test_a_group_of_options_says_its_label():
    page = "<select name=c><optgroup label=Europe><option>France</optgroup><optgroup label=Asia><option>Japan</select>"
    assert names(page) == ["c.france", "c.japan"]
    assert ">Europe<" in simplify(page).html


def test_elements_of_a_frame_with_srcdoc_can_be_acted_on():
    assert names('<iframe srcdoc="<button>Pay</button>"></iframe><a href=/b>B</a>') == ["pay", "b"]


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("<button>−</button>", "minus"),
        ("<button>+</button>", "plus"),
        ("<a href='#'>›</a>", "next"),
        ("<button>×</button>", "close"),
        ("<button aria-label='Close menu'>×</button>", "close_menu"),
        ("<button title='Close menu'>×</button>", "close_menu"),
        ("<button><img alt='Close menu'></button>", "close_menu"),
        ("<button><svg><title>Close menu</title></svg></button>", "close_menu"),
        ("<button><i class='fa fa-search'></i></button>", "search"),
        ("<button class='btn modal__closeButton'></button>", "close"),
        ("<button><svg><use href='#icon-cart'></use></svg></button>", "cart"),
        ("<div>Colour <button></button></div>", "colour_button"),
        ("<label></label><input type=checkbox>Gift wrap", "gift_wrap"),
        ("<a href='https://www.youtube.com/channel/UC12'></a>", "youtube"),
        ("<div role=Slider></div>", "slider"),
    ],
)
def test_icons_and_signs_have_names(page, name):
    assert names(page) == [name]


def test_a_title_survives_an_image_in_the_noscript_of_the_head():
    page = (
        "<html><head><noscript><img src=x></noscript><title>Kettles</title></head><body><a href=x>A</a></body></html>"
    )
    assert "<title>Kettles</title>" in simplify(page).html


def test_a_title_of_a_drawing_is_not_that_of_the_page():
    assert "<title></title>" in simplify("<svg><title>Logo</title></svg><a href=x>A</a>").html


def test_thirty_thousand_shapes_that_close_themselves_are_no_damage():
    assert names(f"<svg>{'<path d=M0 />' * 30_000}</svg><a href=x>A</a>") == ["a"]


def test_drawings_with_roles_and_with_html_in_them_are_acted_on():
    page = (
        "<svg role=radio aria-label=Navy aria-checked=true><path d=M0 /></svg>"
        "<svg><g role=radio aria-label=Sand><circle r=1 /></g></svg><svg role=img aria-label=Logo></svg>"
        "<svg><foreignObject><iframe srcdoc='<button>Chat</button>'></iframe></foreignObject></svg>"
    )
    assert names(page) == ["navy", "sand", "chat"]
    assert '<span name="navy" role="radio" aria-label="Navy" aria-checked="true">' in simplify(page).html
