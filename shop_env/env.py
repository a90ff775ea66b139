"""ShopR1-v0: replays logged shopping sessions, takes replies as text, pays the papers' rewards.

    env = gymnasium.make("ShopR1-v0", store="demo", split="train")
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(reply)

The pages are the logged ones whatever the reply says (teacher forcing, as in Shop-R1 and Customer-R1): a reply decides
the reward of its step and nothing else. Sessions begin on the home page, so the first action is given, not scored:
with `skip_first_action` an episode begins at the second page, the first in its history; sessions of a single step then
hold nothing to score and are left out (`left_out_sessions` counts them).

`info` after a step:
    session_id, user_id, step_index    which logged step was answered (after a reset: which is to be answered first)
    logged_action                      the logged action, as the JSON object that a perfect reply carries
    reward_breakdown                   its parts, `action` and `total`: a RewardBreakdown, by attribute or ["name"]
    best_reward                        what the logged action would have earned
    problem, problem_detail            what is wrong with a reply that cannot be read; absent otherwise

A bonus for a whole session is a `gymnasium.Wrapper` that adds to the reward where `terminated` is True.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import gymnasium
import msgspec
import numpy as np
from gymnasium.error import ResetNeeded

from replay_sessions.errors import BadConfig
from replay_sessions.store import SessionStore
from shop_env.context import ContextConfig
from shop_env.episodes import Episode, EpisodeCache, SessionSource, SplitChoice
from shop_env.observation import Observation
from shop_env.personas import persona_texts
from shop_env.rendering import StepView, render_ansi, render_html
from shop_env.replies import Extraction, MalformedReply, check_extraction, parse_reply
from shop_env.reward.presets import reward_preset
from shop_env.reward.score import NOTHING, RewardConfig, score_action
from shop_env.spaces import observation_space, reply_space

__all__ = ["ReplayEnv", "SessionOrder", "context_of"]

SessionOrder = Literal["shuffled", "storage"]

_Config = TypeVar("_Config", ContextConfig, RewardConfig)
_KEPT_EPISODES = EpisodeCache(max_characters=256_000_000)
_RESET_OPTIONS = ("session_id",)


class ReplayEnv(gymnasium.Env[Observation, str]):
    """Logged sessions as episodes, replies as actions. All options are JSON values, so that an EnvSpec can be saved.

    Args:
        store: Path of a session store, or "demo"; an opened SessionStore is taken too.
        split: train, validation, test or all.
        context: Fields of ContextConfig: how much of a session is shown.
        persona: The persona arm; overrides the one in `context`.
        reward: Name of a preset, or fields of RewardConfig, which may start from a `preset`.
        skip_first_action: Episodes begin at the second page, as in the papers.
        extraction: `strict` holds replies to the format; `lenient` finds the one JSON object in them (replies.py).
        order: `shuffled` draws a new order of sessions at each seed and each time round; `storage` keeps the store's.
        max_steps: Truncate an episode after that many steps; None plays every session to its end.
        with_info: False leaves every `info` empty: Gymnasium's own vector envs take as long to put infos together as
            the steps take (shop_env.vector).
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "html"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's form

    def __init__(
        self,
        store: str | Path | SessionSource = "demo",
        split: SplitChoice = "train",
        *,
        context: Mapping[str, Any] | None = None,
        persona: str | None = None,
        reward: str | Mapping[str, Any] = "shop_r1",
        extraction: Extraction = "strict",
        skip_first_action: bool = True,
        order: SessionOrder = "shuffled",
        max_steps: int | None = None,
        with_info: bool = True,
        render_mode: str | None = None,
    ) -> None:
        _check_options(order, max_steps, render_mode, skip_first_action=skip_first_action, with_info=with_info)
        check_extraction(extraction)
        self.store = _opened(store)
        self.context = context_of(context, persona)
        self.reward = _reward(reward)
        self._personas = persona_texts(self.store, self.context)
        self.render_mode = render_mode
        self.observation_space = observation_space()
        self.action_space = reply_space()
        self._first_step = 1 if skip_first_action else 0
        self._extraction = extraction
        self._order = order
        self._max_steps = max_steps
        self._with_info = with_info
        in_split = self.store.session_ids(split)
        self.session_ids = [name for name in in_split if self.store.step_count(name) > self._first_step]
        self.left_out_sessions = len(in_split) - len(self.session_ids)
        if not self.session_ids:
            raise BadConfig(
                f"split {split!r} of store '{store}' has {len(in_split)} sessions, and none of them has a step to score"
                f"{' after its first' if skip_first_action else ''}; choose another split or store."
            )
        self._view = msgspec.json.encode([self.store.fingerprint, self.context, self.reward])
        self._queue: list[str] = []
        self._episode: Episode | None = None
        self._step_index = 0
        self._steps_left = 0
        self._answered: tuple[str, float] | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts the next session in order, or the one named by `options={"session_id": …}`.

        A seed starts the order anew; without one, each reset goes on to the next session.
        """
        if seed is not None:
            super().reset(seed=seed)  # which does nothing but seed
            self._queue = []
        session_id = self._named_session(options) if options else None
        episode = self._start(self._next_session() if session_id is None else session_id)
        index = self._step_index
        info = {"session_id": episode.session_id, "user_id": episode.user_id, "step_index": index}
        return episode.observed.at(index), info if self._with_info else {}

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Scores a reply to the current page and shows the next one.

        Args:
            action: The reply; a malformed one earns 0 and is explained in `info`, it never raises.

        Returns:
            The next observation (behind the last step its page is empty), the reward, whether the session has ended,
            whether `max_steps` was reached before that, and the info described at the head of this module.
        """
        episode, index = self._episode, self._step_index
        if episode is None or self._steps_left == 0:
            raise ResetNeeded("The episode is over (or none was started): call env.reset() before env.step().")
        reply = parse_reply(action, self._extraction)
        if isinstance(reply, MalformedReply):
            problem, breakdown = reply, NOTHING
        else:
            problem, breakdown = None, score_action(reply.action, episode.actions[index], self.reward)
        reward = breakdown.action  # the total: nobody here measures self-certainty
        info: dict[str, Any] = {}
        if self._with_info:
            info = {
                "session_id": episode.session_id,
                "user_id": episode.user_id,
                "step_index": index,
                "logged_action": episode.logged[index].copy(),
                "reward_breakdown": breakdown,
                "best_reward": episode.best_rewards[index],
            }
            if problem is not None:
                info["problem"], info["problem_detail"] = problem.problem, problem.detail
        self._step_index = index = index + 1
        self._steps_left -= 1
        self._answered = action, reward
        terminated = index == len(episode.actions)
        return episode.observed.at(index), reward, terminated, self._steps_left == 0 and not terminated, info

    def render(self) -> str | None:
        """The current page and the last reply, as text for a terminal ("ansi") or as an HTML document ("html")."""
        if self.render_mode is None:
            gymnasium.logger.warn('Nothing is rendered: make the env with render_mode="ansi" or "html".')
            return None
        if self._episode is None:
            raise ResetNeeded("There is nothing to render yet: call env.reset() first.")
        view = StepView(
            session_id=self._episode.session_id,
            observation=self._episode.observed.at(self._step_index),
            steps=len(self._episode.actions),
            answered=self._answered,
        )
        return render_ansi(view) if self.render_mode == "ansi" else render_html(view)

    def _named_session(self, options: Mapping[str, Any]) -> str | None:
        if unknown := sorted(set(options) - set(_RESET_OPTIONS)):
            raise BadConfig(f"Unknown reset option {unknown[0]!r}; known: {', '.join(_RESET_OPTIONS)}.")
        session_id = options.get("session_id")
        if not isinstance(session_id, str | None):
            raise BadConfig(f"session_id is {session_id!r}; it must be a text, as in info['session_id'].")
        if session_id is not None and self.store.step_count(session_id) <= self._first_step:
            raise BadConfig(
                f"Session {session_id!r} has a single step, and the first is not scored: replay it with "
                "skip_first_action=False."
            )
        return session_id

    def _next_session(self) -> str:
        if not self._queue:
            count = len(self.session_ids)
            turn = self.np_random.permutation(count) if self._order == "shuffled" else np.arange(count)
            self._queue = [self.session_ids[place] for place in reversed(turn.tolist())]
        return self._queue.pop()

    def _start(self, session_id: str) -> Episode:
        episode = self._episode = _KEPT_EPISODES.get(
            (self._view, session_id),
            lambda: Episode(self.store.session(session_id), self.context, self.reward, self._personas),
        )
        self._step_index = self._first_step
        steps = len(episode.actions) - self._first_step
        self._steps_left = steps if self._max_steps is None else min(steps, self._max_steps)
        self._answered = None
        return episode


def _check_options(order: str, max_steps: int | None, render_mode: str | None, **switches: bool) -> None:
    if order not in get_args(SessionOrder):
        raise BadConfig(f"order is {order!r}; it must be one of {', '.join(get_args(SessionOrder))}.")
    if max_steps is not None and not (isinstance(max_steps, int) and max_steps >= 1):
        raise BadConfig(f"max_steps is {max_steps!r}; it must be at least 1 and whole, or None for whole sessions.")
    if render_mode not in (None, *ReplayEnv.metadata["render_modes"]):
        raise BadConfig(f"render_mode is {render_mode!r}; it must be 'ansi', 'html' or None.")
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise BadConfig(f"{name} is {value!r}; it must be True or False.")


def _opened(store: str | Path | SessionSource) -> SessionSource:
    if isinstance(store, str | Path):
        return SessionStore.open(store)
    if not isinstance(store, SessionSource):
        raise BadConfig(
            f"store is {store!r}; it must be the path of a session store, 'demo', or an opened SessionStore."
        )
    return store


def context_of(context: Mapping[str, Any] | None, persona: str | None) -> ContextConfig:
    """The env options `context` and `persona` as a ContextConfig."""
    fields = _fields("context", {} if context is None else context, ContextConfig)
    if persona is not None:
        fields["persona"] = persona
    return _convert("context", fields, ContextConfig)


def _reward(reward: str | Mapping[str, Any]) -> RewardConfig:
    if isinstance(reward, str):
        return reward_preset(reward)
    fields = _fields("reward", reward, RewardConfig)
    preset = reward_preset(str(fields.pop("preset", "shop_r1")))
    return _convert("reward", {**msgspec.to_builtins(preset), **fields}, RewardConfig)


def _fields(option: str, given: object, kind: type[_Config]) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    preset = "the name of a preset or " if kind is RewardConfig else ""
    known = ", ".join(kind.__struct_fields__)
    raise BadConfig(f"{option} is {given!r}; it must be {preset}a dict of some of {known}.")


def _convert(option: str, fields: Mapping[str, Any], kind: type[_Config]) -> _Config:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, BadConfig):
            raise error.__cause__ from None
        with suppress(TypeError):
            kind(**fields)  # of a wrong choice its own check says what the choices are
        known = ", ".join(kind.__struct_fields__)
        raise BadConfig(f"{option} does not fit: {error}. Known fields: {known}.") from error
