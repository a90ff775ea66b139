"""What a model is shown: how past steps look to it, examples, candidates, and the shapes that guide its reply."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.adapted import TrainView
from agents.conformance import check_agent
from agents.prompting.agent import PromptingAgent, examples_text, prompt_messages
from agents.prompting.formats import reply_of_choice
from agents.prompting.options import PromptingOptions, read_options
from agents.registry import make_agent
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Terminate
from replay_sessions.store import SessionStore
from shop_env.candidates import candidate_actions
from shop_env.evaluation.generate import generate_batch
from shop_env.evaluation.scored_steps import scored_steps
from shop_env.observation import ContextConfig, Observation
from shop_env.prompts import render_prompt
from shop_env.replies import MalformedReply, Reply, parse_reply
from tests.agents.prompting.scripted_server import ScriptedServer, completion

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


def test_as_trained_is_what_models_here_are_trained_on() -> None:
    assert prompt_messages(SESSION, options(history="as_trained")) == render_prompt(SESSION)


def test_by_default_a_step_without_a_rationale_is_told_and_leaves_no_empty_rationale_to_copy() -> None:
    system, *shown = prompt_messages(SESSION, options())
    assert system == render_prompt(SESSION)[0]
    assert [message["role"] for message in shown] == ["user", "assistant", "user"]
    assert parse_reply(shown[1]["content"]).action == Click(name="red")  # type: ignore[union-attr]
    pages = ["<p>two</p>", f"(Here the person did: {CLICK})"] * 1
    assert shown[2]["content"].split("\n\n") == [*pages, "<p>three</p>", pages[1], SESSION["page"]]
    assert '"rationale": ""' not in str(shown)


def test_told_leaves_the_model_no_replies_of_its_own() -> None:
    _, *shown = prompt_messages(SESSION, options(history="described"))
    assert [message["role"] for message in shown] == ["user"]
    assert 'thinking: "I like red."' in shown[0]["content"]


@pytest.mark.parametrize("history", ["as_trained", "whole_replies", "described"])
@pytest.mark.parametrize("scope", ["whole_session", "latest_step"])
def test_messages_alternate_and_grow_by_appending(demo_store: SessionStore, history: Any, scope: Any) -> None:
    before = ""
    for step in scored_steps(demo_store, "test", context=ContextConfig(scope=scope), max_sessions=1):
        messages = prompt_messages(step.observation, options(history=history))
        roles = [message["role"] for message in messages]
        assert roles == ["system", *["user", "assistant"] * (len(roles) // 2 - 1), "user"]
        text = "".join(message["content"] for message in messages)
        if scope == "whole_session":
            assert text.startswith(before)
            before = text
        page = step.observation["page"]
        assert text.endswith(page)


@pytest.mark.parametrize("persona", ["matched", "none", "generic", "shuffled"])
def test_the_persona_is_the_contexts(demo_store: SessionStore, persona: Any) -> None:
    step = next(scored_steps(demo_store, "test", context=ContextConfig(persona=persona)))
    shown = step.observation["persona"]
    system = prompt_messages(step.observation, options())[0]["content"]
    assert (shown in system) if shown else "## Persona" not in system


def test_examples_are_drawn_from_train_and_follow_from_their_seed(demo_store: SessionStore) -> None:
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
    with pytest.raises(BadConfig, match="shots is 1000, but the train split"):
        draw(shots=1000)


def test_an_example_shows_the_element_that_was_used(planted_store: SessionStore) -> None:
    view = TrainView(planted_store)
    text = examples_text(view, options(shots=1, shot_page_characters=1000))
    assert 'name="results.blue"' in text
    assert '(Here the person did: {"type": "click", "name": "results.blue"})' in text
    assert '"rationale": ""' not in text
    trained = examples_text(view, options(shots=1, shot_page_characters=60, history="as_trained"))
    assert '"rationale": ""' in trained
    assert "characters left out" in trained


def test_examples_need_a_store() -> None:
    with pytest.raises(BadConfig, match="no store to draw examples from"):
        make_agent("prompting?base_url=http://127.0.0.1:1/v1&model=m&shots=2")


CANDIDATES: list[Action] = [Terminate(), Click(name="buy")]


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ('{"rationale": "I want it.", "choice": 2}', Click(name="buy"), Click(name="buy")),
        ('{"choice": 1, "rationale": "No."}', Terminate(), Terminate()),
        ('```json\n{"rationale": "I want it.", "choice": 2}\n```', "extra_text", Click(name="buy")),
        ('<think>{"choice": 1}</think>{"rationale": "Yes", "choice": 2}', "extra_text", Click(name="buy")),
        ('{"rationale": "I want it.", "choice": 3}', "missing_action", "missing_action"),
        ('{"rationale": "I want it.", "choice": 0}', "missing_action", "missing_action"),
        ('{"rationale": "I want it.", "choice": true}', "missing_action", "missing_action"),
        ('{"rationale": "I want it.", "choice": "2"}', "missing_action", "missing_action"),
        ('{"choice": 2}', "missing_rationale", "missing_rationale"),
        ("2", "not_an_object", "not_json"),
        ("", "not_json", "not_json"),
    ],
)
def test_a_choice_is_read_as_strictly_as_a_reply(text: str, strict: Any, lenient: Any) -> None:
    reply = reply_of_choice(text, CANDIDATES)
    for extraction, wanted in (("strict", strict), ("lenient", lenient)):
        found = parse_reply(reply, extraction)  # type: ignore[arg-type]
        assert (found.action if isinstance(found, Reply) else found.problem) == wanted


def test_a_choosing_model_is_shown_the_pages_candidates_and_its_number_becomes_the_action(
    make_prompting: MakeAgent,
) -> None:
    with ScriptedServer(completion('{"rationale": "I want it.", "choice": 2}')) as server:
        (reply,) = generate_batch(make_prompting(server, choice=True, schema=True), [SESSION], [0])
    assert parse_reply(reply).action == Click(name="buy")  # type: ignore[arg-type, union-attr]
    (heard,) = server.heard
    system, asked = heard.request["messages"]
    assert '"choice"' in system["content"]
    assert "Ada, thrifty." in system["content"]
    assert '{"rationale": "<why>", "action"' not in system["content"]
    assert asked["content"].endswith('2. {"type": "click", "name": "buy"}')
    assert heard.request["response_format"]["json_schema"]["schema"]["properties"]["choice"]["enum"] == [1, 2]


def test_a_schema_holds_every_action_and_nothing_of_the_page(make_prompting: MakeAgent) -> None:
    with ScriptedServer() as server:
        generate_batch(make_prompting(server, schema=True), [SESSION], [0])
    schema = server.heard[0].request["response_format"]["json_schema"]["schema"]
    types = [one["properties"]["type"]["enum"][0] for one in schema["properties"]["action"]["anyOf"]]
    assert types == ["click", "type_and_submit", "terminate"]
    assert "buy" not in str(schema)
    assert len(candidate_actions(SESSION)) == 2


def test_what_the_request_says_is_what_was_asked_for(make_prompting: MakeAgent) -> None:
    with ScriptedServer() as server:
        generate_batch(
            make_prompting(
                server, temperature=0.7, max_new_tokens=9, limit_field="max_completion_tokens", extra={"top_p": 0.5}
            ),
            [SESSION],
            [7],
        )
        generate_batch(make_prompting(server, temperature=None, send_seed=False), [SESSION], [7])
        generate_batch(make_prompting(server), [SESSION], [7])
    asked = [{key: value for key, value in one.request.items() if key != "messages"} for one in server.heard]
    assert asked == [
        {"model": "scripted", "temperature": 0.7, "max_completion_tokens": 9, "top_p": 0.5, "seed": 7},
        {"model": "scripted", "max_tokens": 512},
        {"model": "scripted", "temperature": 0.0, "max_tokens": 512},
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", r"needs base_url and model: prompting\?base_url="),
        ("base_url=http://a/v1", "needs model"),
        ("base_url=http://a/v1&model=m&temprature=1", r"unknown key 'temprature'\. Did you mean 'temperature'\?"),
        ("base_url=http://a/v1&model=m&shots=x", "Expected `int`, got `str`"),
        ("base_url=ftp://a/v1&model=m", "must be where a server's API begins"),
        ("base_url=http://a/v1&model=m&temperature=-1", "temperature is -1.0; it must be 0"),
        ("base_url=http://a/v1&model=m&tries=0", "tries is 0"),
        ("base_url=http://a/v1&model=m&budget=1", "a budget in money needs prices"),
        ("base_url=http://a/v1&model=m&input_price=1", "belong together"),
        ("base_url=http://a/v1&model=m&input_price=-1&output_price=1", "input_price is -1"),
        ('base_url=http://a/v1&model=m&extra={"n":2}', "extra.n is a field that the agent fills itself"),
        ('base_url=http://a/v1&model=m&extra={"seed":2}', "use the option send_seed"),
        ("base_url=http://a/v1&model=m&choice=true&history=as_trained", "past steps can only be described"),
        ("base_url=http://a/v1&model=m&history=none", "Invalid enum value 'none'"),
        ("options=no_such.toml", "cannot be read as TOML"),
    ],
)
def test_a_wrong_option_is_told_with_its_remedy(given: str, told: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadConfig, match=told):
        make_agent(f"prompting?{given}")


def test_options_of_a_file_give_way_to_those_of_the_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_R1_CACHE", str(tmp_path / "cache"))
    (tmp_path / "my.toml").write_text('base_url = "http://127.0.0.1:1/v1"\nmodel = "m"\ntemperature = 0.5\nshots = 0\n')
    agent = make_agent(f"prompting?options={tmp_path}/my.toml&temperature=0.9")
    assert isinstance(agent, PromptingAgent)
    assert (agent.options.temperature, agent.options.model) == (0.9, "m")
    assert agent.options.cache_path.is_relative_to(tmp_path / "cache")
    agent.close()


def test_what_the_page_about_it_shows_is_a_file_of_options(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "prompting.md").read_text(encoding="utf-8")
    _, _, behind = page.partition("```toml\n")
    (tmp_path / "my.toml").write_text(behind.partition("```")[0])
    assert read_options(str(tmp_path / "my.toml"), {}).extra == {"top_p": 0.95}
    assert [name for name in PromptingOptions.__struct_fields__ if name not in page] == []


def test_the_agent_keeps_the_contract_that_others_are_held_to(make_prompting: MakeAgent) -> None:
    def script(request: dict[str, Any], times: int) -> Any:
        return completion('{"rationale": "So.", "action": {"type": "terminate"}}')

    with ScriptedServer(script) as server:
        report = check_agent(make_prompting(server, temperature=1.0))
        assert report.passed, str(report)


def test_a_malformed_reply_is_the_models(make_prompting: MakeAgent) -> None:
    with ScriptedServer(completion("I would click.")) as server:
        (reply,) = generate_batch(make_prompting(server), [SESSION], [0])
    assert isinstance(parse_reply(reply), MalformedReply)  # type: ignore[arg-type]
