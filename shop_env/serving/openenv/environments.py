"""The env with OpenEnv's interface: logged steps as tasks of one turn.

A client sends replies; the server sends observations and rewards.

Each client has a separate instance in a separate thread; the instances share the store's tasks, which are read-only.
The server closes an instance if its client is idle for too long; after that the instance raises BadConfig.

Beside OpenEnv's `seed` and `episode_id`, `reset` accepts `split` and `index`, the number of a task in the split from 0.
Without an index the task is drawn with the seed, and without a seed at random.
"""

import random
import uuid
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec.structs import asdict
from openenv.core.env_server import types
from openenv.core.env_server.interfaces import Environment
from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from shop_env.serving.tasks import StepTasks

_LISTED_TASKS = 10_000


def _text(value: object) -> str:
    """Accepts any text: pydantic would refuse half a surrogate pair, which here is a malformed reply and earns 0."""
    if not isinstance(value, str):
        raise PydanticCustomError("text_type", "a reply is a text, not {kind}", {"kind": type(value).__name__})
    return value


class ShopAction(types.Action):  # type: ignore[misc]  # the package is not installed where types are checked
    """A reply as the model wrote it."""

    reply: Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})] = Field(
        description='The whole reply: {"rationale": "…", "action": {"type": "click", "name": "…"}}'
    )


class ShopObservation(types.Observation):  # type: ignore[misc]
    """The result of `reset` (a page) or of `step` (the reply's reward); OpenEnv defines `done` and `reward`."""

    messages: list[dict[str, str]] = Field(default_factory=list, description="The prompt as chat messages")
    page: str = Field(default="", description="The current page, simplified HTML; empty when the episode is over")
    history: list[dict[str, str]] = Field(default_factory=list, description="Past steps: page, rationale, action")
    persona: str = ""
    goal: str = ""
    step: int = Field(default=0, description="Which step of the session this is, counted from 0")
    reward_breakdown: dict[str, float | None] | None = Field(default=None, description="The reward's parts by name")
    info: dict[str, Any] = Field(default_factory=dict, description="Which step this is; once answered, what was logged")


class ReplayedSteps(Environment[ShopAction, ShopObservation, types.State]):  # type: ignore[misc]
    """An OpenEnv environment with logged steps as tasks: `reset` shows a step, `step` scores the reply and ends it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, tasks: StepTasks, splits: Sequence[str]) -> None:
        super().__init__()
        self._tasks = tasks
        self._splits = list(splits)
        self._state = types.State()
        self._current: tuple[str, int] | None = None
        self._closed = False

    @property
    def state(self) -> types.State:
        return self._state

    def get_metadata(self) -> types.EnvironmentMetadata:
        description = "Logged shopping sessions, step by step: say what this person does next (Shop-R1, Customer-R1)."
        return types.EnvironmentMetadata(name="shop_r1", description=description, version="1")

    def close(self) -> None:
        self._closed = True

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> ShopObservation:
        """Starts a task and returns its prompt; the head of this module describes the arguments."""
        self._check_open()
        if unknown := sorted(set(options) - {"split", "index"}):
            raise BadConfig(f"unknown reset option {unknown[0]!r}. {did_you_mean(unknown[0], ('split', 'index'))}")
        index = options.get("index")
        for name, value in (("seed", seed), ("index", index)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise BadConfig(f"{name} is {value!r}; it must be a whole number, 0 or more.")
        if not isinstance(episode_id, str | None):
            raise BadConfig(f"episode_id is {episode_id!r}; it must be a text.")
        split = self._check_split(options.get("split", self._splits[0]))
        if index is None:
            index = random.Random(seed).randrange(self._tasks.count(split) or 1)
        task = self._tasks.task(split, index)
        self._state = types.State(episode_id=episode_id or str(uuid.uuid4()), step_count=0)
        self._current = split, index
        # pydantic does not accept a tuple as a list.
        observation = {**task.observation, "history": list(task.observation["history"])}
        return ShopObservation(messages=task.messages, **observation, info=self._spec(split, index))

    def step(self, action: ShopAction, timeout_s: float | None = None, **options: Any) -> ShopObservation:
        """Scores the reply; returns its reward and the logged action, but no next page."""
        self._check_open()
        if self._current is None:
            raise BadConfig(
                "there is nothing to answer: call reset before step. Over plain HTTP each call has an env of its own, "
                "so steps need the WebSocket /ws, which OpenEnv's clients use."
            )
        score = self._tasks.score(*self._current, action.reply)
        info = {
            **self._spec(*self._current),
            "logged_action": score.logged_action,
            "best_reward": score.best_reward,
            "exact_match": score.exact_match,
        }
        if score.problem is not None:
            info |= {"problem": score.problem, "problem_detail": score.problem_detail}
        self._current = None
        self._state.step_count = 1
        return ShopObservation(done=True, reward=score.reward, reward_breakdown=score.reward_breakdown, info=info)

    def list_splits(self) -> list[str]:
        return self._splits

    def num_tasks(self, split: str) -> int:
        return self._tasks.count(self._check_split(split))

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Lists the first 10,000 tasks; `get_task_range` lists any of them."""
        return self.get_task_range(split, 0, _LISTED_TASKS)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        return self._spec(self._check_split(split), index)

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        numbers = range(self._tasks.count(self._check_split(split)))[start:stop]
        return [self._spec(split, index) for index in numbers]

    def _spec(self, split: str, index: int) -> dict[str, Any]:
        return asdict(self._tasks.step_of(split, index))

    def _check_split(self, split: object) -> str:
        if split not in self._splits:
            raise BadConfig(f"split {split!r} is not served here. {did_you_mean(str(split), self._splits)}")
        return str(split)

    def _check_open(self) -> None:
        if self._closed:
            raise BadConfig("this session was idle for too long and is closed: connect again.")
