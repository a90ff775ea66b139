"""The steps of a store as a taskset for verifiers (`verifiers.v1`), each a task of one turn.

A file with these two lines, on the path, is what verifiers calls an installed taskset:

    # shop_r1_steps.py
    from shop_env.serving.verifiers_taskset import ShopTaskset
    __all__ = ["ShopTaskset"]

    vf-eval shop_r1_steps --env.taskset.store stores/mine --env.agent.harness.id null -m MODEL

The answer travels with a task's data, so that a run's traces can be scored again without the store (`vf-replay`). What
the model is shown is the prompt alone. A rollout without any reply of the model is an error and no reward of 0.
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
    """A logged step; `answer` is what the person did, `extraction` how replies are read on its store."""

    session_id: str
    user_id: str
    step_index: int
    answer: dict[str, Any]
    extraction: Extraction


class ShopStepConfig(vf.TaskConfig):  # type: ignore[misc]
    """Options of scoring replies (`--env.taskset.task.*`)."""

    reward: str = "shop_r1"
    """The reward preset (shop_env/reward/score.py)."""
    extraction: Extraction = "strict"
    """`strict` takes the JSON object alone, `lenient` finds it among other words."""


class ShopTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which steps are asked about, and what of them is shown (`--env.taskset.*`)."""

    store: str = "demo"
    """`demo` or the path of a session store."""
    split: Split | Literal["all"] = "test"
    """Which of its splits."""
    context: dict[str, Any] = {}
    """Fields of shop_env.ContextConfig: how much of a session is shown, and whose persona."""
    prompt_style: Style = "full"
    """The style of the instructions (shop_env.prompts.PromptConfig)."""
    first_action: bool = False
    """Ask for each session's first action too."""
    inferred: bool = False
    """Ask for actions too that the log does not hold and the import inferred."""
    task: ShopStepConfig = ShopStepConfig()


class ShopStep(vf.Task[ShopStepData, vf.State, ShopStepConfig]):  # type: ignore[misc]
    """One step: the reward of ShopR1-v0, and its parts as metrics."""

    @vf.reward  # type: ignore[untyped-decorator]
    async def shop_reward(self, trace: vf.Trace) -> float:
        return self._scored(trace).reward

    @vf.metric  # type: ignore[untyped-decorator]
    async def parts(self, trace: vf.Trace) -> Mapping[str, float]:
        """`exact_match` is absent where the log does not know all of its action, what nobody measured likewise."""
        score = self._scored(trace)
        parts = {**score.reward_breakdown, "best_reward": score.best_reward, "exact_match": score.exact_match}
        parts["readable"] = score.problem is None
        return {name: float(value) for name, value in parts.items() if value is not None}

    def _scored(self, trace: vf.Trace) -> StepScore:
        replies = trace.assistant_messages
        if not replies:
            raise vf.TaskError("the model gave no reply, so there is nothing to score")
        # Not trace.last_reply, which is stripped of more than the white space that JSON allows around it.
        reply = replies[-1].content or ""
        return score_step(reply, self.data.answer, reward_preset(self.config.reward), self.data.extraction)


class ShopTaskset(vf.Taskset[ShopStep, ShopTasksetConfig]):  # type: ignore[misc]
    """The steps of a split, in the order of the store."""

    def load(self) -> Iterator[ShopStep]:
        config = self.config
        reward_preset(config.task.reward)  # told now if there is none of that name, not after a rollout
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
