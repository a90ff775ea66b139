from typing import get_args

import msgspec

from replay_sessions.schema import ACTION_CLASSES, ACTION_TYPES, Action, ActionType, action_type


def test_the_types_of_action_are_those_of_the_schema():
    assert get_args(ActionType) == ACTION_TYPES
    assert tuple(ACTION_CLASSES.values()) == get_args(Action)


def test_an_action_has_the_type_that_its_json_has():
    for name, kind in ACTION_CLASSES.items():
        fields = {field.name: "x" for field in msgspec.structs.fields(kind) if field.required}
        action = kind(**fields)
        assert action_type(action) == name == msgspec.to_builtins(action)["type"]
