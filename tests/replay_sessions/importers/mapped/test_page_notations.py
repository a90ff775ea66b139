from hypothesis import given
from hypothesis import strategies as st

from replay_sessions.elements import find_elements
from replay_sessions.importers.mapped.page_notations import NOTATIONS
from tests.replay_sessions.test_elements import names

nested_angles = NOTATIONS["nested_angles"]
bracket_lines = NOTATIONS["bracket_lines"]


def test_html_stays_as_it_stands():
    assert NOTATIONS["html"]("<p>as it <b>is</p>") == "<p>as it <b>is</p>"


class TestBracketLines:
    def test_lines_become_elements_with_the_logged_names(self):
        page = '[Back to Search] \n[B08H5DCD65] \nHair Clip \n$9.98\nsize [1 x 2"][3 & 4]\n[Buy Now]'
        assert names(bracket_lines(page)) == ["Back to Search", "B08H5DCD65", '1 x 2"', "3 & 4", "Buy Now"]

    def test_a_search_can_be_typed_into(self):
        found = {e.name: e.accepts for e in find_elements(bracket_lines("Webshop \n[Search]"))}
        assert found == {"search": "type", "Search": "click"}

    def test_brackets_in_a_title_are_text(self):
        page = "[6 PACK] Bands for Men\nCable [2-Pack 6 Foot] Premium\nKettle [red]"
        assert names(bracket_lines(page)) == []
        assert "Cable [2-Pack 6 Foot] Premium" in bracket_lines(page)


class TestNestedAngles:
    def test_nesting_and_text_are_kept(self):
        page = "< <h2| Sign in> <div| Amazon <a[SA]| <span| Amazon> > > <input[E]| Email> <img| logo> >"
        assert nested_angles(page) == (
            '<div><h2>Sign in</h2><div>Amazon <a name="SA"><span>Amazon</span></a></div>'
            '<input name="E" placeholder="Email"><img alt="logo"></div>'
        )

    def test_names_survive_where_html_would_not_allow_their_place(self):
        page = (
            "<a[A]| <a[B]| in> > <button[C]| <button[D]| in> > "
            "<tr[E]| <td[F]| cell> > <body[G]| x> "
            "<p[H]| <div[I]| y> > <select[J]| <a[K]| one> > "
            "<textarea[L]| <b[M]| z> > <iframe[N]| <a[O]| w> > <option[P]| q>"
        )
        assert names(nested_angles(page)) == list("ABCDEFGHIJKLMNOP")

    def test_chinese_text_stays(self):
        found = find_elements(nested_angles("< <a[AA]| 首页> <input[SAC]| 涿州洪水救援> >"))
        assert [(e.name, e.text) for e in found] == [("AA", "首页"), ("SAC", "涿州洪水救援")]

    def test_unbalanced_pages_lose_no_name(self):
        assert names(nested_angles("> text > < <a[A]| one <b[B]| two")) == ["A", "B"]
        assert nested_angles("no brackets & such") == "no brackets &amp; such"

    @given(st.text(st.sampled_from("<>|[]abA &\"'\n一"), max_size=60))
    def test_any_text_is_read(self, page):
        find_elements(nested_angles(page))
        find_elements(bracket_lines(page))
