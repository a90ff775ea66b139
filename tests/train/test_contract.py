"""The text before a trained reply is the generation prompt, for every chat template."""

import copy
from typing import Any

import msgspec
import pytest

from agents.local.policy_agent import PolicyAgent
from agents.registry import make_agent
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Session, Step, Terminate
from shop_env.observation import ContextConfig, observe_session
from shop_env.prompts import PromptConfig, merge_system, render_prompt
from tests.train.conftest import COMPACT, checkpoint_info, prompts
from tests.train.templates import REFUSED, TEMPLATES
from train.chat_template import bind_template, check_template, prompts_grow
from train.checkpoints import save_checkpoint
from train.contract import EXAMPLE, check_contract, describe_pages
from train.tokens import SessionTokens, fit_prompt, reply_tokens, tokenize_session

SCOPES = [
    ContextConfig(),
    ContextConfig(rationales=False),
    ContextConfig(scope="latest_step"),
    ContextConfig(budget=300),
]
CASES = [(name, {}) for name in TEMPLATES] + [("qwen3", {"enable_thinking": False})]
FULL = PromptConfig()
LONG = Session(
    session_id="long",
    user_id="user",
    source="test",
    steps=tuple(
        Step(
            page="".join(f'<a name="link_{step}_{number}">number {number}</a>\n' for number in range(12)),
            action=Click(name=f"link_{step}_{step}"),
            rationale="I look." if step != 1 else None,
        )
        for step in range(4)
    ),
)


def with_template(tokenizer: Any, template: str, variables: dict[str, Any] | None = None) -> Any:
    """A copy of the tokenizer with another template."""
    changed = copy.deepcopy(tokenizer)
    changed.chat_template = template
    bind_template(changed, variables or {}, "2026-11-29")
    return changed


@pytest.mark.parametrize("context", SCOPES, ids=["whole", "no rationales", "latest step", "budget"])
@pytest.mark.parametrize(("name", "variables"), CASES)
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_reply_is_trained_behind_the_text_that_the_template_asks_with(tiny, name, variables, context, is_cut):
    tokenizer = with_template(tiny.tokenizer, TEMPLATES[name], variables)
    trunks = tokenize_session(tokenizer, LONG, context, FULL, 10**6)
    limit = 10**6
    if is_cut:
        limit = min(map(len, prompts(trunks).values())) - 100
        trunks = tokenize_session(tokenizer, LONG, context, FULL, limit)
    trained = prompts(trunks)
    pages_cut = 0
    for step, observation in enumerate(observe_session(LONG, context)):
        fitted = fit_prompt(tokenizer, observation, FULL, limit, context=context)
        if fitted is None:
            assert is_cut and step not in trained
            continue
        assert fitted.tokens == trained[step] and len(fitted.tokens) <= limit
        pages_cut += fitted.window is not None
        messages = render_prompt(fitted.observation, FULL)
        if name == "refuses_system":
            messages = merge_system(messages)
        asked = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **variables)
        assert tokenizer.decode(fitted.tokens) == asked
    for trunk in trunks:
        for reply in trunk.replies:
            written = trunk.tokens[reply.start : reply.end]
            assert reply_tokens(tokenizer, [tokenizer.decode(written[:-1])]) == [written]
    assert (pages_cut > 0) == is_cut
    if context.grows_by_appending and not is_cut:
        grows = name not in ("opens_think", "closes_think") and not variables
        assert prompts_grow(tokenizer) == grows
        assert len(trunks) == (1 if grows else len(LONG.steps))


def test_blanks_that_a_template_removes_are_not_tokenized(tiny):
    tokenizer = with_template(tiny.tokenizer, TEMPLATES["date"])
    for observation in observe_session(tiny.sessions[0]):
        page = f"\n \n{observation['page']}\n"
        fitted = fit_prompt(tokenizer, {**observation, "page": page}, FULL, 10**6)
        text = tokenizer.apply_chat_template(
            render_prompt(fitted.observation, FULL), tokenize=False, add_generation_prompt=True
        )
        assert tokenizer.decode(fitted.tokens) == text


@pytest.mark.parametrize("folder", ["25-think-prefix", "33-template-refuses-system"])
def test_reported_templates_keep_the_contract(tiny, folder, shared_data):
    file = shared_data / "cases" / folder / "chat_template.jinja"
    tokenizer = with_template(tiny.tokenizer, file.read_text(encoding="utf-8"))
    for context in SCOPES:
        for session in tiny.sessions[:4]:
            trained = prompts(tokenize_session(tokenizer, session, context, COMPACT, 10**6))
            for step, observation in enumerate(observe_session(session, context)):
                fitted = fit_prompt(tokenizer, observation, COMPACT, 10**6, context=context)
                assert fitted is not None and fitted.tokens == trained[step]
    check_contract(tokenizer, tiny.sessions[:2], ContextConfig(), FULL)


@pytest.mark.parametrize("name", REFUSED)
def test_a_template_that_cannot_be_right_is_refused_by_one_line(tiny, name):
    with pytest.raises(BadConfig, match="chat template") as refused:
        tokenizer = with_template(tiny.tokenizer, REFUSED[name])
        check_template(tokenizer)
        check_contract(tokenizer, tiny.sessions[:1], ContextConfig(), FULL)
    assert "\n" not in str(refused.value)
    if name == "changes replies":
        assert "An action" in str(refused.value) and "An deed" in str(refused.value)


def test_training_that_differs_from_the_request_is_refused(tiny, monkeypatch):
    def tokenize_otherwise(*arguments: Any, **options: Any) -> list[SessionTokens]:
        tokenizer = with_template(arguments[0], TEMPLATES["opens_think"])
        return tokenize_session(tokenizer, *arguments[1:], **options)

    monkeypatch.setattr("train.contract.tokenize_session", tokenize_otherwise)
    with pytest.raises(BadConfig, match=r"trained behind .*<think>.* prompt has .*<\|assistant\|>'"):
        check_contract(tiny.tokenizer, tiny.sessions[:1], ContextConfig(), FULL)


def test_an_agent_checks_its_template_when_it_is_opened(tiny, tmp_path):
    tokenizer = with_template(tiny.tokenizer, REFUSED["changes replies"])
    save_checkpoint(tmp_path / "policy", tiny.plain_model(), tokenizer, checkpoint_info())
    with pytest.raises(BadConfig, match="deed"):
        PolicyAgent(str(tmp_path / "policy"))


def test_variables_and_dates_stay_with_a_checkpoint_and_may_be_set_anew(tiny, tmp_path):
    tokenizer = with_template(tiny.tokenizer, TEMPLATES["date"] + "{% if mood is defined %}{{ mood }}{% endif %}")
    bind_template(tokenizer, {"mood": "it's {{ so-so }}\n"}, "2020-01-02")
    info = checkpoint_info(template_variables={"mood": "it's {{ so-so }}\n"}, template_date="2020-01-02")
    save_checkpoint(tmp_path / "policy", tiny.plain_model(), tokenizer, info)
    observation = observe_session(tiny.sessions[0])[0]

    def prompt(spec: str) -> str:
        agent = make_agent(spec)
        assert isinstance(agent, PolicyAgent)
        text: str = tiny.tokenizer.decode(agent.prompt_tokens(observation))
        return text

    for spec in (str(tmp_path / "policy"), f"local?path={tmp_path / 'policy'}"):
        assert prompt(spec).startswith("Today: 02 Jan 2020.")
        assert prompt(spec).endswith("<|assistant|>it's {{ so-so }}\n")
    anew = f'local?path={tmp_path / "policy"}&template_date=2021-03-04&template_variables={{"mood": null}}'
    assert prompt(anew).startswith("Today: 04 Mar 2021.") and prompt(anew).endswith("<|assistant|>None")


@pytest.mark.parametrize(
    ("template", "variables", "problem"),
    [
        ("qwen3", {"enable_thinkin": False}, "enable_thinkin"),
        ("qwen3", {"messages": []}, "messages"),
        ("{{ strftime_now(day_format) }}", {}, "strftime_now"),
    ],
)
def test_variables_and_dates_that_cannot_be_set_are_refused(tiny, template, variables, problem):
    with pytest.raises(BadConfig, match=problem):
        with_template(tiny.tokenizer, TEMPLATES.get(template, template), variables)
    with pytest.raises(BadConfig, match="template_date is 'May'"):
        bind_template(with_template(tiny.tokenizer, TEMPLATES["date"]), {}, "May")


def test_the_tokens_of_pages_and_names_are_counted(tiny):
    pages = '<a name="search_input">', '<a name="search_input"><a name="zz.qq">'
    steps = tuple(Step(page=page, action=Terminate()) for page in pages)
    lengths = [len(tiny.tokenizer.encode(page)) for page in pages]
    line = describe_pages(tiny.tokenizer, [msgspec.structs.replace(EXAMPLE, steps=steps)])
    assert line == f"a page is {sum(lengths) / 2:.0f} tokens, 1 of 2 element names are tokens of their own"


def test_the_tokens_of_pages_are_counted_with_the_marks_that_a_policy_sees(tiny):
    link, marked = '<a name="menu.tea">', '<a name="menu.tea" mark="opened-before clicked-last">'
    steps = tuple(Step(page=link, action=Click(name="menu.tea")) for _ in range(2))
    lengths = [len(tiny.tokenizer.encode(page)) for page in (link, marked)]
    line = describe_pages(tiny.tokenizer, [msgspec.structs.replace(EXAMPLE, steps=steps)], marks=True)
    assert line.startswith(f"a page with marks is {sum(lengths) / 2:.0f} tokens") and lengths[0] < lengths[1]


def test_a_tokenizer_that_makes_one_token_of_a_page_with_elements_is_refused(tiny):
    tokenizer = with_template(tiny.tokenizer, tiny.tokenizer.chat_template)
    tokenizer.add_tokens([EXAMPLE.steps[0].page])
    with pytest.raises(BadConfig, match="one token of 1 of 3 pages, among them one with the element 'search'"):
        describe_pages(tokenizer, [EXAMPLE])
    others = tuple(Step(page=f'<a name="page.{number}">', action=Terminate()) for number in range(9))
    assert "element names" in describe_pages(tokenizer, [EXAMPLE, msgspec.structs.replace(EXAMPLE, steps=others)])
