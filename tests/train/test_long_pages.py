"""Pages longer than the context: `model.long_pages` cuts a step's own page to a window, or leaves the step out.

What is shown is the same in training, for other trainers and in evaluation.
"""

import math
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from agents.llm_grpo.data import TrainingData
from agents.llm_grpo.presets import load_preset
from agents.local.policy_agent import PolicyAgent
from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import BadConfig, PromptTooLong
from replay_sessions.schema import Click, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import results_table, summarise
from shop_env.observation import ContextConfig, observe_session
from shop_env.prompts import PromptConfig, render_prompt
from tests.stores import store_at
from tests.train.conftest import COMPACT, Tiny, checkpoint_info, prompts
from train.tokens import fit_prompt, tokenize_session


def opera_like(number: int, seed: int, median: int = 103_000) -> Iterator[Session]:
    """Sessions with pages as long as OPeRA's that repeat as much: log-normal, half of them over `median` characters,
    a tenth over 3.01 times as many.

    One page in eight is the one before, one in five the one before with a part of it changed; the others have the
    head and the foot of their session. So pages share 40% of their characters with the one before, at their ends.
    """
    rng = random.Random(seed)
    for index in range(number):
        steps: list[Step] = []
        head, foot = _offers(rng, "menu", median // 5), _offers(rng, "foot", median // 10)
        for count in range(max(1, min(60, round(rng.lognormvariate(math.log(7), 0.9))))):
            kind, page = rng.random(), steps[-1].page if steps else ""
            if not steps or kind > 0.125 + 0.2:
                length = rng.lognormvariate(math.log(median), math.log(310 / 103) / 1.2816)
                page = head + _offers(rng, "results", round(length) - len(head) - len(foot)) + foot
            elif kind > 0.125:
                start = page.index("\n", rng.randrange(len(page) // 2)) + 1
                end = page.index("\n", start + len(page) // 20) + 1
                page = page[:start] + _offers(rng, f"changed_{count}", end - start) + page[end:]
            typed = TypeAndSubmit(name="search", text="kettle")
            action = rng.choice((Click(name="results.product_1.view"), typed, Terminate()))
            steps.append(Step(page=page, action=action, rationale="I look."))
        yield Session(session_id=f"s{index}", user_id=f"u{index}", steps=tuple(steps), source="opera_like")


def _offers(rng: random.Random, name: str, length: int) -> str:
    """Offers of about so many characters; not fewer, if it is positive."""
    words = ("stainless", "steel", "kettle", "for kitchen,", "1.7 liter", "auto shut-off", "Sponsored", "black", "set")
    parts, written = list[str](), 0
    while written < length:
        title, price = " ".join(rng.choices(words, k=14)), rng.randint(5, 300)
        parts.append(f'<div><a name="{name}.product_{len(parts) + 1}.view">{title}</a><b>${price}.99</b></div>\n')
        written += len(parts[-1])
    return "".join(parts)


def long_store(folder: Path, number: int, **options: int) -> SessionStore:
    return store_at(folder, opera_like(number, seed=1, **options))


def limits(tiny: Tiny, session: Session, prompt: PromptConfig = COMPACT) -> tuple[int, int]:
    """The tokens that the shortest own page takes with all before it dropped, and the longest."""
    lengths = []
    for observation in observe_session(session):
        low, high = 1, 4096
        while low < high:
            middle = (low + high) // 2
            fits = fit_prompt(tiny.tokenizer, observation, prompt, middle, "skip") is not None
            low, high = (low, middle) if fits else (middle + 1, high)
        lengths.append(low)
    return min(lengths), max(lengths)


@pytest.mark.parametrize(
    "context",
    [ContextConfig(), ContextConfig(scope="latest_step"), ContextConfig(page_block=3, marks=True)],
)
@pytest.mark.parametrize("long_pages", ["shorten", "skip"])
def test_training_testing_and_other_trainers_see_the_same_text(tiny, context, long_pages):
    cut = left_out = 0
    for session in tiny.sessions[:4]:
        shortest, longest = limits(tiny, session)
        for limit in range(shortest, longest, 31):
            trunks = tokenize_session(
                tiny.tokenizer, session, context, COMPACT, limit, personas=None, long_pages=long_pages
            )
            trained = prompts(trunks)
            info = checkpoint_info(max_new_tokens=32, max_tokens=limit + 32, long_pages=long_pages, context=context)
            agent = PolicyAgent(policy=(tiny.model, tiny.tokenizer, info))
            for step, observation in enumerate(observe_session(session, context)):
                fitted = fit_prompt(tiny.tokenizer, observation, COMPACT, limit, long_pages, context)
                if fitted is None:
                    assert step not in trained
                    with pytest.raises(PromptTooLong):
                        agent.prompt_tokens(observation)
                    left_out += 1
                    continue
                assert agent.prompt_tokens(observation) == trained[step] == fitted.tokens
                assert len(fitted.tokens) <= limit
                assert fitted.pages_left_out % context.page_block == 0 or fitted.pages_left_out == step
                messages = render_prompt(fitted.observation, COMPACT)  # the rows of other trainers
                text = tiny.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
                assert tiny.tokenizer.decode(fitted.tokens) == text
                cut += fitted.window is not None
            assert sum(trunk.page_cut for trunk in trunks) == len(
                [step for step in trained if "characters left out" in tiny.tokenizer.decode(trained[step])]
            )
    assert (left_out > 3, cut) == (True, 0) if long_pages == "skip" else (left_out < cut, cut > 3)


def test_a_window_keeps_names_whole_and_lies_where_the_shopper_was(tiny):
    page = "".join(f'<a name="link_{n}" title="a > b">number {n}</a>\n' for n in range(60))
    steps = [Step(page=page, action=Click(name="link_40")), Step(page=page, action=Click(name="link_3"))]
    session = msgspec.structs.replace(tiny.sessions[0], steps=tuple(steps))
    names = [element.name for element in find_elements(page)]
    first, second = observe_session(session)
    for limit in range(300, 900, 37):
        opened, later = (fit_prompt(tiny.tokenizer, each, COMPACT, limit) for each in (first, second))
        assert opened is not None and later is not None and opened.window and later.window
        assert opened.observation["page"].startswith('<a name="link_0"')
        assert 'name="link_40"' in later.observation["page"]
        for fitted in (opened, later):
            shown = [element.name for element in find_elements(fitted.observation["page"])]
            assert shown and shown == names[names.index(shown[0]) :][: len(shown)]
            assert len(fitted.tokens) > 0.8 * limit


@pytest.mark.parametrize("action", [Click(name="link_50"), Terminate(), TypeAndSubmit(name="link_1", text="kettle")])
def test_the_logged_action_and_later_steps_decide_nothing(tiny, action):
    page = "".join(f'<a name="link_{n}">number {n}</a>\n' for n in range(60))
    seen = []
    for last in (action, Click(name="link_7")):
        steps = (Step(page=page, action=Click(name="link_20")), Step(page=page, action=last))
        session = msgspec.structs.replace(tiny.sessions[0], steps=steps)
        trunks = tokenize_session(tiny.tokenizer, session, ContextConfig(), COMPACT, 500)
        seen.append(prompts(trunks))
    assert seen[0] == seen[1] and len(seen[0]) == 2


def test_a_target_outside_of_the_window_is_known_in_training_and_in_the_table(tiny, tmp_path):
    page = "".join(f'<a name="link_{n}">number {n}</a>\n' for n in range(60))
    actions = [Click(name=f"link_{number}") for number in (0, 3, 50, 52, 1)] + [Terminate()]
    steps = tuple(Step(page=page, action=action) for action in actions)
    sessions = [msgspec.structs.replace(tiny.sessions[0], session_id=f"s{n}", steps=steps) for n in range(2)]
    trunks = [t for s in sessions for t in tokenize_session(tiny.tokenizer, s, ContextConfig(), COMPACT, 500)]
    shown = {reply.step_index: reply.target_shown for trunk in trunks for reply in trunk.replies}
    assert shown == {0: True, 1: True, 2: False, 3: True, 4: False, 5: True}  # windows lie around the last click
    sft = load_preset("tiny_cpu").sft
    assert sft is not None
    left = msgspec.structs.replace(sft, hidden_targets="leave_out").select(trunks)
    assert [reply.step_index for trunk in left for reply in trunk.replies] == 2 * [0, 1, 3, 5]
    assert sft.select(trunks) == trunks
    agent = PolicyAgent(policy=(tiny.model, tiny.tokenizer, checkpoint_info(max_new_tokens=4, max_tokens=504)))
    records = evaluate(agent, store_at(tmp_path / "store", sessions), "all")
    assert [record.target_shown for record in records] == 2 * [shown[step] for step in range(1, 6)]
    row = summarise(records, label="policy")
    assert row.figures["target_shown"].value == pytest.approx(3 / 5) and row.figures["page_cut_rate"].value == 1
    assert "target shown" in results_table([row]).markdown()


@pytest.mark.long
def test_a_page_that_does_not_fit_is_a_miss_and_a_share_of_its_own(tiny, tmp_path):
    store = long_store(tmp_path / "store", 12, median=1000)
    rows = {}
    for long_pages in ("shorten", "skip"):
        info = checkpoint_info(max_tokens=1600, long_pages=long_pages)
        agent = PolicyAgent(policy=(tiny.model, tiny.tokenizer, info), temperature=0)
        rows[long_pages] = summarise(evaluate(agent, store, "all"), label=long_pages)
    shortened, skipped = rows["shorten"], rows["skip"]
    assert shortened.steps == skipped.steps and skipped.ranked and skipped.errors == 0
    assert "too_long_rate" not in shortened.figures and "page_cut_rate" not in skipped.figures
    too_long = skipped.figures["too_long_rate"].value
    assert 0 < too_long < 1
    assert shortened.figures["page_cut_rate"].value == pytest.approx(too_long)
    assert skipped.figures["pages_lost_rate"].value + too_long <= 1
    (note,) = [note for note in results_table([shortened]).notes if "target shown" in note]
    assert "read every page whole" in note and "target_shown" not in skipped.figures
    assert skipped.figures["invalid_rate"].value >= too_long
    assert skipped.figures["exact_accuracy"].value <= 1 - too_long


def test_a_run_that_leaves_out_more_than_a_tenth_is_refused_unless_told(tiny, tmp_path):
    store = long_store(tmp_path / "store", 24, median=1000)
    config = load_preset("tiny_cpu", only=["sft"])

    def steps(**fields: object) -> int:
        limited = msgspec.structs.replace(
            config, model=msgspec.structs.replace(config.model, max_tokens=1600, **fields)
        )
        lines: list[str] = []
        trunks = TrainingData(limited, store, tmp_path / "tokens", lines.append).trunks(
            config.phases["sft"], tiny.tokenizer
        )
        assert any(line.startswith("pages: ") for line in lines)
        return sum(len(trunk.replies) for trunk in trunks)

    whole = sum(map(store.step_count, store.session_ids("train")))
    assert steps(long_pages="shorten") == whole
    with pytest.raises(BadConfig, match="max-left-out"):
        steps(long_pages="skip")
    assert 0 < steps(long_pages="skip", max_left_out=1.0) < 0.9 * whole
