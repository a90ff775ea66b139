"""Everything that reads a step reads the same messages: SFT, GRPO's rows for TRL and verl, tasks, and both agents."""

import msgspec
import pytest

from agents.local.policy_agent import PolicyAgent
from agents.prompting.agent import PromptingAgent
from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig, observe
from shop_env.prompts import PromptConfig, prompt_of, render_prompt
from shop_env.reward import RewardConfig
from shop_env.serving.tasks import StepTasks
from tests.agents.prompting.scripted_server import ScriptedServer
from tests.stores import store_at
from tests.train.conftest import checkpoint_info, make_tiny
from train.adapters.steps import step_rows
from train.grpo.trainer import scored_trunks
from train.tokens import tokenize_session

TINY = make_tiny()


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    """Sessions of the demo shop in which every other rationale is missing."""
    sessions = [
        msgspec.structs.replace(
            session,
            steps=tuple(
                msgspec.structs.replace(step, rationale=step.rationale if index % 2 else None)
                for index, step in enumerate(session.steps)
            ),
        )
        for session in TINY.sessions[:4]
    ]
    return store_at(tmp_path_factory.mktemp("one") / "store", sessions)


@pytest.mark.parametrize("rationales", [True, False])
@pytest.mark.parametrize("scope", ["whole_session", "latest_step"])
@pytest.mark.parametrize("style", ["full", "shop_r1", "customer_r1"])
def test_a_step_has_the_same_messages_wherever_a_model_reads_it(store, style, scope, rationales):
    context = ContextConfig(scope=scope, rationales=rationales)
    prompt = prompt_of(store, PromptConfig(style=style))
    tokenizer = TINY.tokenizer
    trunks = [t for s in store.sessions("all") for t in tokenize_session(tokenizer, s, context, prompt, 10**6)]
    scored = scored_trunks(trunks)
    rows = step_rows(
        store.session,
        tokenizer,
        scored,
        context,
        prompt,
        RewardConfig(),
        split="all",
        max_prompt_tokens=10**6,
        personas=None,
        long_pages="shorten",
        extraction="strict",
    )
    info = checkpoint_info(context=context, prompt=prompt, max_tokens=10**6)
    policy = PolicyAgent(policy=(TINY.model, tokenizer, info))
    served = {
        (task.session_id, task.step_index): task
        for task in StepTasks(store, context=context, prompt=prompt).tasks("all")
    }
    steps = [(trunk, reply) for trunk in scored for reply in trunk.replies]
    with ScriptedServer() as server:
        asking = PromptingAgent(store, base_url=server.base_url, model="m", style=style)
        for (trunk, reply), row in zip(steps, rows, strict=True):
            observation = observe(store.session(trunk.session_id), reply.step_index, context)
            messages = render_prompt(observation, prompt)
            text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            assert tokenizer.decode(trunk.tokens[: reply.start]) == text
            assert policy.prompt_tokens(observation) == trunk.tokens[: reply.start]
            assert row["prompt"] == messages
            assert served[trunk.session_id, reply.step_index].messages == messages
            asking.act(observation)
            assert server.received[-1].request["messages"] == messages
        asking.close()
    assert len(steps) == len(served) > 10
