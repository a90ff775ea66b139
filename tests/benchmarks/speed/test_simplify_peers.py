"""What the simplifier is measured against does the same work: the peer on BeautifulSoup gives the same page."""

import os
import subprocess
import sys

import pytest

from benchmarks.studies.speed.simplify_peers import prune
from replay_sessions.simplify import simplify

PAGE = """<!doctype html><html><head><title>Tents &amp; more</title></head><body>
<main aria-hidden="true"><h1>Tents</h1><a href="/sale">Sale</a></main><div aria-hidden="true">unread</div>
<form action="/s"><label for="q">Search</label><input id="q" name="q" type="search"><button>Go</button></form>
<ul>{cards}</ul>
<p>Was <s>$50</s> now $30. <a href="/cart" aria-label="Cart"><svg><title>3 items</title></svg></a></p>
<a href="/wish"><svg><title>Wish list</title><path></path></svg></a>
<select name="sort" aria-label="Sort by"><option>Price</option><option>Rating</option></select>
</body></html>"""
CARD = """<li class="card"><div><a href="/p/{number}"><h2>Tent for {number}</h2></a><img alt="a tent" src="t.jpg"></div>
<span>${number}9</span><button>Add to cart</button><div><a href="/p/{number}#reviews">{number} reviews</a></div></li>"""


@pytest.mark.parametrize("cards", [0, 1, 12])
def test_the_peer_gives_the_same_page(cards: int) -> None:
    page = PAGE.format(cards="".join(CARD.format(number=number) for number in range(1, cards + 1)))
    ours = simplify(page.encode(), private_data=False).html
    assert 'name="wish_list"' in ours
    program = (
        "import sys\n"
        "from benchmarks.studies.speed.simplify_peers import soup_simplify\n"
        "sys.stdout.write(soup_simplify(sys.stdin.buffer.read()))\n"
    )
    peers = subprocess.run(
        [sys.executable, "-c", program],
        input=page.encode(),
        env={**os.environ, "SHOP_R1_INTERPRETED": "1"},  # the peer extends our walk
        capture_output=True,
        check=True,
    )
    assert peers.stdout.decode() == ours


def test_pruning_leaves_texts_and_controls_and_takes_scripts_and_wrappers() -> None:
    pruned = prune(b"<div><p>text</p><script>x()</script><!-- no --><button>Go</button></div>")
    assert "text" in pruned
    assert "<button>" in pruned
    assert not any(gone in pruned for gone in ("script", "<div", "<!--"))
