"""The messages of a request, its examples, and the schema that guides the reply."""

from collections.abc import Callable
from typing import Any

import pytest

from agents.conformance import check_agent
from agents.prompting.agent import PromptingAgent
from agents.prompting.messages import examples_text, prompt_messages
from agents.prompting.options import PromptingOptions
from replay_sessions.foundation.errors import BadConfig
from shop_env.evaluation.answering import generate_batch
from shop_env.observation import ContextConfig, Observation
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.replies import MalformedReply, parse_reply
from shop_env.train_view import TrainView
from tests.agents.prompting.scripted_server import ScriptedServer, completion
from tests.scored_steps import scored_steps

MakeAgent = Callable[..., PromptingAgent]
CLICK = '{"type": "click", "name": "red"}'
SESSION: Observation = {
    "page": '<a name="buy">Buy</a>',
    "history": (
        {"page": "<p>one</p>", "rationale": "I like red.", "action": CLICK},
        {"page": "<p>two</p>", "rationale": "", "action": CLICK},
        {"page": "<p>three</p>", "rationale": "", "action": CLICK},
    ),
    "persona": "Ada, thrifty.",
    "goal": "a hat",
    "step": 3,
}


def options(**given: Any) -> PromptingOptions:
    return PromptingOptions(base_url="http://127.0.0.1:1/v1", model="m", **given)


def test_a_model_is_asked_the_prompts_of_training():
    assert prompt_messages(SESSION, options()) == render_prompt(SESSION)
    system, *conversation = prompt_messages(SESSION, options(style="shop_r1"), examples="## Examples")
    expected, *trained = render_prompt(SESSION, PromptConfig(style="shop_r1"))
    assert (system["content"], conversation) == (expected["content"] + "\n\n## Examples", trained)


def test_models_that_refuse_a_system_message_get_the_instructions_in_the_first_user_message():
    system, first, *others = prompt_messages(SESSION, options())
    merged = prompt_messages(SESSION, options(system_role="first_user"))
    assert merged == [{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *others]


@pytest.mark.parametrize("persona", ["matched", "none", "generic", "shuffled"])
def test_the_persona_is_the_contexts(demo_store, persona):
    step = next(scored_steps(demo_store, "test", context=ContextConfig(persona=persona)))
    shown = step.observation["persona"]
    system = prompt_messages(step.observation, options())[0]["content"]
    assert (shown in system) if shown else "## Persona" not in system


def test_examples_are_drawn_from_train_and_follow_from_their_seed(demo_store):
    view = TrainView(demo_store)

    def draw(**given: Any) -> str:
        return examples_text(view, options(**{"shots": 2, "shot_page_characters": 300, **given}))

    assert draw() == draw() != draw(shot_seed=1)
    assert draw(shots=0) == ""
    assert draw().count("### Person") == 2
    trained_on = {f"Goal: {session.goal}" for session in view.sessions()}
    assert {line for line in draw().splitlines() if line.startswith("Goal: ")} <= trained_on
    personas = [session.persona.text for session in demo_store.sessions() if session.persona]
    assert not any(text in draw() for text in personas)
    with pytest.raises(BadConfig):
        draw(shots=1000)


def test_an_example_shows_the_element_that_was_used(planted_store):
    view = TrainView(planted_store)
    text = examples_text(view, options(shots=1, shot_page_characters=1000))
    assert 'name="results.blue"' in text
    assert '#### Reply\n{"rationale": "I click results.blue.", "action": ' in text
    assert "characters left out" in examples_text(view, options(shots=1, shot_page_characters=80))


def test_a_schema_holds_every_action_and_nothing_of_the_page(make_prompting):
    with ScriptedServer() as server:
        generate_batch(make_prompting(server, schema=True), [SESSION], [0])
    schema = server.received[0].request["response_format"]["json_schema"]["schema"]
    types = [one["properties"]["type"]["enum"][0] for one in schema["properties"]["action"]["anyOf"]]
    assert types == ["click", "type_and_submit", "terminate"]
    assert "buy" not in str(schema)


def test_the_agent_keeps_the_contract_that_others_are_held_to(make_prompting):
    with ScriptedServer() as server:
        report = check_agent(make_prompting(server, temperature=1.0))
        assert report.passed, str(report)


def test_a_malformed_reply_is_the_models(make_prompting):
    with ScriptedServer(completion("I would click.")) as server:
        (reply,) = generate_batch(make_prompting(server), [SESSION], [0])
    assert isinstance(parse_reply(reply), MalformedReply)
