"""An observation and its candidate actions as numbers in [0, 1]: for learners that read no text.

Stands between the candidates and the discrete view (wrappers.py). Words are hashed into bins, so nothing has to be
fitted beforehand; what decides most shopping steps, how far an element repeats words already given, has features of its
own.
"""

import json
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.observation import Observation
from shop_env.words import words_of

Floats = NDArray[np.float32]

_PAGE_BINS, _PERSONA_BINS, _ACTION_BINS, _NAME_BINS = 128, 64, 32, 32
_TYPES = (Click, TypeAndSubmit, Terminate)
_TYPE_NAMES = ("click", "type_and_submit", "terminate")
_LONG_SESSION = 20  # steps
_TEXT_ELEMENTS = "title, h1, h2, h3, p"
_PAGE_WORDS = 200

PAGE_FEATURES = _PAGE_BINS + _PERSONA_BINS + _ACTION_BINS + len(_TYPES) + 1
CANDIDATE_FEATURES = len(_TYPES) + _NAME_BINS + 5


def page_features(observation: Observation) -> Floats:
    """What the page tells (title, headings, paragraphs), who shops, what was done last, how far the session is.

    Returns:
        Shape (PAGE_FEATURES,).
    """
    last = json.loads(observation["history"][-1]["action"]) if observation["history"] else {}
    return np.concatenate(
        [
            _bins(_page_words(observation["page"]), _PAGE_BINS),
            _bins(words_of(observation["persona"]), _PERSONA_BINS),
            _bins(words_of(last.get("name", "")), _ACTION_BINS),
            np.array([last.get("type") == name for name in _TYPE_NAMES], dtype=np.float32),
            np.array([min(observation["step"] / _LONG_SESSION, 1)], dtype=np.float32),
        ]
    )


def candidate_features(observation: Observation, candidates: Sequence[Action], rows: int) -> Floats:
    """Each candidate's type, the words of its name, and how it relates to the words already given.

    Returns:
        Shape (rows, CANDIDATE_FEATURES); rows beyond the candidates are 0.
    """
    goal = set(words_of(observation["goal"]))
    rationale_words = {word for past in observation["history"] for word in words_of(past["rationale"])}
    done = {past["action"] for past in observation["history"]}
    done_names = {json.loads(action).get("name") for action in done}
    features = np.zeros((rows, CANDIDATE_FEATURES), dtype=np.float32)
    for row, action in zip(features, candidates, strict=False):
        name, text = getattr(action, "name", ""), getattr(action, "text", "")
        words = words_of(text or name)
        row[: len(_TYPES)] = [isinstance(action, kind) for kind in _TYPES]
        row[len(_TYPES) : len(_TYPES) + _NAME_BINS] = _bins(words_of(name), _NAME_BINS)
        row[len(_TYPES) + _NAME_BINS :] = [
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
    """1 where a word falls; the same word always falls into the same bin."""
    bins = np.zeros(count, dtype=np.float32)
    bins[[crc32(word.encode("utf-8", "replace")) % count for word in words]] = 1
    return bins


def _share(words: Iterable[str], of: set[str]) -> float:
    hits = [word in of for word in words]
    return sum(hits) / len(hits) if hits else 0.0
