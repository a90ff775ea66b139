import gc

from replay_sessions.foundation.collection import paused_collection
from replay_sessions.simplify import simplify

CARDS = "".join(f"<li><h3>Kettle</h3><a href=/dp/B0{n:08}>Kettle</a><a href=/r/{n}>Reviews</a>" for n in range(5))


def test_a_page_leaves_no_circle_of_references():
    """Nothing frees those while an import has the collector paused."""
    page = f"<h1>Kettles</h1><ul>{CARDS}</ul>"
    simplify(page)
    gc.collect()
    with paused_collection():
        simplify(page)
        assert gc.collect() == 0
    assert gc.isenabled()
