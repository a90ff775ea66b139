"""A value found by its form stays where many users have it on their pages: it is the shop's. All others go."""

import json
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from replay_sessions import Click, SessionStore
from replay_sessions.__main__ import main

MAIL, PHONE, IBAN = "otto@shop.example", "+49 30 901820", "DE89 3704 0044 0532 0130 00"
RAW, SIMPLIFIED = ("--pages", "raw"), ("--private-data", "remove")


def imported(folder: Path, pages: Iterable[tuple[str, str]], *words: str, name: str = "lamp") -> SessionStore:
    """The store of a log with a session of one page for each user and page."""
    lines = [
        {"session_id": f"s (a) {n}", "user_id": user, "source": "x",
         "steps": [{"page": page + '<a name="lamp" href="/lamp">Lamp</a>', "action": {"type": "click", "name": name}}]}
        for n, (user, page) in enumerate(pages)
    ]  # fmt: skip
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    command = f"import jsonl {folder}/log.jsonl --overwrite --out {folder}/store".split()
    assert main([*command, *words]) == 0
    return SessionStore.open(folder / "store")


@pytest.mark.parametrize(
    ("users", "others", "stays"),
    [
        ("abcde", 45, True),
        ("abcde", 46, False),
        ("abcdabcd", 0, False),
        ("a" * 40, 0, False),
        ("ab", 1, False),  # two of three
        ([f"s (a) {n}" for n in range(20)], 0, False),  # without ids of users; "s (a) 3" is whole
    ],
)
def test_five_users_and_a_tenth_have_it(tmp_path, users, others, stays):
    text = f"<p>{MAIL}, {PHONE}, {IBAN}</p>"
    pages = [(user, text) for user in users] + [(f"u{n}", "<p>Desk</p>") for n in range(others)]
    store = imported(tmp_path, pages, *RAW)
    expected = text if stays else "<p>[email], [phone], [card]</p>"
    assert all(expected in store.session(f"s (a) {n}").steps[0].page for n in range(len(users)))
    assert store.manifest.options.get("kept_contacts") == ("3" if stays else None)


@pytest.mark.parametrize("words", [RAW, SIMPLIFIED])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_text_changes(tmp_path, seed, words):
    draw = random.Random(seed)
    values = [f"ann{n}@example.org" for n in range(8)]
    shown = [(f"u{draw.randrange(12)}", draw.sample(values, draw.choice((0, 1, 3)))) for _ in range(25)]
    pages = [(user, "".join(f"<p>Ask {value}, or call.</p>" for value in some)) for user, some in shown]
    store = imported(tmp_path, pages, *words)
    kept = {value for value in values if len({user for user, some in shown if value in some}) >= 5}
    assert 0 < len(kept) < len(values)
    for n, (_, some) in enumerate(shown):
        texts = store.session(f"s (a) {n}").steps[0].page.split("<p>")[1:]
        expected = [f"Ask {value if value in kept else '[email]'}, or call." for value in some]
        assert [text.partition("<")[0] for text in texts] == expected


@pytest.mark.parametrize(("words", "logged"), [(RAW, "ask_email"), (SIMPLIFIED, "ask_otto_shop_example")])
def test_names_do_not_depend_on_how_many_users_a_log_has(tmp_path, words, logged, capsys):
    for users, text in ((3, "[email]"), (6, MAIL)):
        pages = [
            (f"u{n}", f'<a name="{logged}" href="/ask">Ask {MAIL}</a><p>u{n}@example.org</p>') for n in range(users)
        ]
        step = imported(tmp_path, pages, *words, name=logged).session("s (a) 1").steps[0]
        assert step.action == Click(name="ask_email")
        assert 'name="ask_email"' in step.page and f">Ask {text}</a>" in step.page and ">[email]</p>" in step.page
        assert ("kept_contacts 1" in capsys.readouterr().out) == (users == 6)


def test_contacts_of_many_users_footers_stay_on_pages_without_one(tmp_path):
    pages = [(f"u{n}", f"<footer>{PHONE}</footer>") for n in range(5)] + [("u0", f"<p>{PHONE} or {MAIL}</p>")]
    stores = [imported(tmp_path, pages, *RAW, "--workers", workers) for workers in ("1", "2")]
    assert f"<p>{PHONE} or [email]</p>" in stores[1].session("s (a) 5").steps[0].page
    assert stores[0].fingerprint == stores[1].fingerprint
