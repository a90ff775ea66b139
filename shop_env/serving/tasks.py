"""Logged sessions as single-turn tasks, one for each step.

    SessionStore ─► StepTasks ─► StepTask (the prompt) ─► reply ─► score_step ─► StepScore

Tools that train or evaluate in several turns put the model's reply into the history. A replay needs the logged action
there (teacher forcing, as in Shop-R1 and Customer-R1), because the next logged page follows from it. So each step is a
separate task: its prompt holds the session so far as logged, and its answer is one reply.

Rewards are those of ShopR1-v0, by the same functions (tests/shop_env/serving compares them to the last bit). A StepTask
never holds the logged action of its own step; `StepTasks.answer` returns it for scoring elsewhere. A client that can
request any task can still look it up, because the task of the next step shows it in the history.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, cast

import msgspec
from msgspec.structs import asdict

from replay_sessions.foundation.errors import BadConfig, check_choice, did_you_mean
from replay_sessions.foundation.records import Config, Record
from replay_sessions.schema import Action, written_action
from shop_env.episodes import Episode, EpisodeCache, SessionSource, SplitChoice, open_source, scored_indices
from shop_env.observation import ContextConfig, Observation, persona_texts
from shop_env.prompts import Message, PromptConfig, prompt_of, render_prompt
from shop_env.replies import Extraction, MalformedReply, extraction_of, parse_reply
from shop_env.reward.matching import is_exact, unlogged_fields
from shop_env.reward.score import RewardConfig, best_breakdown, score_reply

SPLIT_CHOICES: tuple[str, ...] = ("train", "validation", "test", "all")

_CACHED_CHARACTERS = 256_000_000


class TaskKey(Config):
    """The step that a task is made of.

    Attributes:
        task_id: SESSION#STEP, the same in every split and under every context.
        index: The number of the task in the split, counted from 0.
    """

    task_id: str
    split: str
    index: int
    session_id: str
    user_id: str
    step_index: int


class StepTask(TaskKey):
    """One logged step as a task for a model.

    Attributes:
        messages: The prompt as chat messages; the reply comes next.
        observation: The observation that the prompt shows.
    """

    messages: list[Message]
    observation: Observation


class StepScore(Record):
    """The score of a reply to a step.

    Attributes:
        reward: The sum of the breakdown, without self-certainty, which is not measured here.
        reward_breakdown: The reward's parts by name (shop_env.reward.RewardBreakdown).
        best_reward: The reward of the logged action.
        exact_match: Whether the action equals the logged one in every field; None if the log lacks a field.
        logged_action: The logged action as the JSON object that a perfect reply contains.
        problem, problem_detail: What is wrong with a malformed reply (shop_env.replies); else None.
    """

    reward: float
    reward_breakdown: dict[str, float | None]
    best_reward: float
    exact_match: bool | None
    logged_action: dict[str, str]
    problem: str | None = None
    problem_detail: str | None = None


def score_step(reply: str, answer: Mapping[str, Any], reward: RewardConfig, extraction: Extraction) -> StepScore:
    """Scores a reply against `answer`, the logged action as `StepTasks.answer` returns it."""
    logged = msgspec.convert(answer, Action)
    read = parse_reply(reply, extraction)
    breakdown = score_reply(read, logged, reward)
    problem = read if isinstance(read, MalformedReply) else None
    return StepScore(
        reward=breakdown.without_certainty,
        reward_breakdown=asdict(breakdown),
        best_reward=best_breakdown(logged, reward).total,
        exact_match=None if unlogged_fields(logged) else is_exact(read, logged),
        logged_action=written_action(logged),
        problem=problem.problem if problem else None,
        problem_detail=problem.detail if problem else None,
    )


class StepTasks:
    """The steps of a store as numbered tasks; safe to use from several threads.

    Args:
        store: Path of a session store, "demo", or an opened SessionStore.
        context: How much of a session is shown, and which persona; None means the defaults.
        prompt: The options of the prompt; None means the defaults.
        reward: The reward of replies; None means the defaults, those of Shop-R1.
        extraction: `strict` accepts only the format; `lenient` finds the one JSON object in a reply.
        first_action: Whether the sessions' first actions are tasks too; in the papers they are given.
        inferred: Whether inferred actions are tasks too.
    """

    def __init__(
        self,
        store: str | Path | SessionSource,
        *,
        context: ContextConfig | None = None,
        prompt: PromptConfig | None = None,
        reward: RewardConfig | None = None,
        extraction: Extraction = "strict",
        first_action: bool = False,
        inferred: bool = False,
    ) -> None:
        check_choice("extraction", extraction, Extraction)
        self.store = open_source(store)
        self.context = context or ContextConfig()
        self.prompt = prompt_of(self.store, prompt or PromptConfig())
        self.reward = reward or RewardConfig()
        self.extraction = extraction_of(self.store, extraction)
        self._choice = {"first_action": first_action, "inferred": inferred}
        self._personas = persona_texts(self.store, self.context)
        self._keys: dict[str, list[tuple[str, int]]] = {}
        self._episodes = EpisodeCache(_CACHED_CHARACTERS)
        self._lock = Lock()  # neither stores nor caches are thread-safe

    def count(self, split: str) -> int:
        """Returns the number of tasks of a split."""
        return len(self._keys_of(split))

    def step_of(self, split: str, index: int) -> TaskKey:
        """Returns session, user and step of a task from the store's index, without reading a session.

        Raises:
            BadConfig: The split has no task with this index.
        """
        keys = self._keys_of(split)
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(keys):
            allowed = (
                f"it must be a whole number from 0 to {len(keys) - 1}" if keys else "the split has no step to ask about"
            )
            raise BadConfig(f"index is {index!r} in split {split!r}; {allowed}.")
        session_id, step_index = keys[index]
        return TaskKey(
            task_id=f"{session_id}#{step_index}",
            split=split,
            index=index,
            session_id=session_id,
            user_id=self.store.user_id(session_id),
            step_index=step_index,
        )

    def task(self, split: str, index: int) -> StepTask:
        """Builds the task with a number in a split."""
        key = self.step_of(split, index)
        observation = self._episode(key.session_id).observed.at(key.step_index)
        messages = render_prompt(observation, self.prompt)
        return StepTask(**asdict(key), messages=messages, observation=observation)

    def tasks(self, split: str) -> Iterator[StepTask]:
        """Yields all tasks of a split, in the order of the store."""
        return (self.task(split, index) for index in range(self.count(split)))

    def answer(self, split: str, index: int) -> dict[str, Any]:
        """Returns the logged action with all of its fields as JSON values, for `score_step`."""
        key = self.step_of(split, index)
        answer: dict[str, Any] = msgspec.to_builtins(self._episode(key.session_id).actions[key.step_index])
        return answer

    def score(self, split: str, index: int, reply: str) -> StepScore:
        """Scores a reply to a task."""
        return score_step(reply, self.answer(split, index), self.reward, self.extraction)

    def _episode(self, session_id: str) -> Episode:
        with self._lock:
            return self._episodes.get(
                session_id, lambda: Episode(self.store.session(session_id), self.context, self.reward, self._personas)
            )

    def _keys_of(self, split: str) -> list[tuple[str, int]]:
        """Returns session and step of each task of a split."""
        if split not in SPLIT_CHOICES:
            raise BadConfig(f"unknown split {split!r}. {did_you_mean(str(split), SPLIT_CHOICES)}")
        with self._lock:
            if split not in self._keys:
                self._keys[split] = [
                    (name, index)
                    for name in self.store.session_ids(cast(SplitChoice, split))
                    for index in scored_indices(self.store, name, **self._choice)
                ]
            return self._keys[split]


class TaskOptions(Config):
    """The options of tasks: the steps, and the form of their prompts.

    Attributes:
        store: `demo` or the path of a session store.
        first_action: Make each session's first action a task too.
        inferred: Make inferred actions, which the import added to the log, tasks too.
        context: How much of a session is shown.
        prompt: The instructions.
    """

    store: str = "demo"
    first_action: bool = False
    inferred: bool = False
    context: ContextConfig = ContextConfig()
    prompt: PromptConfig = PromptConfig()

    def build_tasks(self, **scoring: Any) -> StepTasks:
        """Builds the tasks; `scoring` may hold the `reward` and the `extraction` of StepTasks."""
        return StepTasks(
            self.store,
            context=self.context,
            prompt=self.prompt,
            first_action=self.first_action,
            inferred=self.inferred,
            **scoring,
        )
