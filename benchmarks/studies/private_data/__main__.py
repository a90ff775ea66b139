"""Counts the private data that is missed and the product texts that are harmed.

    python -m benchmarks.studies.private_data --seeds 0 1 2 --out benchmarks/results/private_data/private_data.json

720 cases a seed: names, addresses, phone and card numbers and e-mail addresses of made-up people of 24 countries,
planted in headers, labels, attributes, addresses of pages, rationales and goals. On six of the countries and two thirds
of the product texts the patterns were tuned, the others were held out or not seen at all. It needs Faker,
of the extra `test`.

The private data of made-up people is planted where shops and shoppers write such things.

The people come from the library Faker, by a seed; the sentences and pages around them are plain ones (planted.toml).
The countries of `held_out` and every third product text were held out before anything was tuned on the others; what
they showed was fixed once. Those of `unseen` were evaluated when all was done, and nothing was changed after them.
"""

import html
import random
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import quote, quote_plus, unquote_plus

import msgspec
from faker import VERSION, Faker

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import replace_json
from replay_sessions.foundation.provenance import provenance
from replay_sessions.private_data import remove_from_text, remove_from_url
from replay_sessions.simplify import simplify
from replay_sessions.simplify.names import slug

Kind = Literal["name", "address", "phone", "card", "email"]
Place = Literal["header", "label", "attribute", "url", "rationale", "goal"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PLACES: tuple[Place, ...] = get_args(Place)
Part = Literal["tuned", "held_out", "unseen"]
_DATA = tomllib.loads(Path(__file__).with_name("planted.toml").read_text("utf-8"))
LOCALES: dict[Part, list[str]] = _DATA["locales"]
_TEMPLATES: dict[Place, dict[Kind, list[str]]] = _DATA["templates"]
_PAGE = "<title>Kettles</title><body>{}<main><h1>Red kettle, 1.7 l</h1><p>$29.99</p><button>Add to cart</button></main>"
_HOME = "<title>Kettles</title><body><main><h1>Red kettle, 1.7 l</h1>{}<button>Add to cart</button></main>"


class Planted(NamedTuple):
    """Something private in the place where it was planted.

    Attributes:
        text: The page, address or sentence with the secret in it.
        secret: The secret, its lines apart by ", ".
    """

    locale: str
    kind: Kind
    place: Place
    text: str
    secret: str

    def parts(self) -> list[str]:
        """What must not be left: each word of a name that is no small one, each line of an address that holds a number,
        else the whole."""
        if self.kind == "name":
            return [word for word in re.findall(r"[^\W\d_]+", self.secret) if len(word) > 1 and not word.islower()]
        if self.kind == "address":
            return [line for line in self.secret.split(", ") if any(map(str.isdigit, line)) and len(line) > 3]
        return [self.secret]


def planted_cases(seed: int, part: Part) -> Iterator[Planted]:
    """One case for each kind of private data in each place and country of a part: 180, of the unseen ones 360."""
    for locale in LOCALES[part]:
        faker = Faker(locale)
        faker.seed_instance(seed)
        rng = random.Random(f"{seed} {locale}")
        for place in PLACES:
            for kind in KINDS:
                template = rng.choice(_TEMPLATES[place][kind])
                secret = ", ".join(line.strip() for line in _generate_secret(faker, kind).splitlines())
                yield Planted(locale, kind, place, _fill(template, secret, place, rng), secret)


def product_texts(part: Part) -> list[str]:
    """Product texts that look private and are not."""
    file = Path(__file__).with_name("hard_product_texts.toml")
    lists: dict[str, list[str]] = tomllib.loads(file.read_text("utf-8"))
    unseen = lists.pop("unseen")
    if part == "unseen":
        return unseen
    is_held_out = part == "held_out"
    return [text for texts in lists.values() for number, text in enumerate(texts) if (number % 3 == 2) == is_held_out]


def is_changed(text: str) -> bool:
    """Whether a page that shows a product text, in a paragraph and as a link, loses any of it."""
    page = f"<body><p>{html.escape(text)}</p><a href=x>{html.escape(text)}</a></body>"
    return simplify(page) != simplify(page, private_data=False)


def is_left(case: Planted) -> bool:
    """Whether some of the secret, or the name of an element made of it, is left where it was planted."""
    if case.place == "url":
        cleaned = unquote_plus(remove_from_url(case.text))
    elif case.place in ("rationale", "goal"):
        cleaned = remove_from_text(case.text)
    else:
        cleaned = html.unescape(simplify(case.text).html)
        if slug(case.secret) and slug(case.secret) in " ".join(re.findall(r' name="([^"]*)"', cleaned)):
            return True
    return any(_contains(cleaned, part) for part in case.parts())


def _contains(text: str, part: str) -> bool:
    # As a whole word where the script has spaces between words.
    pattern = rf"(?<![^\W_]){re.escape(part)}(?![^\W_])" if part[0].isascii() else re.escape(part)
    return re.search(pattern, text) is not None


def _generate_secret(faker: Faker, kind: Kind) -> str:
    provider = {"phone": "phone_number", "card": "credit_card_number"}.get(kind, kind)
    return str(faker.format(provider))


def _fill(template: str, secret: str, place: Place, rng: random.Random) -> str:
    if place == "url":
        return template.format(rng.choice((quote, quote_plus))(secret))
    if place in ("rationale", "goal"):
        return template.format(secret)
    page = _PAGE if place == "header" else _HOME
    return page.format(template.format(html.escape(secret)))


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


main = command(Count, _run)

if __name__ == "__main__":
    sys.exit(main())
