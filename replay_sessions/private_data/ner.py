"""Finds names and addresses in texts by a model: `shop-r1 import … --ner replay_sessions.private_data.ner:presidio`.

Any function works that takes a line of a page and returns the spans of private values in it. Spans are triples
`(start, end, kind)`, with the kinds `name`, `address`, `email`, `phone`. The adapters follow the documentation of their
libraries and are untested, because the models were not available.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import error_with_line, load_own, requires_extra

Entity = tuple[int, int, str]
FindEntities = Callable[[str], Iterable[Entity]]
_PRESIDIO_KINDS = {"PERSON": "name", "LOCATION": "address"}
_GLINER_KINDS = {"person": "name", "address": "address"}
_GLINER_MODEL = "urchade/gliner_multi_pii-v1"
_CACHED_LINES = 50_000


def load_ner(target: str) -> FindEntities:
    """Loads the function of the name "module:function" and caches its results by line.

    Raises:
        BadConfig: The function cannot be loaded.
    """
    try:
        function: FindEntities = load_own(target)
    except Exception as error:
        raise BadConfig(f"--ner {target!r} cannot be loaded: {error_with_line(error)}") from error
    return functools.lru_cache(_CACHED_LINES)(lambda line: list(function(line)))


def presidio(line: str) -> list[Entity]:
    """Returns the entities that Microsoft Presidio finds in an English line."""
    entities = _analyzer().analyze(text=line, language="en", entities=list(_PRESIDIO_KINDS))
    return [(entity.start, entity.end, _PRESIDIO_KINDS[entity.entity_type]) for entity in entities]


def gliner(line: str) -> list[Entity]:
    """Returns the entities that a multilingual GLiNER model for personal data finds in a line."""
    entities = _model().predict_entities(line, list(_GLINER_KINDS))
    return [(entity["start"], entity["end"], _GLINER_KINDS[entity["label"]]) for entity in entities]


@functools.cache
def _analyzer() -> Any:
    with requires_extra("presidio"):
        from presidio_analyzer import AnalyzerEngine  # noqa: PLC0415 - the extra is optional
    return AnalyzerEngine()


@functools.cache
def _model() -> Any:
    with requires_extra("gliner"):
        from gliner import GLiNER  # noqa: PLC0415 - the extra is optional
    return GLiNER.from_pretrained(_GLINER_MODEL)
