"""The peer of the simplifier does the work that BrowserGym's pruning does."""

from benchmarks.speed.simplify_peers import prune


def test_pruning_leaves_texts_and_controls_and_takes_scripts_and_wrappers():
    pruned = prune(b"<div><p>text</p><script>x()</script><!-- no --><button>Go</button></div>")
    assert "text" in pruned
    assert "<button>" in pruned
    assert not any(gone in pruned for gone in ("script", "<div", "<!--"))
