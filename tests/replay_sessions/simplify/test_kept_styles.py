"""The memory of style sheets between pages changes no page, and stays within bounds."""

from replay_sessions.simplify import cascade, simplify

SHEET = "<style>.menu .item { display: none } #late { display: none }</style>"


def test_pages_with_the_same_sheets_differ_by_ancestors():
    inside = f"{SHEET}<div class=menu><p class=item>secret</p></div>"
    outside = f"{SHEET}<div class=other><p class=item>shown</p></div>"
    for _ in range(2):
        assert "secret" not in simplify(inside).html
        assert "shown" in simplify(outside).html


def test_pages_with_other_sheets_are_told_apart_though_their_elements_are_the_same():
    element = "<p class=gone>text</p>"
    for _ in range(2):
        assert "text" not in simplify(f"<style>.gone {{ display: none }}</style>{element}").html
        assert "text" in simplify(f"<style>.gone {{ color: red }} .x {{ display: none }}</style>{element}").html
        assert "text" in simplify(element).html


def test_pages_are_the_same_when_too_much_was_remembered(monkeypatch):
    pages = [
        f"{SHEET}<div class='menu c{n}'><p class=item id=i{n}>secret</p><p hidden>x</p>seen</div>" for n in range(9)
    ]
    first = [simplify(page).html for page in pages]
    monkeypatch.setattr(cascade, "_MEMO_LIMIT", 2)
    assert [simplify(page).html for page in pages] == first
    assert all("seen" in html and "secret" not in html for html in first)
