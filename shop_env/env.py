"""ShopR1-v0: replays logged shopping sessions, takes replies as text, and returns the papers' rewards.

    env = gymnasium.make("ShopR1-v0", store="demo", split="train")
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(reply)

The pages are the logged ones whatever the reply says (teacher forcing, as in Shop-R1 and Customer-R1): a reply decides
only the reward of its step. Sessions begin on the home page, so the first action is not scored by default
(`first_action`): an episode begins at the second page, and the first is in its history. Steps that an import
inferred are skipped too, unless `inferred` is True: they appear only in the history. Sessions without a step to score
are left out (`left_out_sessions` counts them).

`info` after a step:
    session_id, user_id, step_index    the logged step that was answered (after a reset: the first step to answer)
    logged_action                      the logged action, as the JSON object that a perfect reply contains
    reward_breakdown                   the reward's parts by name (shop_env.reward.RewardBreakdown)
    best_reward                        what the logged action would have earned
    problem, problem_detail            what is wrong with a malformed reply; absent otherwise

An episode is a whole session; `gymnasium.make(…, max_episode_steps=5)` truncates it (Gymnasium's TimeLimit). For many
envs use `gymnasium.make_vec("ShopR1-v0", num_envs=16, …, with_info=False)`: Gymnasium's vector envs need longer to
combine the infos than to step. `vectorization_mode="async"` runs each env in its own process and sends pages as files
or, with `vector_kwargs={"shared_memory": False}`, through pipes. It is faster only if the env's process computes much.

To add a bonus for a whole session, write a `gymnasium.Wrapper` that adds it to the reward if `terminated` is True.
"""

import dataclasses
import inspect
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import gymnasium
import msgspec
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from msgspec.structs import asdict

from replay_sessions.foundation.config_errors import convert_fields
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from shop_env.episodes import Episode, EpisodeCache, SessionSource, SplitChoice, open_source, scored_indices
from shop_env.observation import ContextConfig, Observation, persona_texts
from shop_env.rendering import StepView, render_ansi
from shop_env.replies import Extraction, MalformedReply, extraction_of, parse_reply
from shop_env.reward.score import RewardConfig, reward_preset, score_reply
from shop_env.spaces import UnicodeText, observation_space

SessionOrder = Literal["shuffled", "storage"]

_Config = TypeVar("_Config", bound=msgspec.Struct)
_EPISODES = EpisodeCache(max_characters=256_000_000)


class WrongRenderMode(BadConfig, TypeError):
    """A TypeError too, after which Stable-Baselines3 makes the env without the mode `rgb_array`, its default."""


class TextEnv(gymnasium.Env[Observation, str]):
    """The base class of both envs: their spaces, the checks of their options, and rendering.

    Args:
        context: A ContextConfig or fields of one; None means the defaults.
        extraction: How an action is read from a reply (replies.py).
        render_mode: "ansi", or None for no rendering.
        choices: For each further option, its value and the values that it may have.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        context: Mapping[str, Any] | ContextConfig | None,
        extraction: Extraction,
        render_mode: str | None,
        **choices: tuple[object, Sequence[object]],
    ) -> None:
        choices["extraction"] = extraction, get_args(Extraction)
        choices["render_mode"] = render_mode, (None, *self.metadata["render_modes"])
        for option, (value, allowed) in choices.items():
            # Identity, except for texts: 1 == True, but 1 is not a valid switch.
            if not any(value is choice or (isinstance(choice, str) and value == choice) for choice in allowed):
                raise (WrongRenderMode if option == "render_mode" else BadConfig)(
                    f"{option} is {value!r}; it must be one of {', '.join(map(str, allowed))}."
                )
        self.context = context_of(context)
        self.render_mode = render_mode
        self.observation_space = observation_space()
        self.action_space = UnicodeText()
        self._extraction = extraction
        self._answered: tuple[str, float, float | None] | None = None  # reply, reward, best reward

    def render(self) -> str | None:
        """Returns the current page and the last reply as text for a terminal; None without a render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn('Nothing is rendered: make the env with render_mode="ansi".')
            return None
        view = self._step_view()
        if view is None:
            raise ResetNeeded("There is nothing to render yet: call env.reset() first.")
        return render_ansi(view)

    def _check_reply(self, action: object) -> None:
        """Raises TypeError if the reply is not a str: that is a mistake of the caller, not of a model."""
        if not isinstance(action, str):
            raise TypeError(f"env.step takes a reply as str, and {action!r:.80} is of type {type(action).__name__}")

    @abstractmethod
    def _step_view(self) -> StepView | None:
        """Returns the step to render, or None before the first reset."""


class ReplayEnv(TextEnv):
    """Logged sessions as episodes, replies as actions.

    Args:
        store: Path of a session store, "demo", or an opened SessionStore.
        split: train, validation, test or all.
        context: A ContextConfig or fields of one: how much of a session is shown, and which persona.
        reward: Name of a preset, a RewardConfig, or fields of one; its key `preset` names the preset to start from.
        first_action: Whether episodes begin at the first page; in the papers they begin at the second.
        inferred: Whether inferred actions, which the import added to the log, are scored too.
        extraction: `strict` accepts only the format; `lenient` finds the one JSON object in a reply (replies.py).
        order: `shuffled` draws a new order of sessions at each seed and in each pass; `storage` keeps the store's.
        with_info: If False, every `info` is empty.
        render_mode: "ansi", or None for no rendering.
    """

    def __init__(
        self,
        store: str | Path | SessionSource = "demo",
        split: SplitChoice = "train",
        *,
        context: Mapping[str, Any] | ContextConfig | None = None,
        reward: str | Mapping[str, Any] | RewardConfig = "shop_r1",
        extraction: Extraction = "strict",
        first_action: bool = False,
        inferred: bool = False,
        order: SessionOrder = "shuffled",
        with_info: bool = True,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            context,
            extraction,
            render_mode,
            order=(order, get_args(SessionOrder)),
            first_action=(first_action, (True, False)),
            inferred=(inferred, (True, False)),
            with_info=(with_info, (True, False)),
        )
        self.store = open_source(store)
        self._extraction = extraction_of(self.store, extraction)
        self.reward = (
            reward_preset(reward) if isinstance(reward, str) else convert_option("reward", reward, RewardConfig)
        )
        self._personas = persona_texts(self.store, self.context)
        self._order = order
        self._with_info = with_info
        self._split = split
        in_split = self.store.session_ids(split)
        self._choice = {"first_action": first_action, "inferred": inferred}
        scored = {name: scored_indices(self.store, name, **self._choice) for name in in_split}
        self._scored = {name: indices for name, indices in scored.items() if indices}
        self.session_ids = list(self._scored)
        self.left_out_sessions = len(in_split) - len(self.session_ids)
        if not self.session_ids:
            after = "" if first_action else " after its first"
            logged = "" if inferred else " that was not inferred"
            raise BadConfig(
                f"split {split!r} of store '{store}' has {len(in_split)} sessions, and none of them has a step to score"
                f"{after}{logged}; choose another split or store."
            )
        self._view = msgspec.json.encode([self.store.fingerprint, self.context, self.reward])
        self._queue: list[str] = []
        self._episode: Episode | None = None
        self._step_index = 0
        self._upcoming: Iterator[int] = iter(())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.session_ids)} sessions, split {self._split!r} of {self.store!r}>"

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts the next session in order, or the session that `options={"session_id": …}` names.

        A seed restarts the order; without a seed, each reset starts the next session.
        """
        if seed is not None:
            super().reset(seed=seed)  # only seeds
            self._queue = []
        session_id = named_session(options)
        episode = self._start(self._next_session() if session_id is None else self._checked(session_id))
        index = self._step_index
        info = {"session_id": episode.session_id, "user_id": episode.user_id, "step_index": index}
        return episode.observed.at(index), info if self._with_info else {}

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Scores a reply to the current page and returns the next observation.

        Args:
            action: The reply. A malformed reply raises nothing: it earns 0, and `info` explains it.

        Returns:
            The next observation (its page is empty after the last step), the reward, whether the session has ended,
            False (the env itself never truncates a session), and the info described at the head of this module.
        """
        self._check_reply(action)
        episode, index = self._episode, self._step_index
        if episode is None or index == len(episode.actions):
            raise ResetNeeded("The episode is over (or none was started): call env.reset() before env.step().")
        reply = parse_reply(action, self._extraction)
        breakdown = score_reply(reply, episode.actions[index], self.reward)
        reward = breakdown.without_certainty  # equals the total, because no env measures self-certainty
        info: dict[str, Any] = {}
        if self._with_info:
            info = {
                "session_id": episode.session_id,
                "user_id": episode.user_id,
                "step_index": index,
                "logged_action": episode.logged[index].copy(),
                "reward_breakdown": asdict(breakdown),
                "best_reward": episode.best_rewards[index],
            }
            if isinstance(reply, MalformedReply):
                info["problem"], info["problem_detail"] = reply.problem, reply.detail
        self._answered = action, reward, episode.best_rewards[index]
        self._step_index = index = next(self._upcoming, len(episode.actions))
        return episode.observed.at(index), reward, index == len(episode.actions), False, info

    def _step_view(self) -> StepView | None:
        if (episode := self._episode) is None:
            return None
        observation = episode.observed.at(self._step_index)
        return StepView(
            session_id=episode.session_id, observation=observation, steps=len(episode.actions), answered=self._answered
        )

    def _checked(self, session_id: str) -> str:
        if session_id in self._scored:
            return session_id
        reason = f"is not in split {self._split!r}: make an env with the session's split, or with 'all'."
        if not scored_indices(self.store, session_id, **self._choice):
            reason = "has no step to score: replay it with first_action=True, or inferred=True."
        raise BadConfig(f"Session {session_id!r} {reason}")

    def _next_session(self) -> str:
        if not self._queue:
            count = len(self.session_ids)
            turn = self.np_random.permutation(count) if self._order == "shuffled" else np.arange(count)
            self._queue = [self.session_ids[index] for index in reversed(turn.tolist())]
        return self._queue.pop()

    def _start(self, session_id: str) -> Episode:
        episode = self._episode = _EPISODES.get(
            (self._view, session_id),
            lambda: Episode(self.store.session(session_id), self.context, self.reward, self._personas),
        )
        self._upcoming = iter(self._scored[session_id])
        self._step_index = next(self._upcoming)
        self._answered = None
        return episode


class RegisteredReplayEnv(ReplayEnv):
    """ReplayEnv as gymnasium.make builds it: `env.spec.to_json()` holds all of its options."""

    _spec: EnvSpec | None = None

    def __init__(self, store: str = "demo", **options: Any) -> None:
        parameters = inspect.signature(ReplayEnv).parameters
        if unknown := sorted(options.keys() - parameters.keys()):
            raise BadConfig(f"ShopR1-v0 has no option {unknown[0]!r}. {did_you_mean(unknown[0], parameters)}")
        if not isinstance(store, str):
            raise BadConfig(
                f"store is {store!r}; gymnasium.make takes a path as str, which a spec can save as JSON: give "
                "str(path), or put the opened store into shop_env.env.ReplayEnv(store, …) itself."
            )
        super().__init__(store, **options)

    @property
    def spec(self) -> EnvSpec | None:
        """The arguments of gymnasium.make; a ContextConfig or RewardConfig is a dict of its fields."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = spec and dataclasses.replace(spec, kwargs=msgspec.to_builtins(spec.kwargs))


def named_session(options: Mapping[str, Any] | None) -> str | None:
    """Returns the `session_id` of a reset's options, or None if they name no session.

    Raises:
        BadConfig: The options have another key, or `session_id` is not a str.
    """
    if not options:
        return None
    if unknown := sorted(set(options) - {"session_id"}):
        raise BadConfig(f"Unknown reset option {unknown[0]!r}; known: session_id.")
    session_id = options.get("session_id")
    if not isinstance(session_id, str | None):
        raise BadConfig(f"session_id is {session_id!r}; it must be a text, as in info['session_id'].")
    return session_id


def context_of(context: Mapping[str, Any] | ContextConfig | None) -> ContextConfig:
    """Converts the env option `context` to a ContextConfig."""
    return convert_option("context", {} if context is None else context, ContextConfig)


def convert_option(option: str, value: object, kind: type[_Config]) -> _Config:
    """Converts an env's option to a Struct; the key `preset` of a reward names the preset that its fields change.

    Raises:
        BadConfig: The value is no mapping, names an unknown field, or holds a value of the wrong type or range.
    """
    if isinstance(value, kind):
        return value
    is_reward = kind is RewardConfig
    if not isinstance(value, Mapping):
        preset, names = "the name of a preset or " if is_reward else "", ", ".join(kind.__struct_fields__)
        raise BadConfig(f"{option} is {value!r}; it must be {preset}a dict of some of {names}.")
    fields = dict(value)
    if is_reward:
        fields = msgspec.to_builtins(reward_preset(str(fields.pop("preset", "shop_r1")))) | fields
    with suppress(TypeError):
        kind(**fields)  # raises BadConfig for a wrong choice, with a message that lists the choices
    return convert_fields(fields, kind, option)
