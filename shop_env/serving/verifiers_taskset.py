"""A taskset for verifiers (`verifiers.v1`): each step of a store is a task of one turn.

To install the taskset, put a file with these two lines on Python's path:

    # shop_r1_steps.py
    from shop_env.serving.verifiers_taskset import ShopTaskset
    __all__ = ["ShopTaskset"]

    vf-eval shop_r1_steps --env.taskset.store stores/mine --env.agent.harness.id null -m MODEL

A task's data include the answer, so that `vf-replay` can score a run's traces again without the store. The model sees
only the prompt. A rollout without a reply of the model is an error, not a reward of 0.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import verifiers.v1 as vf

from replay_sessions.schema import Split
from shop_env.env import context_of
from shop_env.prompts import PromptConfig, Style
from shop_env.replies import Extraction
from shop_env.reward.score import reward_preset
from shop_env.serving.tasks import StepScore, StepTasks, score_step


class ShopStepData(vf.TaskData):  # type: ignore[misc]  # the package is not installed where types are checked
    """A logged step; `answer` is the logged action, `extraction` how replies are parsed on its store."""

    session_id: str
    user_id: str
    step_index: int
    answer: dict[str, Any]
    extraction: Extraction


class ShopStepConfig(vf.TaskConfig):  # type: ignore[misc]
    """The options for scoring replies (`--env.taskset.task.*`)."""

    reward: str = "shop_r1"
    """The reward preset (shop_env/reward/score.py)."""
    extraction: Extraction = "strict"
    """`strict` accepts only the JSON object, `lenient` finds it among other text."""


class ShopTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """The options of the taskset: its steps, and the form of their prompts (`--env.taskset.*`)."""

    store: str = "demo"
    """`demo` or the path of a session store."""
    split: Split | Literal["all"] = "test"
    """A split of the store, or all."""
    context: dict[str, Any] = {}
    """Fields of shop_env.ContextConfig: how much of a session is shown, and which persona."""
    prompt_style: Style = "full"
    """The style of the instructions (shop_env.prompts.PromptConfig)."""
    first_action: bool = False
    """Make each session's first action a task too."""
    inferred: bool = False
    """Make inferred actions, which the import added to the log, tasks too."""
    task: ShopStepConfig = ShopStepConfig()


class ShopStep(vf.Task[ShopStepData, vf.State, ShopStepConfig]):  # type: ignore[misc]
    """The task of one step, with the reward of ShopR1-v0 and its parts as metrics."""

    @vf.reward  # type: ignore[untyped-decorator]
    async def shop_reward(self, trace: vf.Trace) -> float:
        return self._scored(trace).reward

    @vf.metric  # type: ignore[untyped-decorator]
    async def parts(self, trace: vf.Trace) -> Mapping[str, float]:
        """Returns the parts of the reward that were measured, and `exact_match` unless the log lacks a field."""
        score = self._scored(trace)
        parts = {**score.reward_breakdown, "best_reward": score.best_reward, "exact_match": score.exact_match}
        parts["readable"] = score.problem is None
        return {name: float(value) for name, value in parts.items() if value is not None}

    def _scored(self, trace: vf.Trace) -> StepScore:
        replies = trace.assistant_messages
        if not replies:
            raise vf.TaskError("the model gave no reply, so there is nothing to score")
        # Not trace.last_reply: verifiers strips more from it than the white space that JSON allows.
        reply = replies[-1].content or ""
        return score_step(reply, self.data.answer, reward_preset(self.config.reward), self.data.extraction)


class ShopTaskset(vf.Taskset[ShopStep, ShopTasksetConfig]):  # type: ignore[misc]
    """The steps of a split, in the order of the store."""

    def load(self) -> Iterator[ShopStep]:
        config = self.config
        reward_preset(config.task.reward)  # raises now for an unknown name, not after a rollout
        tasks = StepTasks(
            config.store,
            context=context_of(config.context),
            prompt=PromptConfig(style=config.prompt_style),
            extraction=config.task.extraction,
            first_action=config.first_action,
            inferred=config.inferred,
        )
        for task in tasks.tasks(config.split):
            system, *conversation = task.messages
            data = ShopStepData(
                id=task.task_id,
                name=task.task_id,
                system_prompt=system["content"],
                prompt=conversation,
                session_id=task.session_id,
                user_id=task.user_id,
                step_index=task.step_index,
                answer=tasks.answer(config.split, task.index),
                extraction=tasks.extraction,
            )
            yield ShopStep(data, config.task)
