"""Counts the private data that is missed and the product texts that are harmed.

    python -m benchmarks.studies.private_data --seeds 0 1 2 --out benchmarks/results/private_data/private_data.json

720 cases a seed: names, addresses, phone and card numbers and e-mail addresses of made-up people of 24 countries,
planted in headers, labels, attributes, addresses of pages, rationales and goals. On six of the countries and two thirds
of the product texts the patterns were tuned, the others were held out or not seen at all (planted.py). It needs Faker,
of the extra `test`.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from faker import VERSION

from benchmarks.studies.private_data.planted import (
    LOCALES,
    Part,
    Planted,
    is_changed,
    is_left,
    planted_cases,
    product_texts,
)
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.provenance import provenance


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """Counts what is missed and what is harmed.

    Attributes:
        seeds: Of the made-up people.
        out: The figures, as JSON.
    """

    seeds: tuple[int, ...] = (0, 1, 2)
    out: Path


def _run(options: Count) -> int:
    figures = {
        "planted": {
            part: _recall([case for seed in options.seeds for case in planted_cases(seed, part)]) for part in LOCALES
        },
        "product_texts": {part: _harmed(part) for part in LOCALES},
        "faker": VERSION,
        "provenance": provenance({"seeds": options.seeds}, seed=options.seeds[0]),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    replace_json(options.out, figures)
    print(options.out.read_text())
    return 0


def _recall(cases: list[Planted]) -> dict[str, Any]:
    """Shares that were found: of all, and by kind, place and country."""
    missed = {id(case) for case in cases if is_left(case)}
    groups: dict[str, dict[str, list[Planted]]] = {"kind": {}, "place": {}, "locale": {}}
    for case in cases:
        for group, named in groups.items():
            named.setdefault(getattr(case, group), []).append(case)
    shares = {group: {name: _share(found, missed) for name, found in named.items()} for group, named in groups.items()}
    worst = Counter(f"{case.kind} in {case.place}" for case in cases if id(case) in missed)
    return {"cases": len(cases), "found": _share(cases, missed), **shares, "missed": dict(worst.most_common())}


def _share(cases: list[Planted], missed: set[int]) -> float:
    return round(sum(id(case) not in missed for case in cases) / len(cases), 4)


def _harmed(part: Part) -> dict[str, Any]:
    texts = product_texts(part)
    harmed = [text for text in texts if is_changed(text)]
    return {"texts": len(texts), "changed": len(harmed), "which": harmed}


main = command(Count, _run, program="python -m benchmarks.studies.private_data", text=__doc__)

if __name__ == "__main__":
    sys.exit(main())
