"""Actions in a recording become the steps of a session."""

import json
from typing import Any

import pytest

from replay_sessions import Click, SessionStore, Step, Terminate, TypeAndSubmit
from replay_sessions.foundation.errors import ImportFailed
from tests.replay_sessions.importers.rrweb.made_recordings import Recorded, Tab, imported, nodes_of
from tests.stores import read_rejected

SHOP = """<title>Shop</title>
<form id="form" role="search"><input id="q" name="q" placeholder="Search"><button id="go">Go</button></form>
<a id="sale" href="/sale"><b id="word">Sale</b></a><p id="text">Welcome</p>
<label id="red_label" for="red">Red</label><input type="radio" id="red" style="display: none">
<select id="size" name="size"><option id="s" value="1">Small<option id="l" value="2" selected>Large</select>
<button id="buy" type="button">Buy now</button>"""
RESULTS = "<title>Results</title><h1>Results</h1><a id='kettle' href='/kettle'>Kettle</a>"


@pytest.fixture
def made(tmp_path) -> Recorded:
    return Recorded(tmp_path)


@pytest.fixture
def tab(made) -> Tab:
    return made.tab(SHOP)


def steps(store: SessionStore) -> tuple[Step, ...]:
    return store.session("visit").steps


def actions(store: SessionStore) -> list[Any]:
    return [step.action for step in steps(store)]


class TestClicks:
    def test_a_click_goes_to_the_nearest_element_that_can_be_acted_on(self, tab):
        store = imported(tab.click("word"))
        assert actions(store) == [Click(name="sale")]

    def test_a_click_on_nothing_is_left_out_and_counted(self, tab):
        store = imported(tab.click("text").click("body").click("sale"))
        assert [(step.action, step.gap) for step in steps(store)] == [(Click(name="sale"), 2)]
        assert store.manifest.left_out_steps == {"click on nothing that can be acted on": 2}

    def test_the_page_is_that_of_the_press_before_handlers_change_it(self, tab):
        gone = {"removes": [{"parentId": tab.id("body"), "id": tab.id("sale")}]}
        store = imported(tab.click("word", changes=gone).click("buy"))
        first, second = steps(store)
        assert (first.action, second.action) == (Click(name="sale"), Click(name="buy_now"))
        assert "Sale" in first.page
        assert "Sale" not in second.page

    def test_elements_noted_as_not_rendered_are_hidden_until_the_page_changes(self, tab):
        hidden = "shop_r1.hidden", {"ids": [tab.id("sale"), tab.id("form"), 999]}
        marked = [{"id": tab.id("text"), "attributes": {"class": "marked"}}]
        tab.note(*hidden).click("buy").change(attributes=marked).click("buy").note(*hidden).click("buy")
        pages = [step.page for step in steps(imported(tab))]
        assert [("Sale" in page, "Search" in page) for page in pages] == [(False,) * 2, (True,) * 2, (False,) * 2]
        assert all("Buy now" in page for page in pages)

    def test_a_drag_out_of_an_element_is_no_click_on_it_even_if_the_page_changes(self, tab):
        tab.point(1, "word").change(texts=[{"id": 999, "value": ""}]).point(0, "text").point(2, "body", pointerType=0)
        store = imported(tab.click("sale"))
        assert actions(store) == [Click(name="sale")]
        assert store.manifest.left_out_steps == {"click on nothing that can be acted on": 1}

    def test_a_tap_is_one_click_on_the_touched_element(self, tab):
        tab.point(7, "word")
        tab.change(removes=[{"parentId": tab.id("body"), "id": tab.id("sale")}])
        store = imported(tab.point(9, "word").point(1, "text").point(2, "text", pointerType=2))
        assert actions(store) == [Click(name="sale")]

    def test_a_right_click_is_none(self, tab):
        assert actions(imported(tab.point(1, "sale").point(3, "sale").click("buy"))) == [Click(name="buy_now")]

    def test_a_label_is_a_click_on_its_field_though_that_is_hidden(self, tab):
        tab.click("red_label").key_click("red", 2).give("red", "on", ticked=True).click("buy")
        store = imported(tab)
        assert actions(store) == [Click(name="red"), Click(name="buy_now")]
        before, after = (step.page for step in steps(store))
        assert "checked" not in before.split('name="red"')[1].split(">")[0]
        assert "checked" in after.split('name="red"')[1].split(">")[0]

    def test_clicks_by_the_page_itself_are_left_out_and_counted(self, made):
        store = imported(made.tab(SHOP).click("sale").key_click("buy", 3))
        assert actions(store) == [Click(name="sale")]
        assert store.manifest.left_out_steps == {"click that the page made": 1}

    def test_a_click_by_keyboard_is_one(self, tab):
        assert actions(imported(tab.click("buy").focus("sale").key_click("sale", 900))) == [
            Click(name="buy_now"),
            Click(name="sale"),
        ]

    def test_a_click_on_a_hidden_element_is_counted_and_not_shown(self, made):
        page = """<style>.menu .sub {display: none} .menu:hover .sub {display: block}</style>
            <div class="menu">Menu<div class="sub"><a id="a" href="/a">Kettles</a></div></div>
            <a id="b" href="/b">B</a>"""
        store = imported(made.tab(page).click("b").click("a"))
        assert actions(store) == [Click(name="b")]
        assert store.manifest.left_out_steps["click on what the page hides"] == 1
        assert not any("Kettles" in step.page for step in steps(store))

    def test_responsive_pages_have_the_same_controls_whether_clicked_or_not(self, made):
        page = r"""<style>.hidden {display: none} @media (width >= 40rem) {.sm\:block {display: block}}
            @media (min-width: 640px) {.sm\:hidden {display: none}}</style>
            <nav class="hidden sm:block"><a id="a" href="/a">Wide</a></nav>
            <nav class="sm:hidden"><a id="b" href="/b">Narrow</a></nav><a id="c" href="/c">Cart</a>"""
        tab = made.tab(page).click("c").click("a").click("c")
        made.add(3, {"source": 4, "width": 390, "height": 844})
        store = imported(tab.click("c").click("b"))
        assert [action.name for action in actions(store)] == ["cart", "nav.wide", "cart", "cart", "nav.narrow"]
        shown = [("Wide" in step.page, "Narrow" in step.page) for step in steps(store)]
        assert shown == [(True, False)] * 3 + [(False, True)] * 2

    def test_two_windows_are_one_session_in_the_order_of_time(self, made):
        one = made.tab(SHOP, window="one").click("sale")
        two = made.tab(RESULTS, "https://shop.example/search", window="two").click("kettle")
        one.click("buy")
        two.click("kettle")
        store = imported(made)
        assert [action.name for action in actions(store)] == ["sale", "kettle", "buy_now", "kettle"]
        assert [step.url for step in steps(store)][1] == "https://shop.example/search"

    def test_a_click_before_any_snapshot_is_listed_with_the_reason(self, made):
        made.add(3, {"source": 2, "type": 2, "id": 4, "pointerType": 0})
        store = imported(made.tab(SHOP).click("sale").click(4711))
        assert actions(store) == [Click(name="sale")]
        assert store.manifest.left_out_steps == {"click without a page": 2}
        assert [*read_rejected(store.path).values()] == [
            "no full snapshot came before it",
            "node 4711 is not in the page",
        ]

    @pytest.mark.parametrize("value", [[], {}, [1], {"a": "b"}])
    def test_an_attribute_that_is_none_makes_its_event_unreadable(self, made, value):
        tab = made.tab("<input id='i' type='text'><a id='a' href='/a'>A</a>")
        tab.click("a").change(attributes=[{"id": tab.id("i"), "attributes": {"type": value}}]).click("a")
        made.events[3]["data"]["node"]["childNodes"][0]["attributes"] = {"class": "x"}
        store = imported(tab)
        count = 2 if isinstance(value, dict) else 1  # a style's changes come so: of another attribute they remove it
        assert actions(store) == [Click(name="a")] * count

    def test_after_an_event_that_cannot_be_read_no_page_is_guessed_at(self, tab):
        tab.click("sale").add(3, {"source": 0, "adds": "\x1f\x8b damaged"}).click("sale")
        tab.go("https://shop.example/s", RESULTS).add(5, {"tag": 17}).click("kettle")
        store = imported(tab)
        assert [(step.action, step.gap) for step in steps(store)] == [
            (Click(name="sale"), 0),
            (Click(name="kettle"), 1),
        ]
        damaged, click, note = sorted(read_rejected(store.path).values())
        assert "event 8, which may have changed the page, cannot be read" in click + damaged + note
        assert any("Expected `str`, got `int`" in reason for reason in (damaged, click, note))


class TestTyping:
    def test_the_return_key_submits_and_the_click_it_makes_is_part_of_it(self, tab):
        tab.type("q", "kettl").point(1, "text").change()  # the middle button: no click follows
        store = imported(tab.give("q", "kettle").key_click("go"))
        assert actions(store) == [TypeAndSubmit(name="search.search", text="kettle")]
        assert "kettle" not in steps(store)[0].page

    def test_so_does_another_address(self, tab):
        tab.type("q", "kettle").go("https://shop.example/s?q=kettle", RESULTS).click("kettle")
        assert actions(imported(tab)) == [
            TypeAndSubmit(name="search.search", text="kettle"),
            Click(name="kettle"),
        ]

    def test_so_does_the_button_of_the_form_if_the_text_is_in_the_next_address(self, tab):
        tab.type("q", "red kettle").click("go").go("https://shop.example/s?q=Red+kettle", RESULTS)
        assert actions(imported(tab)) == [TypeAndSubmit(name="search.search", text="red kettle")]

    def test_even_if_the_press_makes_the_button_anew(self, tab):
        tab.type("q", "tea")
        again = {"type": 2, "tagName": "button", "attributes": {}, "childNodes": [], "id": 900}
        changes = {"removes": [{"parentId": tab.id("form"), "id": tab.id("go")}]}
        changes["adds"] = [{"parentId": tab.id("form"), "nextId": None, "node": again}]
        tab.click("go", changes=changes).go("https://shop.example/s?q=tea", RESULTS)
        assert actions(imported(tab)) == [TypeAndSubmit(name="search.search", text="tea")]

    def test_else_typing_stays_apart_from_the_click(self, tab):
        tab.type("q", "kettle").click("go").go("https://shop.example/cart", RESULTS)
        assert actions(imported(tab)) == [
            TypeAndSubmit(name="search.search", text="kettle", submitted=False),
            Click(name="search.go"),
        ]

    def test_all_keys_into_one_field_are_one_text_with_the_clicks_between_them(self, tab):
        tab.type("q", "ketle").click("q").give("q", "kettle").click("sale")
        assert actions(imported(tab)) == [
            TypeAndSubmit(name="search.search", text="kettle", submitted=False),
            Click(name="sale"),
        ]

    def test_a_field_that_is_only_clicked_into_is_a_click(self, tab):
        assert actions(imported(tab.click("q").focus("q").click("sale"))) == [
            Click(name="search.search"),
            Click(name="sale"),
        ]

    def test_a_text_that_was_taken_back_is_left_out_and_counted(self, tab):
        store = imported(tab.type("q", "a").give("q", "").click("sale"))
        assert [(step.action, step.gap) for step in steps(store)] == [(Click(name="sale"), 1)]
        assert store.manifest.left_out_steps == {"typed text that was taken back": 1}

    def test_a_field_that_the_page_empties_keeps_its_typed_text(self, tab):
        tab.type("q", "kettle").give("q", "").note("$url_changed", {"href": "https://shop.example/s"})
        assert actions(imported(tab)) == [TypeAndSubmit(name="search.search", text="kettle")]

    def test_values_filled_in_by_the_page_are_no_actions_and_counted(self, tab):
        tab.focus("go").give("q", "from last").give("q", "from last time").click("sale")
        store = imported(tab)
        assert actions(store) == [Click(name="sale")]
        assert store.manifest.left_out_steps == {"input into a field that was not in use": 1}
        assert 'value="from last time"' in steps(store)[0].page

    def test_only_user_triggered_events_count_where_logged(self, tab):
        tab.focus("q").give("q", "tea", userTriggered=True).give("q", "teapot", userTriggered=False)
        assert actions(imported(tab.click("sale")))[0].text == "tea"

    def test_a_choice_in_a_list_is_a_click_on_the_option(self, tab):
        tab.click("size").focus("size").point(1, "s").give("size", "1").point(2, "s", 1)  # as an open list has it
        store = imported(tab.click("sale"))
        assert actions(store) == [Click(name="size.small"), Click(name="sale")]
        before, after = (step.page for step in steps(store))
        assert "selected" in before.split("Large")[0].rsplit("<option", 1)[1]
        assert "selected" in after.split("Small")[0].rsplit("<option", 1)[1]

    def test_a_textarea_shows_its_typed_text(self, made):
        page = "<textarea id='note' placeholder='Note'></textarea><a href='/x' id='x'>On</a>"
        tab = made.tab(page).type("note", "a gift").click("x")
        store = imported(tab)
        assert actions(store)[0] == TypeAndSubmit(name="note", text="a gift", submitted=False)
        assert ["a gift" in step.page for step in steps(store)] == [False, True]


class TestMasks:
    FORM = """<form id='f'><input id='q' name='q' placeholder='Search'><input id='p' type='password'></form>
        <a id='x' href='/x'>X</a>"""

    def typed(self, made: Recorded, text: str, href: str, field: str = "q") -> Any:
        tab = made.tab(self.FORM).click(field).focus(field).give(field, text).go(href, RESULTS).click("kettle")
        return actions(imported(tab))[0]

    def test_a_masked_text_is_read_from_the_next_address(self, made):
        assert self.typed(made, "*" * 10, "https://shop.example/s?q=red+kettle").text == "red kettle"

    def test_under_another_name_if_it_is_the_only_new_value_as_long(self, made):
        href = "https://shop.example/s?term=red+kettle&page=12"
        assert self.typed(made, "*" * 10, href).text == "red kettle"

    @pytest.mark.parametrize("query", ["", "?a=red+kettle&b=new+kettle", "?term=kettle"])
    def test_else_it_is_unknown(self, made, query):
        assert self.typed(made, "*" * 10, f"https://shop.example/s{query}").text == ""

    @pytest.mark.parametrize("text", ["*********", "open sesame"])
    def test_a_password_is_never_known(self, made, text):
        href = f"https://shop.example/in?password={'x' * len(text)}"
        typed = self.typed(made, text, href, "p")
        assert (typed.text, typed.submitted) == ("", True)
        assert steps(SessionStore.open(made.folder / "store"))[1].url == "https://shop.example/in?password=[secret]"

    def test_a_masked_choice_is_a_click_on_something_unknown(self, tab):
        tab.click("size").focus("size").give("size", "*").click("sale")
        assert actions(imported(tab)) == [Click(name=""), Click(name="sale")]

    def test_a_recording_that_is_mostly_masked_is_refused_with_the_reason(self, made):
        tab = made.tab("<p>*** ***** **** ****</p><a id='x' href='/x'>*** **</a>").click("x")
        with pytest.raises(ImportFailed, match="100% of the letters"):
            imported(tab)


class TestEndings:
    def test_a_click_on_the_purchase_button_is_the_last(self, tab):
        store = imported(tab.click("buy").click("sale"), purchase_selector="#buy")
        assert actions(store) == [Click(name="buy_now", click_type="purchase")]
        assert store.manifest.left_out_steps == {"click after the purchase": 1}

    def test_so_is_the_last_click_before_an_address_of_purchase(self, tab):
        tab.click("sale").click("buy").go("https://shop.example/thank-you", RESULTS).click("kettle")
        store = imported(tab, purchase_url="/thank-you", terminate_at_end=True)
        assert actions(store) == [Click(name="sale"), Click(name="buy_now", click_type="purchase")]

    def test_so_is_the_last_before_our_recorder_says_so(self, tab):
        store = imported(tab.click("buy").note("shop_r1.purchase", {}).click("sale"))
        assert actions(store) == [Click(name="buy_now", click_type="purchase")]

    def test_a_pause_is_a_terminate_on_the_page_before_it_and_begins_another_session(self, tab):
        tab.click("sale").wait(31 * 60).go("https://shop.example/s", RESULTS).click("kettle")
        store = imported(tab, idle_minutes=30)
        first, second = store.sessions()
        assert [step.action for step in first.steps] == [Click(name="sale"), Terminate()]
        assert "Welcome" in first.steps[-1].page
        assert [step.action for step in second.steps] == [Click(name="kettle")]
        assert (second.session_id, second.user_id) == ("visit (2)", "visit")

    def test_moving_the_mouse_is_no_pause(self, tab):
        tab.click("sale")
        for _ in range(4):
            tab.wait(20 * 60).add(3, {"source": 1, "positions": []})
        assert len(actions(imported(tab.click("buy"), idle_minutes=30))) == 2

    def test_the_end_of_a_recording_is_a_terminate_if_that_is_asked_for(self, tab):
        tab.click("sale").go("https://shop.example/s", RESULTS)
        store = imported(tab, terminate_at_end=True)
        assert actions(store) == [Click(name="sale"), Terminate()]
        assert "Results" in steps(store)[-1].page
        assert actions(imported(tab)) == [Click(name="sale")]


class TestRemarks:
    def test_our_recorder_logs_user_goal_persona_and_rationales(self, tab):
        tab.note("shop_r1.session", {"session_id": "s17", "user_id": "u4", "goal": "a kettle"})
        tab.note("shop_r1.persona", {"text": "Frugal."}).click("sale")
        tab.note("shop_r1.rationale", {"text": "It may be cheaper."}).click("buy")
        session = imported(tab).session("s17")
        assert (session.user_id, session.goal) == ("u4", "a kettle")
        assert session.persona.text == "Frugal."
        assert [step.rationale for step in session.steps] == ["It may be cheaper.", None]

    def test_the_goal_of_our_own_recorder_has_an_event_of_its_own(self, tab):
        tab.note("shop_r1.goal", {"text": "a kettle"}).click("sale")
        (session,) = imported(tab).sessions()
        assert session.goal == "a kettle"

    def test_notes_belong_to_actions_of_their_own_tab(self, made):
        first, second = made.tab(SHOP, window="first"), made.tab(SHOP, window="second")
        first.click("buy")
        second.click("sale")
        first.note("shop_r1.rationale", {"text": "I take it."}).note("shop_r1.purchase", {})
        (session,) = imported(made).sessions()
        assert session.steps[0].action == Click(name="buy_now", click_type="purchase")
        assert session.steps[0].rationale == "I take it."

    def test_the_page_left_is_that_of_the_tab_that_came_into_sight_last(self, made):
        first, second = made.tab(SHOP, window="first"), made.tab(RESULTS, window="second")
        first.click("sale")
        for tab, title in ((second, "Results"), (first, "Shop")):
            tab.note("shop_r1.view", {})
            (session,) = imported(made, terminate_at_end=True).sessions()
            assert session.steps[-1].action == Terminate()
            assert f"<title>{title}</title>" in session.steps[-1].page

    def test_the_rationale_of_a_search_is_kept_where_the_button_sent_it(self, tab):
        tab.type("q", "kettle").click("go").go("https://shop.example/?q=kettle", RESULTS)
        session = imported(tab.note("shop_r1.rationale", {"text": "I need one."})).session("visit")
        assert [(step.action, step.rationale) for step in session.steps] == [
            (TypeAndSubmit(name="search.search", text="kettle"), "I need one.")
        ]


class TestNestedPages:
    def test_a_click_in_an_iframe_and_in_a_shadow_tree_is_found(self, made):
        tab = made.tab("<h1>Shop</h1><iframe id='frame'></iframe><div id='host'></div><a id='a' href='/a'>A</a>")
        document, ids, next_id = nodes_of("<style>#a {display: none}</style><a id='pay' href='/pay'>Pay here</a>", 100)
        tab.change(adds=[{"parentId": tab.id("frame"), "nextId": None, "node": document}], isAttachIframe=True)
        link = {"type": 2, "tagName": "a", "attributes": {"href": "/chat"}, "childNodes": [], "isShadow": True}
        tab.change(adds=[
            {"parentId": tab.id("host"), "nextId": None, "node": {**link, "id": next_id}},
            {"parentId": next_id, "nextId": None, "node": {"type": 3, "textContent": "Chat", "id": next_id + 1}},
        ])  # fmt: skip
        store = imported(tab.click(ids["pay"]).click(next_id).click("a"))
        assert actions(store) == [Click(name="pay_here"), Click(name="chat"), Click(name="a")]
        assert "Pay here" in steps(store)[-1].page


def test_private_data_is_taken_out_of_pages_texts_and_addresses(made):
    page = "<p>Mail to anna@shop.example</p><input id='q' placeholder='E-mail'><a id='x' href='/x'>X</a>"
    tab = made.tab(page, "https://shop.example/?email=anna@shop.example").type("q", "bob@shop.example").click("x")
    store = imported(tab)
    written = json.dumps([[step.page, step.url, str(step.action)] for step in steps(store)])
    assert "@shop.example" not in written
    kept = imported(tab, keep_private_data=True)
    assert "@shop.example" in json.dumps(steps(kept)[0].page)
    assert [one.manifest.options["private_data"] for one in (store, kept)] == ["patterns", "none"]


def test_the_test_log_s_tab_has_rrweb_s_ids():
    document, ids, count = nodes_of("<p id='a'>x<b>y</b></p>")
    assert (document["childNodes"][0]["tagName"], ids["a"], ids["b"], count) == ("html", 5, 7, 9)
    assert isinstance(Recorded().tab("<p>"), Tab)
