"""The workload of env and reward has the pages and replies that benchmarks/speed/workload.py says."""

from collections import Counter

from benchmarks.speed.workload import replies_to, with_long_names
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.elements import find_elements
from replay_sessions.schema import Action, Click
from shop_env.candidates import words_of
from shop_env.replies import MalformedReply, parse_reply
from shop_env.reward.matching import exact_match

SESSIONS = [with_long_names(session) for session in generate_sessions(100, seed=0)]


def test_product_names_are_long_and_every_logged_element_is_on_its_page():
    lengths = []
    for session in SESSIONS:
        for step in session.steps:
            if isinstance(step.action, Click):
                assert step.action.name in {element.name for element in find_elements(step.page)}
                if step.action.name.startswith("search_results."):
                    lengths.append(len(words_of(step.action.name)))
    assert 26 <= sum(lengths) / len(lengths) <= 30  # the printed ShopCART page: 27.6


def test_of_ten_replies_five_are_right_and_one_is_broken():
    kinds = Counter(
        _kind(step.action, reply)
        for session, replies in zip(SESSIONS, replies_to(SESSIONS), strict=True)
        for step, reply in zip(session.steps, replies, strict=True)
    )
    shares = {kind: count / kinds.total() for kind, count in kinds.items()}
    # A wrong reply of the same type is a right one where the shopper left.
    assert 0.48 <= shares["right"] <= 0.58 and 0.22 <= shares["same type"] <= 0.32
    assert 0.08 <= shares["broken"] <= 0.12 and 0.08 <= shares["other type"] <= 0.12


def _kind(logged: Action, text: str) -> str:
    reply = parse_reply(text)
    if isinstance(reply, MalformedReply):
        return "broken"
    if exact_match(reply.action, logged):
        return "right"
    return "same type" if type(reply.action) is type(logged) else "other type"
