"""Does the reward pay spam, and would GRPO end there?

  python -m benchmarks.studies.reward_hacking --out runs/spam
  python -m benchmarks.studies.reward_hacking --store my/store --out runs/spam
  python -m benchmarks.studies.reward_hacking --train --out runs/spam
  python -m benchmarks.studies.reward_hacking --train --dry-run --out runs/spam

Evaluates trivial policies (always terminate, the first element, the page's
commonest name, an invented one, the prompt, …) at every scored step of a store:
what each reward pays them, beside what they are worth. Then, exactly and
without training, in a state in which the shopper terminates with a given
chance: from which chance on terminating is paid most, and where GRPO ends, over
DARS, thresholds, rewards and mixes of actions. Takes two minutes.

--train adds GRPO that starts from spam: a tiny model is taught to terminate (or to
click the first element) and trained on the real logs from there, under each
reward and seed. It can be stopped and called again; finished runs are not repeated.

OUT holds hacking.json, hacking.md (tables) and pictures. Exit codes: 0 done,
2 the call was wrong, 130 stopped.
"""

import sys
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.studies.reward_hacking.arithmetic import compute_arithmetic
from benchmarks.studies.reward_hacking.disagreements import find_disagreements
from benchmarks.studies.reward_hacking.earnings import collect_answers, measure_store
from benchmarks.studies.reward_hacking.tables import (
    build_arithmetic_tables,
    build_markdown,
    build_store_tables,
    build_training_tables,
)
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import BadConfig, check_at_least, did_you_mean
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import print_results
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.reward import REWARD_PRESETS

SPAM = ("always_terminate", "first_element")  # of policies.py: what a model can be taught to do always


class Hacking(Record):
    """Measures rewards by trivial policies.

    Attributes:
        out: Where hacking.json, hacking.md and the pictures go, and the runs of --train.
        store: A session store's folder, or demo.
        split: Whose sessions are evaluated.
        sessions: The first so many of them; 0: all.
        agents: Agents for comparison; None: random, majority, repeat_last, copy_match and, on the demo shop, oracle.
        resolution: Number of beliefs, evenly between 0 and 1; a third as many along a diagram's side.
        seed: Of agents that sample.
        train: Also train: GRPO that starts from spam.
        dry_run: With --train: print what would be trained, and do nothing.
        spam: What the model is taught to do always: always_terminate, first_element.
        share: The share of spam among the taught replies; the others are as logged.
        rewards: The rewards that GRPO is run with.
        seeds: Of the trainings.
        preset: The learner: a preset of agents.llm_grpo.train, or a .toml FILE.
    """

    out: Path
    store: str = "demo"
    split: Split = "test"
    sessions: int = 300
    agents: tuple[str, ...] | None = None
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
        check_at_least(0, sessions=self.sessions)
        check_at_least(9, resolution=self.resolution)
        if not 0 < self.share <= 1:
            raise BadConfig(f"--share is {self.share}; it must be above 0 and at most 1.")
        if self.dry_run and not self.train:
            raise BadConfig("--dry-run prints what --train would train; give --train too.")
        choices: dict[str, Any] = {"spam": SPAM, "rewards": REWARD_PRESETS, "seeds": self.seeds}
        for flag, allowed in choices.items():
            values = getattr(self, flag)
            for name in values:
                if name not in allowed:
                    raise BadConfig(f"--{flag} names {name!r}. {did_you_mean(name, allowed)}")
            if not values or len(set(values)) < len(values):
                text = " ".join(map(str, values)) or "nothing"
                raise BadConfig(f"--{flag} is {text}; give at least one, each of them once.")


def _run(options: Hacking) -> int:
    with requires_extra("report"):
        from benchmarks.studies.reward_hacking.plots import draw_all  # noqa: PLC0415 - matplotlib may be missing
    store, out = SessionStore.open(options.store), options.out
    training = None
    if options.train:
        with requires_extra("train"):
            from benchmarks.studies.reward_hacking.training import Training  # noqa: PLC0415 - torch may be missing
        training = Training(store, out / "training", options.preset, options.spam, options.share, options.rewards,
                            options.seeds)  # fmt: skip
        plan = training.plan()  # a wrong preset is an error now, not at the end
        if options.dry_run:
            print("\n".join(plan))
            return 0
    out.mkdir(parents=True, exist_ok=True)
    limit = options.sessions or None
    answers = collect_answers(store, options.split, references=options.agents, max_sessions=limit, seed=options.seed)
    record, guesses = measure_store(store, options.split, answers, max_sessions=limit)
    disagreements = find_disagreements(answers, REWARD_PRESETS)
    arithmetic = compute_arithmetic(record.mix, guesses, resolution=options.resolution)
    trained = training.run() if training is not None else None
    tables = [*build_store_tables(record, disagreements, arithmetic), *build_arithmetic_tables(arithmetic)]
    tables += build_training_tables(trained) if trained is not None else []
    pictures = [path.name for path in draw_all(record, disagreements, arithmetic, trained, out)]
    parts = {
        "store": msgspec.to_builtins(record) | {"disagreements": disagreements},
        "arithmetic": arithmetic,
        "training": trained,
        "provenance": provenance(msgspec.to_builtins(options, enc_hook=str), store=store, seed=options.seed),
    }
    write_results(out, "hacking", parts, build_markdown(tables, pictures))
    print_results(*tables)
    print(f"written: {out / 'hacking.json'}, hacking.md, {len(pictures)} pictures")
    return 0


main = command(Hacking, _run)

if __name__ == "__main__":
    sys.exit(main())
