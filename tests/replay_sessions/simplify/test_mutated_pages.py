"""Damaged and hostile pages: nothing but ShopR1Error is raised, in bounded time and memory."""

import gzip
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.simplify import simplify
from tests.damage import damaged
from tests.processes import run_python

SECONDS = 5.0
LONGEST = 20_000


def words(*lines: str) -> list[str]:
    return " ".join(lines).split()


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
TAGS = words(
    "a div span p li ul table tr td select option input button form label svg math template script style title",
    "textarea iframe noscript body html head frameset font b i nobr h1 h2 img br hr x-y details summary dialog object",
)
ATTRIBUTES = words(
    "class id name style hidden aria-hidden aria-label aria-labelledby role type value href title for onclick",
    "contenteditable placeholder alt data-x itemprop autocomplete",
)
VALUES = (
    "", "x", "button", "checkbox", "hidden", "display:none", "true", "x x x", "&quot;", "<", "\0", "a" * 2_000,
    "s-result-item", "a-carousel-card", "aok-hidden", "twotabsearchtextbox", "電気ケトル", "\u202e\ud7ff", "{}",
)  # fmt: skip
ENTITIES = words(
    "&amp; &lt;script&gt; &#0; &#xD800; &#x110000; &#99999999999; &notit; & &; &#x; &NotSquareSupersetEqual &#128;"
)
ODD_BYTES = (
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x1b",
    b"\x02",
    b"<!--",
    b"-->",
    b"<![CDATA[",
)
ENCODINGS = ("utf-16", "utf-16-be", "utf-32", "shift_jis", "cp1251", "latin-1", "cp037", "utf-7", "gb18030")

TAG = st.sampled_from(TAGS)
START = st.builds(
    lambda tag, pairs, quote: f"<{tag} {' '.join(f'{key}={quote}{value}{quote}' for key, value in pairs)}>",
    TAG,
    st.lists(st.tuples(st.sampled_from(ATTRIBUTES), st.sampled_from(VALUES)), max_size=5),
    st.sampled_from(("'", '"', "")),
)
NESTED = st.builds(
    lambda tag, depth, end: f"<{tag}>" * depth + f"</{tag}>" * end, TAG, *[st.sampled_from((0, 50, 1_000))] * 2
)
PIECES = (START | NESTED | TAG | st.sampled_from(ENTITIES)).map(str.encode) | st.sampled_from(ODD_BYTES)


def recoded(page: bytes, encoding: str, declared: str) -> bytes:
    return f"<meta charset={declared}>".encode() + page.decode("utf-8", "replace").encode(encoding, "replace")


def pages(valid: list[bytes]) -> st.SearchStrategy[bytes | str]:
    """Damaged pages: bytes, some of them in another encoding than declared, or text."""
    page = damaged(valid, PIECES)
    encodings = st.sampled_from(ENCODINGS)
    return (
        page | st.builds(recoded, page, encodings, encodings) | page.map(lambda b: b.decode("utf-8", "surrogateescape"))
    )


def check(page: bytes | str) -> None:
    """Simplifies a page; its names are unique, and all takes a few seconds at most."""
    start = time.process_time()
    try:
        names = [element.name for element in simplify(page).elements]
    except ShopR1Error:
        return
    assert len(set(names)) == len(names)
    assert time.process_time() - start < SECONDS


@settings(max_examples=300, deadline=None)
@given(pages([WRITTEN]))
def test_a_damaged_page_raises_nothing_but_the_project_s_errors(page):
    check(page)


@pytest.mark.slow
@settings(max_examples=50_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_real_pages_raise_nothing_but_the_project_s_errors(shared_data, data):
    files = sorted((shared_data / "raw_pages").rglob("*.html.gz"))
    page = gzip.decompress(data.draw(st.sampled_from(files)).read_bytes())
    start = data.draw(st.integers(0, max(0, len(page) - LONGEST)))
    check(data.draw(pages([page[start : start + LONGEST], WRITTEN])))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cards", "text", "script", "one tag", "random bytes"])
def test_a_page_of_50_megabytes_takes_two_minutes_and_three_gigabytes_at_most(kind):
    program = (
        "import random, sys, time\n"
        "from replay_sessions.foundation.errors import ShopR1Error\n"
        "from replay_sessions.simplify import simplify\n"
        "from tests.processes import get_peak_memory\n"
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
        "print(time.process_time(), get_peak_memory() / 2**20, result)\n"
    )
    done = run_python("-c", program, kind)
    seconds, mebibytes, result = done.stdout.strip().split(" ", 2)
    print(f"{kind}: {float(seconds):.1f} s, {float(mebibytes):.0f} MiB: {result}")
    assert float(seconds) < 120
    assert float(mebibytes) < 3_072
