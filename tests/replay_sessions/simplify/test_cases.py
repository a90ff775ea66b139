"""The simplifier on small pages after what public ones have; the README beside each says what is right."""

from pathlib import Path

import pytest

from replay_sessions.importers.rrweb.importer import RrwebImporter
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.simplify import simplify
from replay_sessions.store import SessionStore

_CASES = Path(__file__).parents[2] / "fixtures" / "cases"
_MANY = b"<!-- <meta charset=gbk> --><script>/*" + b"x" * 2_000 + b"*/</script>"


def read(name: str) -> bytes:
    return (_CASES / name).read_bytes()


@pytest.mark.parametrize(
    ("file", "title"),
    [
        ("early_eucjp", "赤いやかん 1.7L"),
        ("late_eucjp", "赤いやかん 1.7L"),
        ("late_sjis", "赤いやかん 1.7L"),
        ("late_gbk", "红色水壶"),
    ],
)
def test_a_declared_encoding_counts_wherever_it_stands_in_the_head(file, title):
    page = simplify(read(f"01-late-meta-charset/{file}.html"))
    assert page.elements[0].text == title
    assert f"<title>{title}</title>" in page.html


def test_a_late_declaration_leaves_the_page_in_standards_mode():
    head = (
        b"<!-- saved --><!doctype html>" + _MANY + b"<meta http-equiv=content-type content='text/html; charset=euc-jp'>"
    )
    page = simplify(head + "<p>赤い<table><tr><td>やかん</table>".encode("euc-jp")).html
    assert "赤い</p>" in page  # where the doctype is not read, the table stands in the paragraph
    assert "やかん" in page


def test_the_price_on_a_slide_that_screen_readers_pass_over_stays():
    page = simplify(read("08-aria-hidden-slide-price/page.html")).html
    assert [page.count(price) for price in ("29,99 €", "19,99 €", "12,99 €")] == [1, 1, 1]
    assert page.index("Blue dress") < page.index("19,99 €")


def test_a_compound_with_an_id_and_a_class_hides_and_shows():
    page = simplify(read("09-id-and-class-selector/page.html"))
    assert [element.text for element in page.elements] == ["Summer sale", "Red kettle"]


def test_such_a_compound_hides_in_a_recording(tmp_path):
    (tmp_path / "recording.json").write_bytes(read("09-id-and-class-selector/recording.json"))
    run_import(RrwebImporter(tmp_path / "recording.json"), tmp_path / "store")
    (session,) = SessionStore.open(tmp_path / "store").sessions()
    assert "Red kettle" in session.steps[0].page
    assert "Accept all" not in session.steps[0].page


def test_nothing_of_a_page_without_private_data_changes():
    source = read("02-private-false/page.html")
    page = simplify(source)
    assert page.html == simplify(source, private_data=False).html
    names = [element.name for element in page.elements]
    assert {"desk_oak_brown_120_cm", "login", "click_this_link", "header.sell"} <= set(names)
