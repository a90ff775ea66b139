"""Every recording and event list of the shared test data is imported, or refused with the reason."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replay_sessions import Click, SessionStore, TypeAndSubmit
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.rrweb.importer import RrwebImporter, RrwebOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.audit.judge import audit_store
from tests.stores import read_rejected

NOTHING_DONE = "nothing was done in it: neither a click nor a typed text"

# File -> the steps of its sessions, and what was left out.
IMPORTED: dict[str, tuple[list[int], dict[str, int]]] = {
    "posthog_docs.result.json": ([19], {"click on nothing that can be acted on": 6}),
    "posthog_hogflix_signup.snapshots.json": ([2], {}),
    "posthog_homepage.result.json": ([2], {"click on nothing that can be acted on": 4}),
    "posthog_local_docs.result.json": ([2], {"click on nothing that can be acted on": 1}),
    "posthog_mobile.result.json": ([9], {}),
    "posthog_two_windows.export_v2.ph-recording.json": ([7], {"click on nothing that can be acted on": 1}),
    "posthog_two_windows.window_id_data.jsonl": ([7], {"click on nothing that can be acted on": 1}),
    "rrweb_player_demo.array.json": ([1], {"click on nothing that can be acted on": 2}),
    "rrweb_player_demo.lines.jsonl": ([1], {"click on nothing that can be acted on": 2}),
    "rrweb_player_demo.packed.json": ([1], {"click on nothing that can be acted on": 2}),
    "rrweb_stats_forms.array_of_arrays.json": ([17, 8, 8, 12, 59], {"click on nothing that can be acted on": 16}),
    "shopify_dev_store.array.json": ([1], {}),
}
REFUSED = {
    "highlight_events_wrapper.json": NOTHING_DONE,
    "posthog_feature_flags.window_event.key0.jsonl": NOTHING_DONE,
    "posthog_feature_flags.window_event.key1.jsonl": "it holds no full snapshot",
    "posthog_settings_damaged.window_id_data.jsonl": "while decompressing data",
    "sentry_multiple_pages.segments.txt": "99% of the letters on its pages are masked",
}


def imported(path: Path, folder: Path, **options: Any) -> SessionStore:
    run_import(RrwebImporter(path, RrwebOptions(**options)), folder / "store")
    return SessionStore.open(folder / "store")


def test_all_recordings_are_in_the_tables_above(shared_data):
    assert {path.name for path in (shared_data / "rrweb" / "recordings").iterdir()} == {*IMPORTED, *REFUSED}


@pytest.mark.parametrize("name", IMPORTED)
def test_a_recording_becomes_sessions_with_targets_on_their_pages(shared_data, tmp_path, name):
    store = imported(shared_data / "rrweb" / "recordings" / name, tmp_path)
    steps, left_out = IMPORTED[name]
    assert [len(session.steps) for session in store.sessions()] == steps
    assert store.manifest.left_out_steps == left_out
    assert store.manifest.rejected == 0
    for session in store.sessions():
        for step in session.steps:
            assert f'name="{step.action.name}"' in step.page
    assert audit_store(store)


@pytest.mark.parametrize("name", REFUSED)
def test_another_is_refused_with_the_reason(shared_data, tmp_path, name):
    with pytest.raises(ImportFailed, match=f"no session could be imported: {name}.*{REFUSED[name]}"):
        imported(shared_data / "rrweb" / "recordings" / name, tmp_path)


def test_clicks_and_texts_are_those_of_the_recording(shared_data, tmp_path):
    recordings = shared_data / "rrweb" / "recordings"
    (shop,) = imported(recordings / "shopify_dev_store.array.json", tmp_path / "shop").sessions()
    assert shop.steps[0].action == Click(name="dev_hoang_nx.header.nav.catalog")
    (signup,) = imported(recordings / "posthog_hogflix_signup.snapshots.json", tmp_path / "signup").sessions()
    assert [step.action for step in signup.steps] == [
        TypeAndSubmit(name="sign_up.username", text="helloworld"),
        TypeAndSubmit(name="pay_for_hogflix.4000_0000_0000_0000", text="12314"),
    ]
    assert "mynameis" not in json.dumps([step.url for step in signup.steps])
    forms = list(imported(recordings / "rrweb_stats_forms.array_of_arrays.json", tmp_path / "forms").sessions())
    texts = [step.action.text for form in forms for step in form.steps if isinstance(step.action, TypeAndSubmit)]
    assert texts[:4] == ["form yay", "another form yay", "woohoo 2 forms", "yayyy 2 forms"]


def test_a_whole_folder_is_imported_and_refused_files_are_listed(shared_data, tmp_path):
    store = imported(shared_data / "rrweb" / "recordings", tmp_path)
    told = {where.partition(":")[0]: reason for where, reason in read_rejected(store.path).items()}
    damaged = "posthog_settings_damaged.window_id_data"
    assert told.keys() == {*REFUSED, damaged}
    assert told[f"{damaged}.jsonl"] == "event 7, which may have changed the page, cannot be read"
    assert told[damaged] == "none of its actions could be taken in"
    assert store.manifest.left_out_steps["click without a page"] == 1
    assert sum(len(session.steps) for session in store.sessions()) == sum(sum(steps) for steps, _ in IMPORTED.values())


# Event list of rrweb's own tests -> the actions in it; "" is unknown. What is not listed holds none.
FORM = [("type_and_submit", "text", "test"), ("click", "toggle"), ("click", "checkbox")]
PASSWORD, TEXTAREA = ("type_and_submit", "password", ""), ("type_and_submit", "textarea", "textarea test")
EVENTS: dict[str, list[tuple[str, ...]]] = {
    "input": [("click", "a_b_c.a"), ("click", "a_b_c.c"), ("type_and_submit", "text", "test input")],
    "recorder_can_record_and_replay_textarea_mutations_correctly": [("type_and_submit", "ok3", "12ok3")],
    "recorder_can_record_clicks": [("click", "link")],
    "recorder_can_record_form_interactions": [*FORM, TEXTAREA],
    "recorder_can_use_maskinputoptions_to_configure_which_type_of_inputs_s": [*FORM, TEXTAREA, PASSWORD],
    "recorder_form_should_map_input_events_correctly": [*FORM, PASSWORD, TEXTAREA],
    "recorder_should_mask_password_value_attribute_with_maskinputoptions": [
        PASSWORD, ("click", "toggle_show_password"), PASSWORD, ("click", "toggle_show_password"),
    ],
    "recorder_should_not_record_input_events_on_ignored_elements": [
        ("type_and_submit", "input_not_ignored_here", "not secret")
    ],
    "recorder_should_not_record_input_values_if_maskallinputs_is_enabled": [
        ("type_and_submit", "text", ""), *FORM[1:], PASSWORD, ("type_and_submit", "textarea", ""),
    ],
}  # fmt: skip


def test_the_event_lists_of_rrweb_s_tests_are_imported_or_refused(shared_data, tmp_path):
    found: dict[str, list[tuple[str, ...]]] = {}
    for path in sorted((shared_data / "rrweb" / "events").glob("*.json")):
        try:
            store = imported(path, tmp_path / path.stem)
        except ImportFailed as error:
            assert "nothing was done in it" in str(error) or "none of its steps is an action" in str(error), path.name
            continue
        found[path.stem] = [
            tuple(str(value) for key, value in msgspec.to_builtins(step.action).items() if key != "submitted")
            for session in store.sessions()
            for step in session.steps
        ]
    assert found == EVENTS
