"""The page after a mutation is the one that rrweb's player would show, and that a slow, obvious program makes."""

import copy
from random import Random
from typing import Any

import msgspec
import pytest

from replay_sessions.importers.rrweb.events import Mutation, Node
from replay_sessions.importers.rrweb.mutations import Page
from replay_sessions.importers.rrweb.page_writer import write_page
from replay_sessions.importers.rrweb.tree import subtree
from tests.oracles.rrweb_pages import PlainPage
from tests.replay_sessions.importers.rrweb.made_recordings import nodes_of

Json = Any
PageAndIds = tuple[Page, dict[str, int]]
PAGE = "<ul id='list'><li id='a'>one<li id='b'>two</ul><textarea id='t'>old</textarea><p id='p'>text</p>"


def node(node_id: int, tag: str = "", text: str = "", **attributes: Json) -> Json:
    if not tag:
        return {"type": 3, "textContent": text, "id": node_id}
    return {"type": 2, "tagName": tag, "attributes": attributes, "childNodes": [], "id": node_id}


def add(parent: int, what: Json, before: int | None = None, **more: Json) -> Json:
    return {"parentId": parent, "nextId": before, "node": what, **more}


def mutation(**lists: Json) -> Json:
    return {"removes": [], "adds": [], "texts": [], "attributes": [], **lists}


def built(document: Json) -> Page:
    return Page(msgspec.convert(copy.deepcopy(document), Node))


def apply(page: Page, **lists: Json) -> None:
    page.apply(msgspec.convert(copy.deepcopy(mutation(**lists)), Mutation))


def shape(found: Node) -> Json:
    inside = tuple(shape(child) for child in ([found.inner] if found.inner else []) + found.childNodes)
    return found.id, found.tagName or found.textContent, tuple(sorted(found.attributes.items())), inside


@pytest.fixture
def page() -> PageAndIds:
    document, ids, _ = nodes_of(PAGE)
    return built(document), ids


def text_of(page: Page, node_id: int) -> str:
    return "".join(inside.textContent or "" for inside in subtree(page.nodes[node_id]))


def test_adds_wait_for_their_parents_and_next_siblings(page):
    built_page, ids = page
    adds = [
        add(61, node(62, text="1.5")),
        add(ids["list"], node(61, "li"), 63),
        add(ids["list"], node(63, "li"), ids["b"]),
    ]
    apply(built_page, adds=adds)
    assert [child.id for child in built_page.nodes[ids["list"]].childNodes] == [ids["a"], 61, 63, ids["b"]]
    assert text_of(built_page, 61) == "1.5"


def test_nodes_without_a_parent_are_dropped(page):
    built_page, ids = page
    apply(built_page, adds=[add(4711, node(61, "li")), add(ids["list"], node(62, "li"), 4712)])
    apply(built_page, adds=[add(ids["list"], node(4711, "li")), add(ids["list"], node(4712, "li"))])
    assert {61, 62}.isdisjoint(built_page.nodes)


def test_removes_come_first_so_a_node_moves(page):
    built_page, ids = page
    moved = node(ids["b"], "li")
    apply(built_page, removes=[{"parentId": ids["list"], "id": ids["b"]}], adds=[add(ids["list"], moved, ids["a"])])
    assert [child.id for child in built_page.nodes[ids["list"]].childNodes] == [ids["b"], ids["a"]]


def test_of_texts_about_one_node_the_last_counts(page):
    built_page, ids = page
    apply(built_page, texts=[{"id": ids["p"] + 1, "value": "first"}, {"id": ids["p"] + 1, "value": "last"}])
    assert text_of(built_page, ids["p"]) == "last"


def test_attributes_are_set_removed_and_styles_changed_by_property(page):
    built_page, ids = page
    changes = [{"title": "T", "style": "color: red; display: none"}, {"title": None}]
    changes.append({"style": {"display": False, "width": ["1px", "important"], "top": "0"}})
    for attributes in changes:
        apply(built_page, attributes=[{"id": ids["p"], "attributes": attributes}])
    assert built_page.nodes[ids["p"]].attributes == {
        "id": "p",
        "style": "color: red; width: 1px !important; top: 0",
    }


def test_a_textarea_keeps_one_text(page):
    built_page, ids = page
    apply(built_page, adds=[add(ids["t"], node(61, text="new"))])
    assert text_of(built_page, ids["t"]) == "new"
    apply(built_page, attributes=[{"id": ids["t"], "attributes": {"value": "newest"}}])
    assert '<textarea id="t">\nnewest</textarea>' in write_page(built_page)
    both = node(70, "textarea", value="shown")
    both["childNodes"] = [node(71, text="ignored")]
    document = {"type": 0, "id": 1, "childNodes": [both]}
    assert '<textarea value="shown">\nshown</textarea>' in write_page(built(document)).replace(
        "<textarea>", '<textarea value="shown">'
    )


def test_a_second_html_takes_the_place_of_the_first(page):
    built_page, _ = page
    adds = [add(1, node(60, "html")), add(60, node(61, "body")), add(61, node(62, text="replaced"))]
    apply(built_page, adds=adds)
    assert write_page(built_page) == "<!DOCTYPE html><html><body>replaced</body></html>"


def test_documents_wait_for_their_iframes_over_events_and_replace_each_other(
    page,
):
    built_page, ids = page
    for start, text in ((100, "first"), (200, "second")):
        document, _, _ = nodes_of(f"<p>{text}</p>", start)
        apply(built_page, adds=[add(60, document)])
        if start == 100:
            apply(built_page, adds=[add(ids["p"], node(60, "iframe", src="/inner"))])
        frame = f"<div><head></head><div><p>{text}</p></div></div>"
        assert f"<div><template shadowrootmode=open>{frame}</template></div>" in write_page(built_page)
    assert 101 not in built_page.nodes
    apply(built_page, removes=[{"parentId": ids["p"], "id": 60}])
    assert 201 not in built_page.nodes


def test_recordings_of_2018_name_siblings_that_are_to_come(page):
    built_page, ids = page
    adds = [
        add(ids["list"], node(61, "li"), -1, previousId=ids["b"]),
        add(ids["list"], node(62, "li"), -1, previousId=61),
        add(ids["list"], node(63, "li"), None, previousId=62),
    ]
    apply(built_page, adds=adds)
    assert [child.id for child in built_page.nodes[ids["list"]].childNodes] == [ids["a"], ids["b"], 61, 62, 63]


def test_random_mutations_give_the_page_of_the_slow_program():
    for seed in range(300):
        draw = Random(seed)
        document, _, next_id = nodes_of(PAGE)
        fast, slow = built(document), PlainPage(document)
        for _ in range(draw.randint(1, 6)):
            lists = random_lists(draw, list(fast.nodes), next_id)
            next_id += 10
            apply(fast, **lists)
            slow.apply(mutation(**lists))
            assert shape(fast.root) == slow.shape(), seed
            assert set(fast.nodes) == {found["id"] for found in slow._nodes()}, seed


def random_lists(draw: Random, known: list[int], next_id: int) -> dict[str, Json]:
    """Changes that fit together or not: parents to come, moved nodes, unknown ids."""
    new = list(range(next_id, next_id + draw.randint(0, 8)))
    others = [*known, *new, 99_999]
    adds = []
    parents = [number for number in others if number != 99_999 or draw.random() < 0.1]
    moved = draw.sample(known[1:], min(len(known) - 1, draw.choice([0, 0, 1])))
    for number in [*new, *moved]:
        before = draw.choice([None, None, draw.choice(others)])
        what = node(number, text=f"t{number}") if draw.random() < 0.3 else node(number, draw.choice(["div", "li", "b"]))
        if before != number:
            adds.append(add(draw.choice(parents), what, before))
    draw.shuffle(adds)
    gone = [*moved, *(draw.choice(others[1:]) for _ in range(draw.choice([0, 0, 1, 2])))]
    removes = [{"parentId": 0, "id": number} for number in gone]
    texts = [{"id": draw.choice(others), "value": f"v{draw.random():.2f}"} for _ in range(draw.choice([0, 1, 2]))]
    named = draw.choice([{"title": "x"}, {"title": None}, {"id": "y"}])
    return {
        "adds": adds,
        "removes": removes,
        "texts": texts,
        "attributes": [{"id": draw.choice(others), "attributes": named}],
    }


def test_a_long_chain_of_waiting_adds_takes_no_longer_than_the_same_in_order():
    document, ids, _ = nodes_of(PAGE)
    page = built(document)
    adds = [add(ids["list"], node(1_000 + number, "li"), 1_001 + number) for number in range(20_000)]
    apply(page, adds=[*adds, add(ids["list"], node(21_000, "li"))])
    assert [child.id for child in page.nodes[ids["list"]].childNodes][2:] == list(range(1_000, 21_001))
