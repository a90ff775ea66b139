"""Pages given as what they share with earlier ones and what is new: nothing is lost, and prompts grow at their end."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_sessions.demo_shop import generate_sessions
from replay_sessions.elements import find_elements
from replay_sessions.schema import Session
from shop_env.observation import ContextConfig, History, Observation, observe_session
from shop_env.page_changes import SessionPages
from shop_env.prompts import PromptConfig, render_prompt

REFERENCE = re.compile(r"<!-- tags (\d+)-(\d+) of page (\d+) -->")
TAGS = st.sampled_from(
    [
        *('<div class="offer">', "</div>", "<b>$9.99", "</b>", '<a name="results.kettle.view">Kettle', "</a>", "5 < 6"),
        *("<!-- tags 1-3 of page 1 -->", "<!-- -tags 1-3 of page 1 -->", "<!-- tags 9", "<", "<<!-- tags", "\n", "é"),
    ]
)
PAGES = st.lists(st.lists(TAGS, max_size=30).map("".join), min_size=1, max_size=6)


def texts(pages: list[str], first: int = 0) -> list[str]:
    shown = SessionPages(pages, "changes")
    return ["" if number < first else shown.text(number, first) for number in range(len(pages))]


def restore_pages(shown: list[str]) -> list[str]:
    """The pages of a session from their texts in a prompt."""
    pages: list[str] = []
    for text in shown:
        pages.append(REFERENCE.sub(lambda found: "".join(named_tags(pages, *map(int, found.groups()))), text))
    return [re.sub("<!-- -(-*)tags ", r"<!-- \1tags ", page) for page in pages]


def named_tags(pages: list[str], first: int, last: int, page: int) -> list[str]:
    return re.findall(r"<[^<]*|^[^<]+", pages[page - 1])[first - 1 : last]


@given(PAGES, st.integers(0, 5), st.integers(1, 4))
def test_every_page_is_restored_whichever_are_shown(pages: list[str], first: int, times: int) -> None:
    pages = [page * times for page in pages]
    first = min(first, len(pages) - 1)
    dropped = ["" if number < first else page for number, page in enumerate(pages)]
    assert restore_pages(texts(pages, first)) == dropped
    assert texts(dropped) == texts(pages, first)
    assert texts(pages[:-1]) == texts(pages)[:-1]  # a later page changes no text


@given(PAGES)
def test_whole_pages_are_given_as_they_are(pages: list[str]) -> None:
    shown = SessionPages(pages, "full")
    assert [shown.text(number) for number in range(len(pages))] == pages


def test_what_is_repeated_is_named_by_page_and_tags() -> None:
    cart = '<a name="cart">Cart ({})</a>'
    head = '<h1>Kettles</h1><a name="results.one">One</a><a name="results.two">Two</a>'
    other = "<h1>One</h1><p>A kettle of one liter</p>"
    pages = [head + cart.format(0), other, head + cart.format(1), head + cart.format(1)]
    assert texts(pages) == [
        pages[0],
        other,
        '<!-- tags 1-6 of page 1 --><a name="cart">Cart (1)</a>',
        "<!-- tags 1-8 of page 3 -->",
    ]
    assert texts(pages, first=1) == ["", other, pages[2], "<!-- tags 1-8 of page 3 -->"]


@pytest.fixture(scope="module")
def sessions() -> list[Session]:
    return list(generate_sessions(12, seed=4))


def test_prompts_grow_at_their_end_and_name_every_element(sessions: list[Session]) -> None:
    whole = changed = 0
    for session in sessions:
        before: list[object] = []
        for observation in observe_session(session, ContextConfig(pages="changes")):
            messages = [*render_prompt(observation, PromptConfig(), "changes")]
            assert messages[: len(before)] == before
            before = [*messages]
            shown = [message["content"] for message in messages if message["role"] == "user"]
            assert restore_pages(shown)[-1] == observation["page"]
            assert _names(shown) >= {element.name for element in find_elements(observation["page"])}
            whole, changed = whole + len(observation["page"]), changed + len(shown[-1])
        assert observe_session(session, ContextConfig(pages="changes")) == observe_session(session)
    assert changed < 0.85 * whole


def _names(shown: list[str]) -> set[str]:
    """The names on the last page, read as a person would: those written there, and those of the tags it refers to."""
    names = set(re.findall(' name="([^"]*)"', shown[-1]))
    for reference in REFERENCE.findall(shown[-1]):
        tags = named_tags(restore_pages(shown), *map(int, reference))
        names |= set(re.findall(' name="([^"]*)"', "".join(tags)))
    return names


def test_a_dropped_page_is_referred_to_by_none(sessions: list[Session]) -> None:
    for session in sessions:
        last: Observation = observe_session(session)[-1]
        for kept in range(len(last["history"])):
            dropped = History({**past, "page": ""} for past in last["history"][:kept])
            seen: Observation = {**last, "history": dropped + last["history"][kept:]}
            for message in render_prompt(seen, PromptConfig(), "changes"):
                assert all(int(page) > kept for _, _, page in REFERENCE.findall(message["content"]))
