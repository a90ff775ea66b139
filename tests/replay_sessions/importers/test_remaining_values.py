"""The search of a finished store finds values in other forms and fields, and knows the rules by which one may stay."""

import pytest

from replay_sessions import Click, Session, Step
from replay_sessions.importers.remaining_values import RemainingValues

ROWS = [
    {"user_id": "u1", "first_name": "Zoë", "last_name": "Brown", "email": "zo.b@example.org",
     "phone": "+49 30 90182041",
     "street": "4 Orchard Close, Leeds",
     "birth_date": "1985-03-02T00:00:00", "order_id": "100234.0", "country": "Britain"},
    *({"user_id": f"u{n}", "first_name": "Li", "last_name": "Rose", "country": "Britain"} for n in (2, 3)),
]  # fmt: skip


def session(text: str, user: str = "u1", session_id: str = "s") -> Session:
    return Session(session_id=session_id, user_id=user, source="x", steps=(Step(page=text, action=Click(name="x")),))


def search(*sessions: Session, **messages: str) -> RemainingValues:
    remaining = RemainingValues(ROWS)
    remaining.search(sessions, sessions, messages)
    return remaining


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("<p>ZOE!</p>", "first_name"),
        ("<a href='/u/zo%25C3%25AB'>x</a>", "first_name"),
        ("Zoe\u0308 &amp; co", "first_name"),
        ("<i data-x='zo&#46;b&#64;example&period;org'>", "email"),
        ("tel 030/90 18-20 41, 5", "phone"),
        ("to Orchard Close", "street"),
        ("LEEDS", "street"),
        ("2.3.1985", "birth_date"),
        ("02/03/1985", "birth_date"),
        ("No. 100234", "order_id"),
    ],
)
def test_a_value_is_found_in_other_forms(text, column):
    assert {leak.value.column for leak in search(session(text)).leaks} == {column}


@pytest.mark.parametrize("text", ["zoey", "Brownie", "1100234", "1985", "close", "orchards close", "9 0 18 20 42"])
def test_parts_of_other_words_are_no_values(text):
    assert search(session(text)).leaks == []


def test_values_are_searched_for_in_their_own_users_sessions():
    assert search(session("Zoe Brown", user="u2")).leaks == []


def test_a_value_that_stays_by_a_rule_is_counted_with_the_rule():
    remaining = search(
        session("Brown desk, Britain"), session("Brown", user="else"), session("Li", user="u2", session_id="of Rose")
    )
    assert remaining.leaks == []
    assert {rule: dict(values) for rule, values in remaining.stayed.items()} == {
        "words of the shop too": {"brown": 1},
        "values of many users": {"britain": 1},
        "short words and numbers": {"li": 1},
        "parts of ids": {"rose": 1},
    }


def test_messages_may_quote_any_user_and_have_words_of_their_own():
    message = "the brown page: nothing has the id 'rose' or zo.b@example.org"
    assert sorted(leak.value.column for leak in search(rejected=message).leaks) == ["email", "last_name", "last_name"]
