"""What is published of OPeRA, line by line: files of that shape and size import with the published counts."""

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from replay_sessions import Click, SessionStore, Terminate, TypeAndSubmit
from replay_sessions.importers.opera.importer import OperaImporter
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.audit.judge import audit_store
from replay_sessions.store.splits import SplitPlan
from tests.replay_sessions.importers.opera.test_opera import (
    PAGE,
    Row,
    action,
    imported,
    only_session,
    session_from,
    session_id,
    session_of,
    user,
    write_opera,
)

CLICK_TYPES = {
    "review": 1052, "search": 763, "product_option": 700, "product_link": 537, "other": 449, "purchase": 321,
    "nav_bar": 283, "page_related": 198, "quantity": 191, "suggested_term": 182, "cart_side_bar": 145,
    "cart_page_select": 139, "filter": 91,
}  # fmt: skip
SESSIONS = {"train": 437, "test": 90}
ROWS = {"train": 4864, "test": 992}
TEST_USERS, SHARED_USERS = 15, 12


def published_rows() -> dict[str, list[Row]]:
    """Rows of both splits: every click type as often as published, the others inputs, a terminate where none bought."""
    clicks = [name for name, count in CLICK_TYPES.items() for _ in range(count) if name != "purchase"]
    buys = CLICK_TYPES["purchase"]
    others = itertools.chain(clicks, itertools.repeat("input"))
    rows: dict[str, list[Row]] = {}
    for split, n_sessions in SESSIONS.items():
        rows[split] = []
        for number in range(n_sessions):
            users = [f"user{index}" for index in range(TEST_USERS)] if split == "test" else [
                f"user{index}" for index in range(TEST_USERS - SHARED_USERS, 51)
            ]  # fmt: skip
            name = session_id(users[number % len(users)]).replace("T21", f"T{number % 24:02}") + f"{split}{number}"
            length = ROWS[split] // n_sessions + (number < ROWS[split] % n_sessions)
            for second in range(length - 1):
                kind = next(others)
                rows[split].append(
                    action(name, second, "input", semantic_id="search_input", input_text="kettle")
                    if kind == "input"
                    else action(name, second, "click", semantic_id="nav_bar.homepage", click_type=kind)
                )
            buys -= 1
            end = {"click_type": "purchase", "semantic_id": "buybox.buy_now"}
            rows[split].append(action(name, 59, "click", **end) if buys >= 0 else action(name, 59, "terminate"))
    return rows


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("OPeRA")
    rows = published_rows()
    return write_opera(folder, rows["train"], rows["test"], row_group_size=500)


def test_sessions_actions_and_click_types_have_the_published_counts(published: Path, tmp_path: Path) -> None:
    run_import(OperaImporter(published), tmp_path / "store", splits=SplitPlan(by="official"))
    store = SessionStore.open(tmp_path / "store")
    assert store.manifest.split_sessions == {"train": 437, "validation": 0, "test": 90}
    steps = {split: [step for session in store.sessions(split) for step in session.steps] for split in ROWS}  # type: ignore[arg-type]
    assert {split: len(found) for split, found in steps.items()} == ROWS
    actions = [step.action for found in steps.values() for step in found]
    assert Counter(taken.click_type for taken in actions if isinstance(taken, Click)) == CLICK_TYPES
    ends = [session.steps[-1].action for session in store.sessions()]
    assert Counter(type(end) for end in ends) == {Click: 321, Terminate: 527 - 321}
    assert store.manifest.rejected == 0
    assert store.manifest.left_out_steps == {}


def test_official_splits_share_users_and_the_split_by_user_does_not(published: Path, tmp_path: Path) -> None:
    run_import(OperaImporter(published), tmp_path / "official", splits=SplitPlan(by="official"))
    official = SessionStore.open(tmp_path / "official")
    users = {split: {official.user_id(name) for name in official.session_ids(split)} for split in ("train", "test")}  # type: ignore[arg-type]
    assert (len(users["test"]), len(users["test"] & users["train"])) == (TEST_USERS, SHARED_USERS)
    assert f"{SHARED_USERS} of" in " ".join(
        w.message for w in audit_store(official).warnings if w.code == "shared_users"
    )
    run_import(OperaImporter(published), tmp_path / "by_user")
    by_user = SessionStore.open(tmp_path / "by_user")
    assert by_user.fingerprint != official.fingerprint
    assert [code for code in audit_store(by_user).faults if code.code == "shared_users"] == []
    assert {session.official_split for session in by_user.sessions()} == {"train", "test"}


def test_the_longest_page_is_kept_whole(tmp_path: Path) -> None:
    page = f"<p>{'x' * 626_000}</p>{PAGE}"
    rows = [{**row, "simplified_html": page} for row in session_of("anna")]
    assert [step.page for step in session_from(tmp_path, rows).steps] == [page] * 3


@pytest.mark.parametrize(
    "name",
    [
        "search_results.tiger_1_5_l_rice_cooker___white_.view_product",
        "refinements.customer_reviews.4_stars_up",
        "active_item_list.Kettle (2-Pack), 1.7 L.quantity",
        "  leading and trailing  ",
        "茶壺_é",
    ],
)
def test_names_are_verbatim_whatever_they_hold(tmp_path: Path, name: str) -> None:
    rows = [
        action(session_id("anna"), 1, "click", semantic_id=name),
        action(session_id("anna"), 2, "input", semantic_id=name),
    ]
    steps = session_from(tmp_path, rows).steps
    assert [step.action for step in steps] == [Click(name=name), TypeAndSubmit(name=name, text="", submitted=False)]


def test_what_belongs_to_other_columns_is_not_needed(tmp_path: Path) -> None:
    """mouse_position and element_meta may be null or hold JSON; screenshots are a table of their own."""
    noted = {"mouse_position": '{"x": 1}', "element_meta": '{"tag": "A"}', "page_meta": "{}", "products": "[]",
             "window_size": "1x1", "image": "0.png"}  # fmt: skip
    folder = write_opera(tmp_path, [{**row, **noted} for row in session_of("anna")])
    (folder / "OPeRA_filtered" / "image").mkdir()
    (folder / "OPeRA_filtered" / "image" / "train-00000-of-00050.parquet").write_bytes(b"not fetched")
    plain = write_opera(tmp_path / "plain", session_of("anna"))
    assert imported(folder).fingerprint == imported(plain).fingerprint


def test_every_published_answer_of_the_survey_is_told_and_a_trait(tmp_path: Path) -> None:
    items = {f"Statement {number}": "agree" for number in range(12)}
    survey = {
        "Demographic Information": {
            "Gender": "Male", "Age": "25-34", "City": "Boston", "Education level": "PhD", "Living situation": "Alone",
            "Yearly household income or stipend": "$40,000", "Employment status": "Student",
        },
        "Self Description": {"In your own words": "I hate to return things."},
        "Shopping Preference": {"Shopping frequency": "weekly", "Monthly spend": "$100", "Amazon Prime": "No", **items},
        "Personality": {"MBTI": "ENFP", "Big Five Scores": {"Openness": 40, "Conscientiousness": 31, "Extraversion": 20,
                                                             "Agreeableness": 35, "Neuroticism": 12}},
    }  # fmt: skip
    people = [user("anna", survey=json.dumps(survey), raw_survey='{"Q1": "not told"}')]
    persona = only_session(imported(write_opera(tmp_path, session_of("anna"), users=people))).persona
    assert persona is not None
    assert len(persona.traits) == 7 + 3 + 12 + 1 + 5
    for said in (
        "Living situation: Alone",
        "$40,000",
        "I hate to return things.",
        "Statement 11: agree",
        "Neuroticism: 12",
    ):
        assert said in persona.text
    assert "not told" not in persona.text
    assert not any("own_words" in trait for trait in persona.traits)
