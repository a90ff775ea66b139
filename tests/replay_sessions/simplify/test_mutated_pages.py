"""Damaged and hostile pages: nothing but ShopR1Error is raised, in bounded time and memory.

Each seed makes pages of its own; a failure names its seed and number, and `mutated_page(bases, seed, number)` makes the
page again.
"""

import functools
import gzip
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.simplify import simplify
from tests.processes import run_python

_PAGES_PER_SEED = 1_000
_LONGEST = 20_000
_SECONDS = 5.0

WRITTEN = b"""<!doctype html><html><head><title>Kettles</title></head><body>
<header><nav aria-label="Main"><a href=/>Home</a>
<form role=search><label for=q>Search</label><input id=q name=q placeholder="Find"><button>Go</button></form></nav>
</header><main><h1>Kettles</h1><ul><li><article><h2><a href=/1>Red kettle, 1.7 l</a></h2>
<span class=a-offscreen>$29.99</span><select aria-label=Quantity><option selected>1<option>2</select>
<input type=checkbox checked><button aria-labelledby=x>
</button><i id=x hidden>Add to cart</i></article></li></ul><table><tr><td>Phone<td>+49 30 901820</table>
<div aria-hidden=true><p style="display:none">Hello, Anna</p></div>
<svg><title>Star</title></svg><img alt="Red &amp; round" src=x></main>
<footer>Deliver to Anna - Berlin 10115 <a href=/help>Help</a></footer></body></html>"""
_TAGS = (
    b"a div span p li ul table tr td select option input button form label svg math template script style "
    b"title textarea iframe noscript body html head frameset font b i nobr h1 h2 img br hr x-y details summary dialog "
    b"object col caption"
).split()
_ATTRIBUTES = (
    b"class id name style hidden aria-hidden aria-label aria-labelledby role type value href title for onclick "
    b"contenteditable placeholder alt data-x itemprop autocomplete"
).split()
_VALUES = (
    b"", b"x", b"button", b"checkbox", b"hidden", b"display:none", b"none", b"true", b"x x x", b"\xff\xfe",
    b"&quot;", b"<", b"\0", b"a" * 2_000, b"s-result-item", b"a-carousel-card", b"aok-hidden",
    b"twotabsearchtextbox", "電気ケトル".encode(), "\u202e\ud7ff".encode(), b"{}", b"]]>",
)  # fmt: skip
_ENTITIES = (
    b"&amp;", b"&lt;script&gt;", b"&#0;", b"&#xD800;", b"&#x110000;", b"&#99999999999;", b"&notit;", b"&",
    b"&;", b"&#x;", b"&nbsp;", b"&zwj;", b"&NotSquareSupersetEqual", b"&#128;", b"&lt", b"&quot;", b"&#8238;",
)  # fmt: skip
_ODD_BYTES = (
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x1b",
    b"\x02",
    b"\x01",
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"<?",
    b"</",
)
_ENCODINGS = ("utf-16", "utf-16-be", "utf-32", "shift_jis", "cp1251", "latin-1", "cp037", "utf-7", "gb18030")

Mutation = Callable[[bytes, random.Random, list[bytes]], bytes]


def _place(page: bytes, chance: random.Random) -> int:
    return chance.randrange(len(page) + 1)


def _insert(page: bytes, chance: random.Random, part: bytes) -> bytes:
    place = _place(page, chance)
    return page[:place] + part + page[place:]


def cut(page: bytes, chance: random.Random, bases: list[bytes]) -> bytes:
    start, end = sorted((_place(page, chance), _place(page, chance)))
    return page[:start] + page[end:] if chance.random() < 0.5 else page[start:end]


def nest(page: bytes, chance: random.Random, bases: list[bytes]) -> bytes:
    tag, depth = chance.choice(_TAGS), chance.choice((2, 50, 1_000))
    ended = b"</%s>" % tag * chance.choice((0, depth))
    return _insert(page, chance, b"<%s>" % tag * depth + chance.choice((b"", page[:500])) + ended)


def recode(page: bytes, chance: random.Random, bases: list[bytes]) -> bytes:
    declared = chance.choice((b"", b"<meta charset=%s>" % chance.choice(_ENCODINGS).encode()))
    return declared + page.decode("utf-8", "replace").encode(chance.choice(_ENCODINGS), "replace")


def damage(page: bytes, chance: random.Random, bases: list[bytes]) -> bytes:
    for _ in range(chance.randint(1, 20)):
        page = _insert(page, chance, chance.choice(_ODD_BYTES) * chance.choice((1, 3, 200)))
    return page


def splice(page: bytes, chance: random.Random, bases: list[bytes]) -> bytes:
    other = chance.choice(bases)
    return page[: _place(page, chance)] + other[_place(other, chance) :]


def add_attributes(page: bytes, chance: random.Random, bases: list[bytes]) -> bytes:
    for _ in range(chance.randint(1, 10)):
        quote = chance.choice((b'"', b"'", b""))
        attributes = b"".join(
            b" %s=%s%s%s" % (chance.choice(_ATTRIBUTES), quote, chance.choice(_VALUES), quote)
            for _ in range(chance.choice((1, 5, 100)))
        )
        page = _insert(page, chance, b"<%s%s>" % (chance.choice(_TAGS), attributes))
    return page


def add_entities(page: bytes, chance: random.Random, bases: list[bytes]) -> bytes:
    return _insert(page, chance, b"".join(chance.choice(_ENTITIES) for _ in range(chance.choice((3, 100, 2_000)))))


def repeat(page: bytes, chance: random.Random, bases: list[bytes]) -> bytes:
    start = _place(page, chance)
    return _insert(page, chance, page[start : start + chance.choice((1, 10, 100))] * chance.choice((2, 30, 200)))


def swap_tags(page: bytes, chance: random.Random, bases: list[bytes]) -> bytes:
    return page.replace(chance.choice(_TAGS), chance.choice(_TAGS))


_MUTATIONS: tuple[Mutation, ...] = (
    cut, nest, recode, damage, splice, add_attributes, add_entities, repeat, swap_tags,
)  # fmt: skip


def mutated_page(bases: list[bytes], seed: int, number: int) -> bytes | str:
    chance = random.Random(f"{seed} {number}")
    page = chance.choice(bases)
    start = _place(page, chance) if len(page) > _LONGEST else 0
    page = page[start : start + _LONGEST]
    for mutate in chance.choices(_MUTATIONS, k=chance.randint(1, 4)):
        page = mutate(page, chance, bases)[: 5 * _LONGEST]
    return page if chance.random() < 0.7 else page.decode("utf-8", chance.choice(("replace", "surrogateescape")))


@functools.cache
def _bases(folder: Path | None) -> list[bytes]:
    files = sorted((folder / "raw_pages").rglob("*.html.gz")) if folder is not None else []
    return [WRITTEN, *(gzip.decompress(file.read_bytes()) for file in files)]


def _survive(bases: list[bytes], seed: int, pages: int) -> None:
    for number in range(pages):
        page = mutated_page(bases, seed, number)
        start = time.process_time()
        try:
            simplified = simplify(page)
            names = [element.name for element in simplified.elements]
        except ShopR1Error:
            continue
        except Exception as error:
            raise AssertionError(f"page {number} of seed {seed}") from error
        assert len(set(names)) == len(names), (seed, number)
        assert time.process_time() - start < _SECONDS, (seed, number)


def test_a_thousand_mutated_pages_raise_nothing_else() -> None:
    _survive(_bases(None), seed=0, pages=1_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 51))
def test_fifty_thousand_mutated_real_pages_raise_nothing_else(seed: int, shared_data: Path) -> None:
    _survive(_bases(shared_data), seed, _PAGES_PER_SEED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cards", "text", "script", "one tag", "random bytes"])
def test_a_page_of_50_megabytes_takes_two_minutes_and_three_gigabytes_at_most(kind: str) -> None:
    program = (
        "import random, resource, sys, time\n"
        "from replay_sessions.foundation.errors import ShopR1Error\n"
        "from replay_sessions.simplify import simplify\n"
        "size = 50_000_000\n"
        "card = b'<li><h3><a href=x>Kettle, 1.7 l</a></h3><p>$29.99</p><div class=a><span>In stock</span></div></li>'\n"
        "page = {\n"
        "    'cards': lambda: b'<ul>' + card * (size // len(card)),\n"
        "    'text': lambda: b'<p>' + b'Hello, Anna Order 12345 10 Main Street a@b.com ' * (size // 47),\n"
        "    'script': lambda: b'<script>' + b'if(a<b)c();' * (size // 11) + b'</script><p>x',\n"
        "    'one tag': lambda: b'<p title=\"' + b'a b ' * (size // 4) + b'\">x',\n"
        "    'random bytes': lambda: random.Random(1).randbytes(size),\n"
        "}[sys.argv[1]]()\n"
        "result = 'simplified'\n"
        "try:\n"
        "    simplify(page)\n"
        "except ShopR1Error as error:\n"
        "    result = error\n"
        "print(time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, result)\n"
    )
    done = run_python("-c", program, kind)
    seconds, mebibytes, result = done.stdout.strip().split(" ", 2)
    print(f"{kind}: {float(seconds):.1f} s, {float(mebibytes):.0f} MiB: {result}")
    assert float(seconds) < 120
    assert float(mebibytes) < 3_072
