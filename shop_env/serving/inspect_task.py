"""The steps of a store as a task for Inspect (`inspect_ai`), each a sample of one turn.

    inspect eval shop_env/serving/inspect_task.py --model openai/MODEL -T store=stores/mine -T split=test

Two scores: `shop_reward`, which ShopR1-v0 pays, with its parts beside it, and `exact_match`. Their standard errors are
clustered by person. A step whose log does not know all of its action is left unscored by `exact_match`; Inspect counts
those. A sample's metadata holds the answer, so that a log can be scored again by itself (`inspect score`).

What is scored is the reply as Inspect has it: its providers may take thoughts (`<think>…</think>`) out of it before.
"""

from typing import Any

import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from replay_sessions.foundation.errors import check_choice
from replay_sessions.schema import Action, written_action
from shop_env.env import context_of
from shop_env.prompts import PromptConfig
from shop_env.replies import Extraction, action_json
from shop_env.reward.score import reward_preset
from shop_env.serving.tasks import StepScore, StepTask, StepTasks, score_step

_METRICS = [mean(), stderr(cluster="user_id")]
_ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@task  # type: ignore[untyped-decorator]  # the package is not installed where types are checked
def shop_r1(
    store: str = "demo",
    split: str = "test",
    reward: str = "shop_r1",
    extraction: Extraction = "strict",
    context: dict[str, Any] | None = None,
    prompt: dict[str, Any] | None = None,
    first_action: bool = False,
    inferred: bool = False,
) -> Task:
    """Predicts what this person does next.

    Args:
        store: `demo` or the path of a session store.
        split: Which of its splits, or all.
        reward: The reward preset.
        extraction: `strict` takes the JSON object alone, `lenient` finds it among other words.
        context: Fields of ContextConfig: how much of a session is shown, and whose persona.
        prompt: Fields of PromptConfig: how it is put into words.
        first_action: Ask for each session's first action too.
        inferred: Ask for actions too that the log does not hold and the import inferred.
    """
    tasks = StepTasks(
        store,
        context=context_of(context),
        prompt=PromptConfig(**prompt or {}),
        extraction=extraction,
        first_action=first_action,
        inferred=inferred,
    )
    samples = [_sample(step, tasks.answer(split, step.index)) for step in tasks.tasks(split)]
    return Task(
        dataset=MemoryDataset(samples, name=f"{store}, {split}"),
        solver=generate(),
        scorer=[shop_reward(reward, tasks.extraction), exact_match(tasks.extraction)],
    )


def _sample(step: StepTask, answer: dict[str, Any]) -> Sample:
    return Sample(
        id=step.task_id,
        input=[_ROLES[message["role"]](content=message["content"]) for message in step.messages],
        target=action_json(written_action(msgspec.convert(answer, Action))),
        metadata={
            "user_id": step.user_id,
            "session_id": step.session_id,
            "step_index": step.step_index,
            "answer": answer,
        },
    )


@scorer(metrics=_METRICS)  # type: ignore[untyped-decorator]
def shop_reward(reward: str = "shop_r1", extraction: Extraction = "strict") -> Scorer:
    """Scores a reply by its reward in ShopR1-v0."""
    config = reward_preset(reward)
    check_choice("extraction", extraction, Extraction)

    async def score(state: TaskState, target: Target) -> Score:
        score = score_step(state.output.completion, state.metadata["answer"], config, extraction)
        parts = {"reward_breakdown": score.reward_breakdown, "best_reward": score.best_reward}
        return Score(value=score.reward, metadata=parts, **_explanation(state, score))

    return score


@scorer(metrics=_METRICS)  # type: ignore[untyped-decorator]
def exact_match(extraction: Extraction = "strict") -> Scorer:
    """Returns 1 if the reply's whole action is the logged one, else 0."""
    config = reward_preset("binary")
    check_choice("extraction", extraction, Extraction)

    async def score(state: TaskState, target: Target) -> Score:
        score = score_step(state.output.completion, state.metadata["answer"], config, extraction)
        if score.exact_match is None:
            return Score.unscored(reason="unlogged", explanation="the log does not know all of its action")
        return Score(value=float(score.exact_match), **_explanation(state, score))

    return score


def _explanation(state: TaskState, score: StepScore) -> dict[str, Any]:
    fields: dict[str, Any] = {"answer": state.output.completion}
    if score.problem is not None:
        fields |= {"reason": "invalid_response_format", "explanation": f"{score.problem}: {score.problem_detail}"}
    return fields
