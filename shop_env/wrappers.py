"""The discrete view: an agent chooses one of the page's actions by number, and observes numbers instead of text.

    env = DiscreteActions(gymnasium.make("ShopR1-v0", reward="binary"))
    env.action_masks()      # sb3-contrib's MaskablePPO calls it by this name
    envs = gymnasium.make_vec("ShopR1-v0", 16, "sync", wrappers=[DiscreteActions], reward="binary")
    envs.call("action_masks")

For Stable-Baselines3, sb3-contrib and CleanRL-style code with policies that neither read nor write text. The reply sent
to the env has an empty rationale, and self-certainty is not measured even if the reward includes it. With the reward
`shop_r1` values reach 1001; `binary` or `no_dars` suit value networks better.

An observation and its candidate actions become numbers in [0, 1]. Words are hashed into bins, so nothing has to be
fitted beforehand. Separate features say how far an element repeats the shopper's words, because that decides most
shopping steps.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, SupportsFloat
from zlib import crc32

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import ACTION_CLASSES, ACTION_TYPES, Action, read_action, reply_action
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.replies import format_reply
from shop_env.shopper_words import words_of
from shop_env.spaces import observation_space

Floats = NDArray[np.float32]
Features = Floats | dict[str, NDArray[Any]]
View = Literal["flat", "dict"]

_PAGE_BINS, _PERSONA_BINS, _ACTION_BINS, _NAME_BINS = 128, 64, 32, 32
_LONG_SESSION = 20  # steps
_TEXT_ELEMENTS = "title, h1, h2, h3, p"
_PAGE_WORDS = 200

PAGE_FEATURES = _PAGE_BINS + _PERSONA_BINS + _ACTION_BINS + len(ACTION_TYPES) + 1
CANDIDATE_FEATURES = len(ACTION_TYPES) + _NAME_BINS + 5


class DiscreteActions(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A wrapper with indices of `candidates` as actions and features as observations.

    `page_features` and `candidate_features` compute the features. A number without a candidate is sent as an empty
    reply, which earns nothing and raises nothing. `info["logged_candidate"]` after a step is the number of the logged
    action on the page just left, or -1 if it is not among the candidates (a typed text that is no known phrase).

    Args:
        max_candidates: Size of the action space; candidate_actions says which actions stay on pages with more.
        view: `flat` for one Box; `dict` for page (PAGE_FEATURES,), candidates (max_candidates, CANDIDATE_FEATURES) and
            mask (max_candidates,), for policies that score every candidate with the same network.

    Attributes:
        candidates: The actions that the current page offers; number 0 is terminate.
        scrolls: Whether scroll is among them, because the store has scrolls.
    """

    def __init__(
        self,
        env: gymnasium.Env[Observation, str],
        max_candidates: int = 64,
        view: View = "flat",
    ) -> None:
        if not isinstance(max_candidates, int) or max_candidates < 2 or view not in ("flat", "dict"):
            raise BadConfig(
                f"max_candidates is {max_candidates!r} and view is {view!r}; it takes at least 2, and 'flat' or 'dict'."
            )
        if env.observation_space != observation_space():
            raise BadConfig(
                f"{env} does not show what DiscreteActions reads: put it around ShopR1-v0 or ShopLive-v0, inside "
                "wrappers that change observations."
            )
        if getattr(getattr(env.unwrapped, "reward", None), "requires_rationale", False):
            raise BadConfig(
                "the reward of the env has requires_rationale, and DiscreteActions writes no rationale, so that every "
                "action would earn 0: make the env without it."
            )
        RecordConstructorArgs.__init__(self, max_candidates=max_candidates, view=view)
        gymnasium.Wrapper.__init__(self, env)
        self._max_candidates = max_candidates
        self._view: View = view
        self.scrolls: bool = getattr(getattr(env.unwrapped, "store", None), "scrolls", False)
        self.candidates: list[Action] = []
        self.action_space = spaces.Discrete(max_candidates)
        self.observation_space = feature_space(max_candidates, view)

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns True for each number that has a candidate, shape (max_candidates,)."""
        return np.arange(self._max_candidates) < len(self.candidates)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Features, dict[str, Any]]:
        """Starts a session; see ReplayEnv.reset."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._look(observation), info

    def step(self, action: int) -> tuple[Features, SupportsFloat, bool, bool, dict[str, Any]]:
        """Takes the action of candidate number `action`; see ReplayEnv.step."""
        offered = self.candidates
        chosen = offered[action] if 0 <= action < len(offered) else None
        reply = "" if chosen is None else format_reply("", chosen)
        observation, reward, terminated, truncated, info = self.env.step(reply)
        if "logged_action" in info:
            logged = reply_action(read_action(info["logged_action"]))
            numbers = (number for number, candidate in enumerate(offered) if reply_action(candidate) == logged)
            info["logged_candidate"] = next(numbers, -1)
        return self._look(observation), reward, terminated, truncated, info

    def _look(self, observation: Observation) -> Features:
        features, self.candidates = discrete_view(observation, self._max_candidates, self._view, scrolls=self.scrolls)
        return features


def discrete_view(
    observation: Observation, max_candidates: int, view: View, *, scrolls: bool = False
) -> tuple[Features, list[Action]]:
    """Returns the features of an observation, and the candidate actions in the order of their numbers."""
    candidates = candidate_actions(observation, max_candidates, scrolls=scrolls)
    page = page_features(observation)
    rows = candidate_features(observation, candidates, max_candidates)
    if view == "flat":
        return np.concatenate([page, rows.ravel()]), candidates
    mask = (np.arange(max_candidates) < len(candidates)).astype(np.int8)
    return {"page": page, "candidates": rows, "mask": mask}, candidates


def feature_space(max_candidates: int, view: View) -> spaces.Space[Any]:
    """Builds the space of `discrete_view`'s features."""
    if view == "flat":
        return _unit_box(PAGE_FEATURES + max_candidates * CANDIDATE_FEATURES)
    return spaces.Dict(
        {
            "page": _unit_box(PAGE_FEATURES),
            "candidates": _unit_box(max_candidates, CANDIDATE_FEATURES),
            "mask": spaces.MultiBinary(max_candidates),
        }
    )


def _unit_box(*shape: int) -> spaces.Box:
    return spaces.Box(0.0, 1.0, shape, dtype=np.float32)


def page_features(observation: Observation) -> Floats:
    """Computes features of the page (title, headings, paragraphs), the persona, the last action and the progress.

    Returns:
        The features, shape (PAGE_FEATURES,).
    """
    last = json.loads(observation["history"][-1]["action"]) if observation["history"] else {}
    return np.concatenate(
        [
            _bins(_page_words(observation["page"]), _PAGE_BINS),
            _bins(words_of(observation["persona"]), _PERSONA_BINS),
            _bins(words_of(last.get("name", "")), _ACTION_BINS),
            np.array([last.get("type") == name for name in ACTION_TYPES], dtype=np.float32),
            np.array([min(observation["step"] / _LONG_SESSION, 1)], dtype=np.float32),
        ]
    )


def candidate_features(observation: Observation, candidates: Sequence[Action], rows: int) -> Floats:
    """Computes features of each candidate: its type, the words of its name, and the shopper's words that it repeats.

    Returns:
        The features, shape (rows, CANDIDATE_FEATURES); rows beyond the candidates are 0.
    """
    goal = set(words_of(observation["goal"]))
    rationale_words = {word for past in observation["history"] for word in words_of(past["rationale"])}
    done = {past["action"] for past in observation["history"]}
    done_names = {json.loads(action).get("name") for action in done}
    features = np.zeros((rows, CANDIDATE_FEATURES), dtype=np.float32)
    for row, action in zip(features, candidates, strict=False):
        name, text = getattr(action, "name", ""), getattr(action, "text", "")
        words = words_of(text or name)
        row[: len(ACTION_TYPES)] = [isinstance(action, kind) for kind in ACTION_CLASSES.values()]
        row[len(ACTION_TYPES) : len(ACTION_TYPES) + _NAME_BINS] = _bins(words_of(name), _NAME_BINS)
        row[len(ACTION_TYPES) + _NAME_BINS :] = [
            _share(words, goal),
            _share(goal, set(words)),
            _share(words, rationale_words),
            bool(name) and name in done_names,
            min(len(words), 8) / 8,
        ]
    return features


def _page_words(page: str) -> list[str]:
    document = LexborHTMLParser(page)
    text = " ".join(node.text(separator=" ") for node in document.css(_TEXT_ELEMENTS))
    if not text and document.body is not None:
        text = document.body.text(separator=" ")
    return words_of(text[: 20 * _PAGE_WORDS])[:_PAGE_WORDS]


def _bins(words: Iterable[str], count: int) -> Floats:
    """Hashes words into `count` bins: 1 for each bin with a word, else 0; the same in every process."""
    bins = np.zeros(count, dtype=np.float32)
    bins[[crc32(word.encode("utf-8", "replace")) % count for word in words]] = 1
    return bins


def _share(words: Iterable[str], of: set[str]) -> float:
    hits = [word in of for word in words]
    return sum(hits) / len(hits) if hits else 0.0
