"""A task for Inspect (`inspect_ai`): each step of a store is a sample of one turn.

    inspect eval shop_env/serving/inspect_task.py --model openai/MODEL -T store=stores/mine -T split=test

The task has two scores: `shop_reward`, the reward of ShopR1-v0 with its parts in the metadata, and `exact_match`. Their
standard errors are clustered by user. `exact_match` leaves a step unscored if the log lacks a field of its action;
Inspect counts these steps. A sample's metadata holds the answer, so `inspect score` needs only the log.

The scored reply is Inspect's: its providers may remove thinking (`<think>…</think>`) first.
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
    """Builds the task to predict a shopper's next action.

    Args:
        store: `demo` or the path of a session store.
        split: A split of the store, or all.
        reward: The reward preset.
        extraction: `strict` accepts only the JSON object, `lenient` finds it among other text.
        context: Fields of ContextConfig: how much of a session is shown, and which persona.
        prompt: Fields of PromptConfig: the instructions.
        first_action: Whether each session's first action is a sample too.
        inferred: Whether inferred actions, which the import added to the log, are samples too.
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
    """Builds a scorer that gives a reply its reward in ShopR1-v0."""
    config = reward_preset(reward)
    check_choice("extraction", extraction, Extraction)

    async def score(state: TaskState, target: Target) -> Score:
        score = score_step(state.output.completion, state.metadata["answer"], config, extraction)
        parts = {"reward_breakdown": score.reward_breakdown, "best_reward": score.best_reward}
        return Score(value=score.reward, metadata=parts, **_explanation(state, score))

    return score


@scorer(metrics=_METRICS)  # type: ignore[untyped-decorator]
def exact_match(extraction: Extraction = "strict") -> Scorer:
    """Builds a scorer that gives 1 if the reply's action equals the logged one in every field, else 0."""
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
