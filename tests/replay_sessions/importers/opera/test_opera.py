"""OPeRA cannot be fetched here: small files of the card's schema, with every oddity that is known of the data."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shop_env  # noqa: F401 - registers ShopR1-v0
from replay_sessions import Click, Scroll, Session, SessionStore, Terminate, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.opera.importer import OperaImporter, OperaOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.audit.judge import audit_store
from replay_sessions.store.splits import SplitPlan
from shop_env.replies import format_reply
from tests.json_files import read_json
from tests.stores import read_rejected

Row = dict[str, str | None]
_FILTERED = """
session_id action_id timestamp action_type click_type semantic_id mouse_position element_meta url window_size page_meta
simplified_html rationale products input_text image"""
_FULL = "navigation_type simplified_html_new_page scroll_detail target image_new_page"
FILTERED_COLUMNS = _FILTERED.split()
FULL_COLUMNS = [*FILTERED_COLUMNS, *_FULL.split()]
PAGE = (
    '<html><head></head><body><div name="nav_bar" role="navigation"><div name="nav_bar.homepage">Homepage</div>'
    '<form role="search"><input name="search_input"></form></div><a name="4_stars_and_above.tiger_rice_cooker">Tiger'
    '</a><button name="buybox.buy_now">Buy now</button></body></html>'
)
SURVEY = {
    "Demographic Information": {"Gender": "Female", "Age": 31, "City": None, "Education level": "Master's degree"},
    "Self Description": {"Describe yourself": "I compare prices."},
    "Shopping Preference": {"Prime": True, "Statements": {"I read reviews": "agree"}, "Devices": ["phone", "laptop"]},
    "Personality": {"MBTI": "INTJ", "Big Five Scores": {"Openness": 4.5}},
}


def session_id(user: str, number: int = 0) -> str:
    return f"{user}_2025-04-{number + 1:02}T21:52:46.756000Z_2025-04-{number + 1:02}T21:55:50.785000Z"


def action(session: str, second: float, kind: str | None, **fields: str | None) -> Row:
    row: Row = dict.fromkeys(FULL_COLUMNS)
    row.update(session_id=session, timestamp=f"2025-04-14T21:52:{second:06.3f}Z", action_type=kind)
    return {**row, "simplified_html": PAGE, "url": "https://www.amazon.com/?URL_MASKED", **fields}


def session_of(user: str, number: int = 0, last: str = "terminate") -> list[Row]:
    """Click, input and the end: a terminate, or a click on a purchase button."""
    name = session_id(user, number)
    end = (
        action(name, 30, "terminate")
        if last == "terminate"
        else action(name, 30, "click", click_type="purchase", semantic_id="buybox.buy_now", rationale="It is cheap.")
    )
    return [
        action(name, 10, "click", click_type="product_link", semantic_id="4_stars_and_above.tiger_rice_cooker"),
        action(name, 20, "input", semantic_id="search_input", input_text="rice cooker", rationale=""),
        end,
    ]


def user(name: str, **fields: str | None) -> Row:
    row: Row = {"user_id": name, "survey": json.dumps(SURVEY), "raw_survey": "{}",
                                  "interview_transcript": None, "interview_transcript_processed": None}  # fmt: skip
    return {**row, **fields}


def write(path: Path, rows: list[Mapping[str, Any]], columns: list[str], **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in columns}
    pq.write_table(pa.table(data), path, **options)


def write_opera(
    folder: Path,
    train: list[Row],
    test: list[Row] | None = None,
    *,
    users: list[Row] | None = None,
    version: str = "filtered",
    row_group_size: int = 1000,
) -> Path:
    """The card's layout: actions, sessions and users of both splits."""
    root = folder / f"OPeRA_{version}"
    columns = FILTERED_COLUMNS if version == "filtered" else FULL_COLUMNS
    for split, rows in (("train", train), ("test", test or [])):
        write(root / "action" / f"{split}-00000-of-00001.parquet", rows, columns, row_group_size=row_group_size)
        ids = dict.fromkeys(row["session_id"] for row in rows if row["session_id"])
        sessions = [{"session_id": name, "user_id": (name or "").split("_")[0], "action_count": "3"} for name in ids]
        write(root / "session" / split / f"{split}.parquet", sessions, ["session_id", "user_id", "action_count"])
        write(root / "user" / split / f"{split}.parquet", users or [user("anna")], list(user("")))
    return folder


def imported(folder: Path, *, splits: SplitPlan | None = None, **options: Any) -> SessionStore:
    run_import(OperaImporter(folder, OperaOptions(**options)), folder / "store", splits=splits, overwrite=True)
    return SessionStore.open(folder / "store")


def only_session(store: SessionStore) -> Session:
    return next(store.sessions())


def session_from(folder: Path, rows: list[Row], **options: Any) -> Session:
    """Imports the rows of one session and returns it."""
    return only_session(imported(write_opera(folder, rows), **options))


class TestFiltered:
    def test_actions_sessions_and_users_are_joined_with_names_verbatim(self, tmp_path):
        session = session_from(tmp_path, session_of("anna"))
        assert (session.session_id, session.user_id, session.source) == (session_id("anna"), "anna", "opera")
        assert [step.action for step in session.steps] == [
            Click(name="4_stars_and_above.tiger_rice_cooker", click_type="product_link"),
            TypeAndSubmit(name="search_input", text="rice cooker", submitted=False),
            Terminate(),
        ]
        assert {step.page for step in session.steps} == {PAGE}
        assert session.steps[0].url == "https://www.amazon.com/?URL_MASKED"
        assert session.steps[0].timestamp == "2025-04-14T21:52:10.000Z"

    def test_sessions_end_in_a_purchase_click_or_in_terminate(self, tmp_path):
        store = imported(write_opera(tmp_path, [*session_of("anna", 0), *session_of("anna", 1, last="purchase")]))
        ends = [session.steps[-1].action for session in store.sessions()]
        assert ends == [Terminate(), Click(name="buybox.buy_now", click_type="purchase")]
        assert store.manifest.action_counts == {"click": 3, "terminate": 1, "type_and_submit": 2}

    def test_empty_and_null_rationales_are_none(self, tmp_path):
        rows = [*session_of("anna", last="purchase"), action(session_id("anna"), 5, "click", rationale="  ")]
        session = session_from(tmp_path, rows)
        assert [step.rationale for step in session.steps] == [None, None, None, "It is cheap."]

    def test_null_fields_keep_the_step(self, tmp_path):
        name = session_id("anna")
        rows = [
            action(name, 1, "click", semantic_id=None, click_type=None, simplified_html=None),
            action(name, 2, "input", semantic_id=None, input_text=None, url=None),
            action(name, 3, "terminate", simplified_html=""),
        ]
        steps = session_from(tmp_path, rows).steps
        assert [step.action for step in steps] == [
            Click(name=""), TypeAndSubmit(name="", text="", submitted=False), Terminate(),
        ]  # fmt: skip
        assert [step.page for step in steps] == ["", PAGE, ""]
        assert steps[1].url is None

    def test_actions_are_in_the_order_of_their_times_whatever_the_file(self, tmp_path):
        first, second = session_of("anna", 0), session_of("bert", 1)
        mixed = [second[2], first[1], second[0], first[2], first[0], second[1]]
        store = imported(write_opera(tmp_path, mixed, row_group_size=2))
        assert store.session_ids() == [session_id("bert", 1), session_id("anna", 0)]
        for session in store.sessions():
            assert [type(step.action) for step in session.steps] == [Click, TypeAndSubmit, Terminate]

    def test_texts_that_say_a_value_is_missing_are_missing_and_counted(self, tmp_path):
        name, page = session_id("anna"), PAGE.replace("buybox.buy_now", "null")
        rows = [
            action(name, 1, "click", semantic_id="null", click_type="nan", rationale="nan", simplified_html=page),
            action(name, 2, "click", semantic_id="NaN", rationale="None of them is cheap."),
            action(name, 3, "input", semantic_id="search_input", input_text="nan", rationale="null"),
        ]
        store = imported(write_opera(tmp_path, rows, users=[user("anna", survey="nan", interview_transcript="None")]))
        session = only_session(store)
        assert [step.action for step in session.steps] == [
            Click(name="null"), Click(name=""), TypeAndSubmit(name="search_input", text="nan", submitted=False),
        ]  # fmt: skip
        assert [step.rationale for step in session.steps] == [None, "None of them is cheap.", None]
        assert session.persona is None
        assert store.manifest.changed_values == {
            f"{text!r} under {column}, read as missing": 2 if column in ("survey", "interview_transcript") else 1
            for text, column in (
                ("nan", "click_type"), ("nan", "rationale"), ("NaN", "semantic_id"), ("null", "rationale"),
                ("nan", "survey"), ("None", "interview_transcript"),
            )
        }  # fmt: skip

    def test_rows_of_no_session_are_rejected(self, tmp_path):
        folder = write_opera(tmp_path, [*session_of("anna"), action(None, 1, "click")])
        sessions = folder / "OPeRA_filtered" / "session" / "train" / "train.parquet"
        rows = [{"session_id": session_id(name), "user_id": name} for name in ("anna", "nobody")]
        write(sessions, rows, ["session_id", "user_id"])
        store = imported(folder)
        assert len(store) == 1
        assert read_rejected(store.path) == {
            "train-00000-of-00001.parquet, row 4": "the action names no session",
            session_id("nobody"): "the session table lists it and no action belongs to it",
        }


class TestPersonas:
    def test_survey_and_interview_are_told_and_short_answers_are_traits(self, tmp_path):
        people = [user("anna", interview_transcript_processed="### Habits\nShe waits for sales.")]
        persona = only_session(imported(write_opera(tmp_path, session_of("anna"), users=people))).persona
        assert persona.text == (
            "Demographic Information\n- Gender: Female\n- Age: 31\n- Education level: Master's degree\n\n"
            "Self Description\n- Describe yourself: I compare prices.\n\n"
            "Shopping Preference\n- Prime: yes\n- Statements, I read reviews: agree\n- Devices: phone, laptop\n\n"
            "Personality\n- MBTI: INTJ\n- Big Five Scores, Openness: 4.5\n\n"
            "Interview\n### Habits\nShe waits for sales."
        )
        assert persona.traits == {
            "gender": "Female", "age": "31", "education_level": "Master's degree", "prime": "yes",
            "statements_i_read_reviews": "agree", "devices": "phone, laptop", "mbti": "INTJ",
            "big_five_scores_openness": "4.5",
        }  # fmt: skip

    @pytest.mark.parametrize(("survey", "text"), [(None, None), ("", None), ("{broken", "{broken"), ("[]", "[]")])
    def test_surveys_that_are_no_json_object(self, tmp_path, survey, text):
        folder = write_opera(tmp_path, session_of("anna"), users=[user("anna", survey=survey)])
        persona = only_session(imported(folder)).persona
        assert (persona and persona.text) == text

    def test_a_user_of_both_splits_has_one_persona(self, tmp_path):
        folder = write_opera(tmp_path, session_of("anna", 0), session_of("anna", 1))
        write(folder / "OPeRA_filtered/user/test/test.parquet", [user("anna", survey=None)], list(user("")))
        personas = [session.persona for session in imported(folder).sessions()]
        assert personas[0] is not None
        assert personas[0] == personas[1]


class TestSplits:
    def test_official_splits_stand_in_the_sessions_and_are_used_when_asked_for(self, tmp_path, capsys):
        train = [row for number in range(8) for row in session_of(f"user{number}", number)]
        folder = write_opera(tmp_path, train, session_of("user0", 9))
        official = imported(folder, splits=SplitPlan(by="official"))
        assert official.manifest.split_sessions == {"train": 8, "validation": 0, "test": 1}
        assert official.session(session_id("user0", 9)).official_split == "test"
        shared = [warning.code for warning in audit_store(official).warnings]
        assert "shared_users" in shared  # users stand on both sides of the official split
        main(["import", "opera", str(folder), "--split-by", "official", "--out", str(tmp_path / "again")])
        assert "no session is in validation; the publisher's split has none: a training" in capsys.readouterr().out

    def test_a_user_stays_on_one_side_by_default(self, tmp_path):
        train = [row for number in range(8) for row in session_of("user0", number)]
        store = imported(write_opera(tmp_path, train, session_of("user0", 9)))
        assert sorted(store.manifest.split_sessions.values()) == [0, 0, 9]


class TestFull:
    def test_blanks_at_the_ends_of_typed_texts_go_and_are_counted(self, tmp_path):
        name = session_id("anna")
        texts = ["rice cooker ", " rice  cooker\n", "rice cooker"]
        rows = [
            action(name, second, "input", semantic_id="search_input", input_text=text)
            for second, text in enumerate(texts)
        ]
        store = imported(write_opera(tmp_path, rows))
        typed = [step.action.text for step in only_session(store).steps if isinstance(step.action, TypeAndSubmit)]
        assert typed == ["rice cooker", "rice  cooker", "rice cooker"]
        assert [step.gap for step in only_session(store).steps] == [0, 0, 0]
        assert (store.manifest.trimmed_texts, store.manifest.left_out_steps) == (2, {})

    def test_other_events_are_left_out_counted_and_told_by_gaps(self, tmp_path):
        name = session_id("anna")
        new_page = {"simplified_html": "", "simplified_html_new_page": PAGE}
        rows = [
            action(name, 1, "scroll", scroll_detail="{}"),
            action(name, 2, "click", semantic_id="nav_bar.homepage", click_type="nav_bar"),
            action(name, 3, "navigation", navigation_type="back", **new_page),
            action(name, 4, "tab_activate", **new_page),
            action(name, 5, "tabActivate", **new_page),
            action(name, 6, "input", semantic_id="search_input", input_text="kettle"),
            action(name, 7, None),
        ]
        only_events = [action(session_id("bert"), 1, "tab_activate"), action(session_id("bert"), 2, "navigation")]
        store = imported(write_opera(tmp_path, [*rows, *only_events], version="full"), version="full")
        assert store.manifest.left_out_steps == {
            "navigation": 2,
            "tab_activate": 2,
            "tabActivate": 1,
            "without a type": 1,
        }
        session = only_session(store)
        assert [(type(step.action), step.gap, step.page) for step in session.steps] == [
            (Scroll, 0, PAGE), (Click, 0, PAGE), (TypeAndSubmit, 3, PAGE),
        ]  # fmt: skip
        (reason,) = read_rejected(store.path).values()
        assert reason == "none of its steps is an action (only navigation, tab_activate)"
        assert store.manifest.options["version"] == "full"

    def test_consecutive_scrolls_are_one_and_counted_and_prompts_replies_and_metrics_have_them(self, tmp_path, capsys):
        name = session_id("anna")
        rows = [
            action(name, 1, "scroll", simplified_html=PAGE.replace("Tiger", "First")),
            action(name, 2, "scroll", rationale="I look on."),
            action(name, 3, "scroll"),
            action(name, 4, "navigation"),
            action(name, 5, "scroll"),
            action(name, 6, "input", semantic_id="search_input", input_text="kettle"),
            action(name, 7, "scroll"),
        ]
        folder = write_opera(tmp_path, rows, version="full")
        assert main(f"import opera {folder} --version full --out {tmp_path}/full".split()) == 0
        assert "2 × a scroll directly after a scroll, merged into it" in capsys.readouterr().out
        store = SessionStore.open(tmp_path / "full")
        first, second, typed, last = only_session(store).steps
        assert (first.merged, first.rationale, "First" in first.page) == (2, "I look on.", True)
        assert (second.merged, second.gap, typed.gap, last.merged) == (0, 1, 0, 0)
        assert store.manifest.action_counts == {"scroll": 3, "type_and_submit": 1}
        assert store.scrolls and not imported(write_opera(tmp_path / "b", session_of("anna"))).scrolls
        env = gymnasium.make("ShopR1-v0", store=str(store.path), split="all")
        env.reset()
        _, reward, *_, info = env.step(format_reply("", Scroll()))
        assert (reward, info["logged_action"]) == (pytest.approx(0.8), {"type": "scroll"})
        env.step(format_reply("", typed.action))
        _, reward, *_, info = env.step(format_reply("", Terminate()))
        assert (reward, "problem" in info) == (0.5, False)


class TestSources:
    def test_parts_and_processes_make_the_same_store(self, tmp_path, monkeypatch):
        folder = write_opera(tmp_path, [row for i in range(6) for row in session_of(f"user{i}", i)], row_group_size=4)
        whole = imported(folder).fingerprint
        monkeypatch.setattr("replay_sessions.importers.opera.importer._PART_ROWS", 2)
        done: list[int] = []
        run_import(OperaImporter(folder), folder / "store", overwrite=True, workers=2, on_progress=done.append)
        assert len(done) == 6
        assert SessionStore.open(folder / "store").fingerprint == whole

    def test_the_versions_own_folder_and_older_file_names_are_found(self, tmp_path):
        folder = write_opera(tmp_path, session_of("anna")) / "OPeRA_filtered"
        (folder / "action" / "train").mkdir()
        (folder / "action/train-00000-of-00001.parquet").rename(folder / "action/train/train.parquet")
        assert len(imported(folder)) == 1

    def test_without_session_and_user_tables_users_are_read_from_ids(self, tmp_path):
        folder = write_opera(tmp_path, session_of("anna_b"))
        for table in ("session", "user"):
            (folder / f"OPeRA_filtered/{table}").rename(tmp_path / table)
        importer = OperaImporter(folder)
        assert len(importer.notes) == 2
        session = only_session(imported(folder))
        assert (session.user_id, session.persona) == ("anna_b", None)

    def test_a_missing_file_of_a_split_is_told(self, tmp_path):
        folder = write_opera(tmp_path, session_of("anna"))
        actions = folder / "OPeRA_filtered/action"
        (actions / "train-00000-of-00001.parquet").rename(actions / "train-00000-of-00003.parquet")
        with pytest.raises(ImportFailed, match=r"holds 1 of 3 files, 'train-00001-of-00003.parquet' is missing"):
            OperaImporter(folder)

    @pytest.mark.parametrize("column", ["session_id", "action_type"])
    def test_a_missing_column_is_told(self, tmp_path, column):
        file = write_opera(tmp_path, session_of("anna")) / "OPeRA_filtered/action/train-00000-of-00001.parquet"
        pq.write_table(pq.read_table(file).drop_columns(column), file)
        with pytest.raises(ImportFailed, match=rf"train-.*' has no column {column}: is it"):
            list(OperaImporter(file.parents[2]).split())

    def test_a_damaged_file_is_told(self, tmp_path):
        folder = write_opera(tmp_path, session_of("anna"))
        (folder / "OPeRA_filtered/action/test-00000-of-00001.parquet").write_bytes(b"PAR1 no")
        with pytest.raises(ImportFailed, match="is damaged"):
            imported(folder)

    def test_missing_data_is_an_error_that_says_how_to_get_it(self, tmp_path, capsys):
        pytest.importorskip("huggingface_hub", reason="needs the extra hub")
        assert main(f"import opera {tmp_path}/nowhere --out {tmp_path}/store".split()) == 2
        assert "--revision 6f26a2c5cc69" in capsys.readouterr().err
        (tmp_path / "empty").mkdir()
        assert main(f"import opera {tmp_path}/empty --out {tmp_path}/store".split()) == 2
        assert "import opera --help-all" in capsys.readouterr().err

    def test_the_cards_own_row_imports(self, shared_data, tmp_path):
        row = read_json(shared_data / "opera/opera_viewer_row.json")["row"]
        store = imported(write_opera(tmp_path, [action(row["session_id"], 0, "click", **row)]))
        step = only_session(store).steps[0]
        assert msgspec.to_builtins(step.action) == {
            "type": "click", "name": row["semantic_id"], "click_type": "product_link",
        }  # fmt: skip
        assert only_session(store).user_id == "324934a2-5d58-49d9-bae8-545fba660731"


class TestPages:
    """Pages that are not as OPeRA's card says, or that somebody wants to have cleaned once more."""

    RAW = '<script>track("anna@example.org")</script><p>Hello, anna@example.org</p><a href="/1">Tiger rice cooker</a>'

    def rows(self) -> list[Row]:
        click = action(
            session_id("anna"), 10, "click", semantic_id="Tiger rice cooker", rationale="I am anna@example.org."
        )
        return [{**click, "simplified_html": self.RAW}]

    def test_raw_pages_are_simplified_and_targets_found_by_text(self, tmp_path):
        store = imported(write_opera(tmp_path, self.rows()), pages="raw")
        step = only_session(store).steps[0]
        assert step.action == Click(name="tiger_rice_cooker")
        assert "Hello, [email]" in step.page
        assert step.rationale == "I am [email]."
        assert "<script" not in step.page
        assert store.manifest.options["pages"] == "raw"

    def test_private_data_is_taken_out_of_simplified_ones_where_it_is_asked_to(self, tmp_path):
        folder = write_opera(tmp_path, self.rows())
        assert only_session(imported(folder)).steps[0].page == self.RAW
        assert "anna@" not in str(only_session(imported(folder, private_data="remove")))
