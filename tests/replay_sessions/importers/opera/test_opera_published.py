"""Names, columns and survey items as OPeRA's card publishes them."""

import json

from replay_sessions import Click, TypeAndSubmit
from tests.replay_sessions.importers.opera.test_opera import (
    PAGE,
    action,
    imported,
    only_session,
    session_from,
    session_id,
    session_of,
    user,
    write_opera,
)

NAMES = (
    "search_results.tiger_1_5_l_rice_cooker___white_.view_product",
    "refinements.customer_reviews.4_stars_up",
    "active_item_list.Kettle (2-Pack), 1.7 L.quantity",
    "  leading and trailing  ",
    "茶壺_é",
)


def test_names_and_the_longest_page_are_kept_as_they_are(tmp_path):
    page = f"<p>{'x' * 626_000}</p>{PAGE}"
    rows = [
        action(session_id("anna"), second, kind, semantic_id=name, simplified_html=page)
        for second, (kind, name) in enumerate((kind, name) for name in NAMES for kind in ("click", "input"))
    ]
    steps = session_from(tmp_path, rows).steps
    assert [step.action for step in steps[::2]] == [Click(name=name) for name in NAMES]
    assert [step.action for step in steps[1::2]] == [
        TypeAndSubmit(name=name, text="", submitted=False) for name in NAMES
    ]
    assert {step.page for step in steps} == {page}


def test_other_columns_and_the_table_of_screenshots_change_nothing(tmp_path):
    noted = {"mouse_position": '{"x": 1}', "element_meta": '{"tag": "A"}', "page_meta": "{}", "products": "[]",
             "window_size": "1x1", "image": "0.png"}  # fmt: skip
    folder = write_opera(tmp_path, [{**row, **noted} for row in session_of("anna")])
    (folder / "OPeRA_filtered" / "image").mkdir()
    (folder / "OPeRA_filtered" / "image" / "train-00000-of-00050.parquet").write_bytes(b"not fetched")
    plain = write_opera(tmp_path / "plain", session_of("anna"))
    assert imported(folder).fingerprint == imported(plain).fingerprint


def test_every_short_answer_of_the_survey_is_a_trait(tmp_path):
    survey = {
        "Demographic Information": {
            "Gender": "Male", "Age": "25-34", "City": "Boston", "Education level": "PhD", "Living situation": "Alone",
            "Yearly household income or stipend": "$40,000", "Employment status": "Student",
        },
        "Self Description": {"In your own words": "I hate to return things."},
        "Shopping Preference": {
            "Shopping frequency": "weekly", "Monthly spend": "$100", "Amazon Prime": "No",
            **{f"Statement {number}": "agree" for number in range(12)},
        },
        "Personality": {"MBTI": "ENFP", "Big Five Scores": {"Openness": 40, "Conscientiousness": 31, "Extraversion": 20,
                                                             "Agreeableness": 35, "Neuroticism": 12}},
    }  # fmt: skip
    people = [user("anna", survey=json.dumps(survey), raw_survey='{"Q1": "left out"}')]
    persona = only_session(imported(write_opera(tmp_path, session_of("anna"), users=people))).persona
    assert len(persona.traits) == 7 + 3 + 12 + 1 + 5
    for line in ("Living situation: Alone", "$40,000", "I hate to return things.", "Statement 11: agree", "cism: 12"):
        assert line in persona.text
    assert "left out" not in persona.text
    assert not any("own_words" in trait for trait in persona.traits)
