"""`python -m train.show`: curves and table of a run that has whatever phases and figures it has."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from train.metrics_file import COLLAPSE_STEPS, describe_collapse
from train.show.__main__ import main, warnings_of
from train.show.curves import phase_curves, read_run
from train.show.drawing import embed_panels
from train.show.panels import panels

COLLAPSED = {"sampled_click": 0.97, "logged_click": 0.6}


def run_of(folder: Path, phases: Mapping[str, Sequence[Mapping[str, float]]]) -> Path:
    folder.mkdir(parents=True)
    lines = [
        json.dumps({"phase": phase, "step": step, **figures})
        for phase, rows in phases.items()
        for step, figures in enumerate(rows, start=1)
    ]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def losses(*values: float) -> list[dict[str, float]]:
    return [{"loss": value} for value in values]


def titles(figures: Sequence[str]) -> list[str]:
    return [panel.title for panel in panels(figures)]


def test_each_phase_of_whatever_name_becomes_a_png_and_an_svg(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grpo = {"exact": 0.5, "groups": 4, "groups_used": 2, "reward_text": 3.0, "reward_text_std": 1.0, "new": 7.0}
    run = run_of(tmp_path / "run", {"warm up/1": losses(3.0, 2.0), "rl": [grpo, grpo | {"validation_exact": 0.6}]})
    assert main([str(run), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out.splitlines()
    names = ["warm_up_1.png", "warm_up_1.svg", "rl.png", "rl.svg"]
    assert said[:4] == [str(tmp_path / "out" / name) for name in names]
    assert max(map(len, said[4:])) <= 80
    for name in names:
        path = tmp_path / "out" / name
        if path.suffix == ".png":
            image = matplotlib.image.imread(path)
            assert np.ptp(image[..., :3]) == 1 and image.shape[1] > 1500
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_figures_that_a_run_does_not_have_get_no_panel_and_unknown_ones_get_their_own() -> None:
    assert titles(["loss", "lr", "tokens", "seconds"]) == ["Loss", "Learning rate"]
    assert titles(["kl", "kl_std", "ratio", "ratio_std"]) == ["KL to the reference", "ratio"]
    assert titles(["validation_exact"]) == ["Exact match"]


def test_every_figure_that_grpo_logs_is_in_a_panel_that_says_what_it_is(tmp_path: Path) -> None:
    terms = ("format", "action_type", "name_present", "text_present", "name_similarity", "text_similarity", "exact")
    mixes = [f"{of}_{kind}" for of in ("sampled", "logged") for kind in ("click", "type_and_submit", "terminate")]
    others = ("self_certainty", "kl", "entropy", "malformed", "cut", "no_rationale", "groups", "reply_tokens")
    others += ("packed_share", "sampler_trainer_logprob_gap", "importance")
    figures = [*(f"reward_{term}" for term in terms), *mixes, *others, "reward_wrong_click", "sampled_commonest"]
    assert not set(titles(figures)) & set(figures)


def test_runs_lie_over_one_another_and_a_missing_step_is_no_value(tmp_path: Path) -> None:
    long, short = (run_of(tmp_path / str(n), {"sft": losses(*range(1, n + 1))}) for n in (3, 2))
    ((curves,),) = phase_curves([read_run(long), read_run(short)])
    np.testing.assert_array_equal(curves.figures["loss"], [[1, 2, 3], [1, 2, np.nan]])


def test_several_runs_are_drawn_together_though_one_lacks_a_phase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = run_of(tmp_path / "a", {"sft": losses(3.0, 1.0), "rl": losses(float("nan"), 0.5)})
    one = run_of(tmp_path / "b", {"sft": losses(5.0)})
    assert main([str(both), str(one)]) == 0
    said = capsys.readouterr().out
    assert sorted(path.name for path in (both / "curves").iterdir()) == ["rl.png", "rl.svg", "sft.png", "sft.svg"]
    losses_of_sft = next(line.split() for line in said.splitlines() if "loss" in line)
    assert losses_of_sft == ["loss", "4", "1", "(2)", "1"]


def test_runs_of_different_configurations_are_lines_of_their_own_and_seeds_are_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mix = {"sampled_click": 0.4, "sampled_terminate": 0.1, "logged_click": 0.5}
    runs = [
        run_of(tmp_path / name, {"rl": [mix | {"loss": loss}] * 3}) for name, loss in (("a0", 1), ("a1", 3), ("b", 8))
    ]
    for run, seed, beta in zip(runs, (0, 1, 0), (0.1, 0.1, 0.2), strict=True):
        (run / "run.json").write_text(json.dumps({"config": {"seed": seed, "grpo": {"beta": beta}}}))
    (group,) = phase_curves([read_run(run) for run in runs])
    assert [(curves.label, curves.runs) for curves in group] == [("a0 and 1 more", 2), ("b", 1)]
    assert main([*map(str, runs), "--out", str(tmp_path)]) == 0
    figures = [line.split()[1:2] for line in capsys.readouterr().out.splitlines() if line.strip().startswith("loss")]
    assert figures == [["2"], ["8"]]
    drawing = (tmp_path / "rl.svg").read_text()
    assert all(f"<!-- {text} -->" in drawing for text in ("a0 and 1 more", "b"))
    plots = {panel.title: svg for panel, svg in embed_panels(group)}
    click = next(svg for title, svg in plots.items() if title.endswith(": click"))
    assert "b: from 40 to 40" in click and "b, logged: from 50 to 50" in click
    (lines,) = re.findall(r'data-lines="([^"]*)"', plots["Loss"])
    assert [(name, [point[2:] for point in points]) for name, points in json.loads(unescape(lines))] == [
        ("a0 and 1 more", [[1, 2], [2, 2], [3, 2]]),
        ("b", [[1, 8], [2, 8], [3, 8]]),
    ]


def test_a_run_that_was_killed_or_is_still_going_on_can_be_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path / "run", {"sft": losses(3.0, 2.0)})
    with (run / "metrics.jsonl").open("a") as stream:
        stream.write('{"phase": "sft", "ste')
    before = (run / "metrics.jsonl").read_bytes()
    assert main([str(run)]) == 0
    assert "1 line of metrics.jsonl cannot be read" in capsys.readouterr().out
    assert (run / "metrics.jsonl").read_bytes() == before


def test_a_collapse_and_a_phase_that_learns_from_nothing_are_warned_of(tmp_path: Path) -> None:
    rows = [COLLAPSED | {"cut": 0.5, "groups": 10, "groups_used": 0}] * COLLAPSE_STEPS
    found = "\n".join(warnings_of(read_run(run_of(tmp_path / "run", {"rl": rows}))))
    assert "collapsed onto 'click'" in found
    assert "cut by max_new_tokens" in found
    assert "under 10% of the groups" in found


def test_a_policy_that_answers_everything_with_one_action_has_collapsed() -> None:
    step = {"sampled_click": 0.5, "logged_click": 0.5, "sampled_commonest": 0.99, "logged_commonest": 0.2}
    assert "one same action" in describe_collapse([step] * COLLAPSE_STEPS)
    assert not describe_collapse([step] * (COLLAPSE_STEPS - 1) + [step | {"sampled_commonest": 0.9}])


@pytest.mark.parametrize(
    ("words", "message"),
    [(["nowhere"], "it has no metrics.jsonl"), ([], "RUN"), (["--outt", "x"], "--out")],
)
def test_a_wrong_call_is_one_clear_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said
    assert words == ["--outt", "x"] or len(said.strip().splitlines()) == 1  # a wrong flag is explained by tyro's box


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train.show.drawing", "train.show.plot_style"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([str(run_of(tmp_path / "run", {"sft": losses(1.0)}))]) == 2
    assert "pip install 'shop-r1[report]'" in capsys.readouterr().err
