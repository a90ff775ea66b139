"""Counts the private data that is missed and the product texts that are harmed.

    python -m benchmarks.private_data --seeds 0 1 2 --out benchmarks/results/private_data/private_data.json

360 cases a seed: names, addresses, phone and card numbers and e-mail addresses of made-up people of twelve countries,
planted in headers, labels, attributes, addresses of pages, rationales and goals (planted.py). Six of the countries, and
every third of the product texts, were held out while the patterns were tuned. It needs the extra `test` (Faker).
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from faker import VERSION

from benchmarks.private_data.planted import Planted, is_changed, is_left, planted_cases, product_texts
from replay_sessions.provenance import provenance

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the made-up people (0 1 2)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the figures, as JSON")
    given = parser.parse_args(arguments)
    figures = {
        "planted": _recall([case for seed in given.seeds for case in planted_cases(seed)]),
        "product_texts": {
            name: _harmed(held_out=held_out) for name, held_out in (("tuned", False), ("held_out", True))
        },
        "faker": VERSION,
        "provenance": provenance({"seeds": given.seeds}, seed=given.seeds[0]),
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")
    print(given.out.read_text())
    return 0


def _recall(cases: list[Planted]) -> dict[str, Any]:
    """Shares that were found: of all, of the countries tuned on and held out, and by kind, place and country."""
    missed = {id(case) for case in cases if is_left(case)}
    groups: dict[str, dict[str, list[Planted]]] = {"countries": {}, "kind": {}, "place": {}, "locale": {}}
    for case in cases:
        told = {"countries": "held_out" if case.is_held_out else "tuned", "kind": case.kind, "place": case.place}
        for group, name in {**told, "locale": case.locale}.items():
            groups[group].setdefault(name, []).append(case)
    shares = {group: {name: _share(found, missed) for name, found in names.items()} for group, names in groups.items()}
    worst = Counter(f"{case.kind} in {case.place}" for case in cases if id(case) in missed)
    return {"cases": len(cases), "found": _share(cases, missed), **shares, "missed": dict(worst.most_common())}


def _share(cases: list[Planted], missed: set[int]) -> float:
    return round(sum(id(case) not in missed for case in cases) / len(cases), 4)


def _harmed(*, held_out: bool) -> dict[str, Any]:
    texts = product_texts(held_out=held_out)
    harmed = [text for text in texts if is_changed(text)]
    return {"texts": len(texts), "changed": len(harmed), "which": harmed}


if __name__ == "__main__":
    sys.exit(main())
