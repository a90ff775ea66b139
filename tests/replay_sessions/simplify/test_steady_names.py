"""Names stay as they are when the page changes beside what they name."""

from replay_sessions.simplify import simplify


def _names(body: str) -> list[str]:
    return [element.name for element in simplify(f"<body>{body}</body>").elements]


def _cards(*cards: str) -> str:
    return "".join(f"<div class=card>{card}</div>" for card in cards)


def _card(title: str, number: int, remark: str = "") -> str:
    address = f"/p/{title.lower().replace(' ', '-')}-{number}"
    return f"<a href={address}>{remark}<span>{title}</span></a><button>Buy</button>"


def test_place_in_a_carousel_titles_no_card():
    def carousel(shift: int) -> str:
        slides = [_card("Blue kettle", 4711), _card("Red pan", 4712)]
        return "".join(
            f"<div class=s role=group aria-label='slide {place + shift} of 7'>{slide}</div>"
            for place, slide in enumerate(slides)
        )

    assert _names(carousel(1)) == _names(carousel(3))
    assert "blue_kettle.buy" in _names(carousel(1))


def test_cards_of_one_title_are_told_apart_by_their_addresses_and_not_by_their_order():
    first, second = _card("Wall hook", 40281), _card("Wall hook", 40282)
    other = _card("Red pan", 4712)
    names = _names(_cards(first, second, other))
    swapped = _names(_cards(second, first, other))
    assert names[:2] == swapped[2:4]
    assert names[2:4] == swapped[:2]


def test_cards_behind_a_redirection_are_told_apart_by_where_it_leads():
    def advertised(number: int) -> str:
        address = f"/redirect/ad_1?id=5609287033&amp;url=%2Fdp%2FB00AYW{number}%2Fref%3Dad_1%3Fpsc%3D1"
        return f"<a href='{address}'><span>Wall hook</span></a><button>Buy</button>"

    cards = [advertised(1001), advertised(1002), advertised(1003), _card("Red pan", 4711), _card("Blue kettle", 4712)]
    names, without_one = _names(_cards(*cards)), _names(_cards(cards[0], *cards[2:]))
    assert names[4:] == without_one[2:]
    assert not any(name.split(".")[0].endswith(("_2", "_3")) for name in names)


def test_remark_in_a_link_is_no_part_of_names():
    plain = _names(_cards(_card("Blue kettle", 4711), _card("Red pan", 4712)))
    marked = _names(_cards(_card("Blue kettle", 4711, "<div>2 for 1</div>"), _card("Red pan", 4712)))
    assert plain == marked


def test_list_is_titled_by_the_text_before_it_and_not_by_its_first_entry():
    def column(*entries: str) -> str:
        links = "".join(f"<li><a href=/{entry}>{entry}</a></li>" for entry in entries)
        jobs = "<li><a href=/x>Jobs</a></li><li><a href=/y>Press</a></li>"
        return f"<div class=c>Help<ul>{links}</ul></div><div class=c>About us<ul>{jobs}</ul></div>"

    assert "help.returns" in _names(column("Cars", "Returns"))
    assert "help.returns" in _names(column("Delivery", "Cars", "Returns"))


def test_list_is_titled_by_the_text_before_it_though_a_sponsored_card_comes_among_the_first():
    def section(*, sponsored: str = "") -> str:
        links = [
            f"<div class=p><a href=/{title}><h3>{title}</h3></a></div>" for title in ("Kettle", "Pan", "Jug", "Lid")
        ]
        shown = "".join([links[0], sponsored, *links[1:]])
        return f"<section class=s><p>Goes well with it</p><section>{shown}</section></section>"

    sponsored = "<div class=p><a href=/why>Sponsored</a><a href=/fork><h3>Fork</h3></a></div>"
    other = "<section class=s><p>Seen before</p><a href=/x>Bowl</a><a href=/y>Cup</a></section>"
    names, after = _names(section() + other), _names(section(sponsored=sponsored) + other)
    assert "goes_well_with_it.kettle" in names
    assert set(names) <= set(after)


def test_siblings_most_of_which_bear_one_title_stay_without_when_another_comes():
    def popup(title: str) -> str:
        return f"<div class=popup><button title=Close></button><b>{title}</b><input placeholder=Mail></div>"

    def numbered(*titles: str) -> list[str]:
        return _names("".join(map(popup, titles)))

    names = numbered(*["Create your account"] * 4, "Newsletter")
    after = numbered(*["Create your account"] * 4, "Newsletter", "Zeppelin")
    assert "close" in names
    assert set(names) <= set(after)


def test_price_in_letters_or_with_a_dash_is_no_part_of_names():
    assert _names("<a href=/x>Kettle Rs17,500</a>") == _names("<a href=/x>Kettle 112,-</a>") == ["kettle"]
