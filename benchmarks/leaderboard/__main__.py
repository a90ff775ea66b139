"""Ranks agents on the logged steps of a split; the commands `verify`, `compare` and `submit` take the result.

  shop-r1 rank --agents random,oracle --out runs/first
  shop-r1 rank --agents random my.py:MyAgent --out runs/m
  shop-r1 rank --agents "T=0.6=runs/demo/sft" \\
    "greedy=runs/demo/sft?temperature=0" --out runs/sft
  shop-r1 rank --agents random --store stores/mine \\
    --split validation --sessions 100 --out runs/x
  shop-r1 rank --agents oracle --likelihood --out runs/l
  shop-r1 rank --agents oracle \\
    --context.persona shuffled --out runs/shuffled

`verify` checks that the metrics follow from the replies and, with --rerun, that the
replies are the agents' own. `compare` prints the paired difference of two agents.
Both take a leaderboard or a training run.

  shop-r1 verify runs/first
  shop-r1 verify runs/first --rerun 20
  shop-r1 compare runs/first random oracle
  shop-r1 compare runs/first oracle oracle \\
    --second-folder runs/shuffled --across context

`submit` verifies a leaderboard or a training run and records its metrics:

  shop-r1 submit runs/first baselines/mine --rerun 20

Each reply is saved when it arrives, and no step is run twice (--fresh runs all again). Another reward, other metrics
or fewer sessions are computed from the saved replies. Exit codes: 0 done, 1 verify found a mismatch or an agent gave no
reply at all, 2 the call or its input was wrong.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import tyro

from agents.catalogue import is_own
from benchmarks.leaderboard.compare import Compare, Folder, compare, compare_table, minimum_differences
from benchmarks.leaderboard.ranking import LeaderboardConfig, notes_of, run_leaderboard
from benchmarks.leaderboard.verify import submit, verify
from replay_sessions.foundation.command_line import parse_options, program_of
from replay_sessions.foundation.errors import BadConfig, check_at_least, did_you_mean
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import print_results
from replay_sessions.store import SessionStore
from shop_env.evaluation.results import intervals_text, results_table
from shop_env.evaluation.results_file import EvaluationLog, read_log

PROGRAM = "shop-r1 rank"
MISMATCHES_SHOWN = 10


class Verify(Record):
    """Recomputes records, metrics and table from the steps and the store, and compares them with the folder.

    Attributes:
        folder: The --out of a leaderboard or of a training run.
        store: The store that it was run on, `demo` or a path; it may be omitted for `demo`.
        rerun: Run each agent again at this number of steps. Only this finds replies that are not the agent's own.
        trust: Agents and FILE.py:FUNCTION that the folder names and that may be run.
    """

    folder: Folder
    store: str | None = None
    rerun: int = 0
    trust: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_at_least(0, rerun=self.rerun)


class Submit(Verify):
    """Verifies an evaluation and, if everything matches, records its metrics.

    Attributes:
        name: The name of the record, such as baselines/demo. RESULTS/baselines/demo.json and demo.md are written.
        results: The folder of recorded results.
        steps: Record the steps too, compressed; the record is then the folder RESULTS/NAME, which `verify` takes.
    """

    name: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="NAME")]]
    results: Path = Path("benchmarks/results")
    steps: bool = False


def _run(argv: Sequence[str]) -> int:
    # Ranking is the most common use, so it needs no subcommand.
    name = argv[0] if argv else ""
    if name in COMMANDS:
        options, body = COMMANDS[name]
        return body(parse_options(options, argv[1:], program=f"shop-r1 {name}"))
    if get_close_matches(name, COMMANDS, n=1):
        raise BadConfig(f"No command '{name}'. {did_you_mean(name, COMMANDS)} To rank agents, begin with --agents")
    return _rank(parse_options(LeaderboardConfig, argv, program=PROGRAM, text=__doc__))


def _rank(config: LeaderboardConfig) -> int:
    try:
        log = run_leaderboard(config)
    except KeyboardInterrupt:
        if config.fresh or not (config.folder / "agents").exists():
            raise
        raise KeyboardInterrupt("the same call goes on from the steps that are in the folder") from None
    title = f"{config.store}, split {config.split}: {log.sample.text}"
    notes = [intervals_text(log.rows, log.config.reward_config, f"{config.cluster}s")]
    table = results_table(log.rows, title=title, notes=notes, sample=log.sample, metrics=log.config.metrics)
    print_results(table, *_remarks(log), f"written: {config.folder}/results.json, leaderboard.md, agents/*/steps.jsonl")
    return 1 if any(entry.row.steps == 0 for entry in log.entries) else 0


def _remarks(log: EvaluationLog) -> Iterator[str]:
    for entry in log.entries:
        if errors := entry.row.errors:
            steps = entry.row.steps + errors
            count = "all" if errors == steps else str(errors)
            yield f"{entry.label}: no reply at {count} of {steps} steps, so it is not ranked; the same call tries again"
            yield f"    the first: {entry.row.first_error}"
            if not is_own(entry.spec):
                yield f"    for the file and line: shop-r1 agents check {entry.spec.target}"
    yield from notes_of(log)
    if (ties := log.sample.ties) and not ties.are_many:  # if they are, the table says so
        yield ties.text
    if complete := [entry.label for entry in log.entries if not entry.new_steps]:
        yield f"all steps were there: {', '.join(complete)} (--fresh runs them again)"


def _verify(options: Verify) -> int:
    mismatches = verify(options.folder, _open_store(options), rerun=options.rerun, trust=options.trust)
    return _print_mismatches(mismatches, options.rerun)


def _print_mismatches(mismatches: Mapping[str, Sequence[str]], rerun: int) -> int:
    for part, lines in mismatches.items():
        indented = (f"    {line}" for line in lines[:MISMATCHES_SHOWN])
        print_results(f"{part}: {f'{len(lines)} mismatches' if lines else 'verified'}", *indented)
    if not rerun:
        print_results("whether the replies are the agents' own, only --rerun N checks")
    return 1 if any(mismatches.values()) else 0


def _submit(options: Submit) -> int:
    mismatches = submit(
        options.folder,
        options.name,
        options.results,
        _open_store(options),
        steps=options.steps,
        rerun=options.rerun,
        trust=options.trust,
    )
    code = _print_mismatches(mismatches, options.rerun)
    suffix = "" if options.steps else ".json, .md"
    print(f"recorded: {options.results / options.name}{suffix}" if code == 0 else "not recorded")
    return code


def _open_store(options: Verify) -> SessionStore:
    name = options.store or read_log(options.folder, trust=None).config.store
    if name not in ("demo", options.store):
        raise BadConfig(
            f"the folder itself names its store, '{name}': if that is the one you trust, say --store {name}"
        )
    store = SessionStore.open(name)
    print(f"store: {store.path}, fingerprint {store.fingerprint}")
    return store


def _compare(options: Compare) -> int:
    comparisons = compare(options)
    print_results(compare_table(comparisons, options), *minimum_differences(comparisons))
    return 0


COMMANDS: dict[str, tuple[type[Any], Callable[[Any], int]]] = {
    "verify": (Verify, _verify),
    "compare": (Compare, _compare),
    "submit": (Submit, _submit),
}

main = program_of(_run)

if __name__ == "__main__":
    sys.exit(main())
