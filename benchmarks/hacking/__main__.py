"""Does the reward pay what is worth nothing, and would GRPO go there?

  python -m benchmarks.hacking --out runs/hacking
  python -m benchmarks.hacking --store stores/mine --out runs/hacking
  python -m benchmarks.hacking --train --out runs/hacking
  python -m benchmarks.hacking --train --dry-run --out runs/hacking

Asks policies that know nothing (always leave, the first element, the page's
commonest name, an invented one, the prompt, …) about every scored step of a
store and tells what every reward pays them, beside what they are worth. Then,
exactly and without training, in a state in which the shopper leaves with a
given chance: from which chance on leaving is paid most, and where GRPO ends,
over DARS, thresholds, rewards and mixes of actions. Takes two minutes.

--train adds GRPO begun from spam: a tiny model is taught to leave (or to click
the first element) and trained on the real logs from there, under each reward
and seed. It can be stopped and called again; what is finished is kept.

OUT holds hacking.json, hacking.md (the answer first) and pictures. Exit codes:
0 done, 2 the call was wrong, 130 stopped.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents.results import results_console
from benchmarks.hacking.answer import answer
from benchmarks.hacking.record import arithmetic, of_store
from benchmarks.hacking.tables import markdown
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.plugins import load_with_extra
from replay_sessions.provenance import provenance
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from shop_env.reward import REWARD_PRESETS

__all__ = ["Hacking", "main"]

PROGRAM = "python -m benchmarks.hacking"
SPAM = ("always_terminate", "first_element")  # of policies.py: what a model can be taught to do always


class Hacking(msgspec.Struct, frozen=True, kw_only=True):
    """Measures rewards by policies of no worth.

    Attributes:
        out: Where hacking.json, hacking.md and the pictures go, and the runs of --train.
        store: A session store's folder, or demo.
        split: Whose sessions are asked about.
        sessions: The first so many of them; 0: all.
        agents: Who stands beside the policies that know nothing; None: random, majority, repeat_last, copy_match and,
            on the demo shop, oracle.
        samples: Of each bootstrap over users.
        resolution: So many beliefs are looked at, evenly between 0 and 1, and a third as many along a diagram's side.
        seed: Of agents that draw.
        train: Train, too: GRPO begun from spam.
        dry_run: With --train: tell what would be trained, and do nothing.
        spam: What the model is taught to do always: always_terminate, first_element.
        share: Of the taught replies, so many are spam; the others are as logged.
        rewards: The rewards that GRPO is run with.
        seeds: Of the trainings.
        preset: The learner: a preset of agents.llm_grpo.train, or a .toml FILE.
    """

    out: Path
    store: str = "demo"
    split: Split = "test"
    sessions: int = 300
    agents: tuple[str, ...] | None = None
    samples: int = 1000
    resolution: int = 99
    seed: int = 0
    train: bool = False
    dry_run: bool = False
    spam: tuple[str, ...] = SPAM
    share: float = 0.9
    rewards: tuple[str, ...] = ("shop_r1", "no_dars", "binary")
    seeds: tuple[int, ...] = (1, 2, 3)
    preset: str = "tiny_cpu"

    def __post_init__(self) -> None:
        if self.sessions < 0:
            raise BadConfig(f"--sessions is {self.sessions}; give how many sessions are asked about, or 0 for all.")
        if self.samples < 1:
            raise BadConfig(f"--samples is {self.samples}; it must be at least 1.")
        if self.resolution < 9:
            raise BadConfig(f"--resolution is {self.resolution}; at least 9 beliefs tell ends apart.")
        if not 0 < self.share <= 1:
            raise BadConfig(f"--share is {self.share}; it must be above 0 and at most 1.")
        if self.dry_run and not self.train:
            raise BadConfig("--dry-run tells what --train would train; give --train too.")
        for flag, given, known in (("spam", self.spam, SPAM), ("rewards", self.rewards, tuple(REWARD_PRESETS))):
            for name in given:
                if name not in known:
                    raise BadConfig(f"--{flag} names {name!r}. {did_you_mean(name, known)}")
        for flag, values in (("spam", self.spam), ("rewards", self.rewards), ("seeds", self.seeds)):
            if not values or len(set(values)) < len(values):
                said = " ".join(map(str, values)) or "nothing"
                raise BadConfig(f"--{flag} is {said}; give at least one, each of them once.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: _run(parse_options(Hacking, words, program=PROGRAM, text=__doc__)))


def _run(given: Hacking) -> int:
    draw_all = load_with_extra("benchmarks.hacking.plots:draw_all", "report")
    store = SessionStore.open(given.store)
    planned = list(_training("plan", given, store)) if given.train else []  # a wrong preset is told now, not at the end
    if given.dry_run:
        print("\n".join(planned))
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    found, guesses = of_store(
        store,
        given.split,
        references=given.agents,
        max_sessions=given.sessions or None,
        seed=given.seed,
        samples=given.samples,
    )
    exact = arithmetic(found.mix, guesses, resolution=given.resolution)
    trained = _training("train", given, store) if given.train else None
    said = answer(found, exact)
    plots = draw_all(found, exact, given.out)
    training_lines: list[str] = []
    if trained is not None:
        training_lines = load_with_extra("benchmarks.hacking.trained:lines", "train")(trained)
        plots += load_with_extra("benchmarks.hacking.plots_trained:draw", "report")(trained, given.out)
    record = {
        "answer": said,
        "store": found,
        "arithmetic": exact,
        "training": trained,
        "provenance": provenance(_settings(given), store=store, seed=given.seed),
    }
    replace_file(given.out / "hacking.json", msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
    text = markdown(said, found, exact, [path.name for path in plots], training_lines)
    replace_file(given.out / "hacking.md", text.encode())
    console = results_console()
    for sentence in [*said, *training_lines]:
        console.print(sentence, markup=False, highlight=False)
    print(f"written: {given.out / 'hacking.json'}, hacking.md, {len(plots)} pictures")
    return 0


def _training(function: str, given: Hacking, store: SessionStore) -> Any:
    called = load_with_extra(f"benchmarks.hacking.training:{function}", "train")
    return called(
        store,
        given.out / "training",
        preset=given.preset,
        spam=given.spam,
        share=given.share,
        rewards=given.rewards,
        seeds=given.seeds,
    )


def _settings(given: Hacking) -> dict[str, Any]:
    settings: dict[str, Any] = msgspec.to_builtins(msgspec.structs.asdict(given), enc_hook=str)
    return {name: value for name, value in settings.items() if name not in ("out", "dry_run")}


if __name__ == "__main__":
    sys.exit(main())
