"""Slow and obvious: an rrweb page as plain dicts and lists, and a mutation applied to it by looking through all of it.

oracle = PlainPage(document)
oracle.apply({"removes": [...], "adds": [...], "texts": [...], "attributes": [...]})
oracle.shape()
"""

import copy
from collections.abc import Iterator
from typing import Any

__all__ = ["PlainPage"]

Json = Any


class PlainPage:
    """A page; nothing about it is remembered but its nested nodes."""

    def __init__(self, document: Json) -> None:
        self.document = copy.deepcopy(document)

    def apply(self, mutation: Json) -> None:
        for remove in mutation["removes"]:
            self._take_out(remove["id"])
        self._put_all_in(copy.deepcopy(mutation["adds"]))
        for text in mutation["texts"]:
            node = self._find(text["id"])
            if node is not None and node["type"] == 3:
                node["textContent"] = text["value"]
        for change in mutation["attributes"]:
            node = self._find(change["id"])
            if node is not None and node["type"] == 2:
                changed = {**node["attributes"], **change["attributes"]}
                node["attributes"] = {name: value for name, value in changed.items() if value is not None}

    def _put_all_in(self, waiting: list[Json]) -> None:
        progressed = True
        while waiting and progressed:
            progressed = False
            for add in waiting:
                if self._is_ready(add):
                    self._put_in(add)
                    waiting.remove(add)
                    progressed = True
                    break

    def shape(self) -> Json:
        """The page as nested tuples."""
        return _shape(self.document)

    def _nodes(self) -> Iterator[Json]:
        yield from _all(self.document)

    def _find(self, node_id: int) -> Json | None:
        return next((node for node in self._nodes() if node["id"] == node_id), None)

    def _take_out(self, node_id: int) -> None:
        for parent in list(self._nodes()):
            for child in parent.get("childNodes", []):
                if child["id"] == node_id:
                    parent["childNodes"].remove(child)
                    return

    def _is_ready(self, add: Json) -> bool:
        return self._find(add["parentId"]) is not None and (
            add["nextId"] is None or self._find(add["nextId"]) is not None
        )

    def _put_in(self, add: Json) -> None:
        if add["node"]["id"] == self.document["id"]:
            return
        self._take_out(add["node"]["id"])
        parent = self._find(add["parentId"])
        if parent is None:
            return
        node = {**add["node"], "childNodes": []}
        siblings = parent.setdefault("childNodes", [])
        if parent["type"] == 0 and node.get("tagName") == "html":
            siblings[:] = [child for child in siblings if child.get("tagName") != "html"]
        if parent.get("tagName") == "textarea" and node["type"] == 3:
            siblings[:] = [child for child in siblings if child["type"] != 3]
        places = [place for place, child in enumerate(siblings) if child["id"] == add["nextId"]]
        siblings.insert(places[0] if places else len(siblings), node)


def _all(node: Json) -> Iterator[Json]:
    yield node
    for child in node.get("childNodes", []):
        yield from _all(child)


def _shape(node: Json) -> Json:
    inside = tuple(_shape(child) for child in node.get("childNodes", []))
    return (
        node["id"],
        node.get("tagName") or node.get("textContent"),
        tuple(sorted(node.get("attributes", {}).items())),
        inside,
    )
