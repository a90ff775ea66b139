import pytest

from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.mapped.record_paths import optional_text_at, text_at, unknown_keys

RECORD = {
    "a": {"b": '{"c": 1}'},
    "list": [{"id": "x"}, {"id": "y"}],
    "pairs": [{"key": "k", "value": {"string_value": None, "int_value": 7}}, {"key": "plain", "value": "v"}],
    "terms": ["red", "kettle"],
    "none": None,
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b.c", "1"), ("list.1.id", "y"), ("list.2.id", None), ("list.id", None), ("pairs.k", "7"),
        ("pairs.plain", "v"), ("pairs.gone", None), ("terms.*", "red kettle"), ("list.*", None),
        (("none", "gone", "list.0.id"), "x"), (("none", "gone"), None),
        ("=[x='{list.0.id}'] {pairs.k}", "[x='x'] 7"), ("={gone}", None), ("=plain", "plain"),
        ("terms.99999999999999999999", None),
    ],
)  # fmt: skip
def test_a_path_goes_through_lists_pairs_alternatives_and_text_of_its_own(path, value):
    assert optional_text_at(RECORD, path) == value


def test_a_template_that_lacks_a_value_is_missing():
    with pytest.raises(BadSession, match="'gone'"):
        text_at(RECORD, "={gone}")


def test_keys_of_pairs_are_known_by_their_names():
    known = {"a", "list", "terms", "none", "pairs.k"}
    assert list(unknown_keys(RECORD, "", known, {"pairs"})) == ["pairs.plain"]
