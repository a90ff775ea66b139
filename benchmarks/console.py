"""Runs the programs of all packages by one command; `python -m` runs each too.

  shop-r1 train --store demo --out runs/first
  shop-r1 rank --agents random,runs/first/shop_r1 --out runs/board
  shop-r1 report runs/board

--help of a command shows its main flags, --help-all explains every one.
--version prints the version.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module, metadata

# For each name the module and the first arguments that it stands for, and a summary; "" is that of replay_sessions.
PROGRAMS = {
    "train": ("agents.llm_grpo.train", "Train an LLM policy: SFT, GRPO, and a table on held-out users."),
    "rank": ("benchmarks.leaderboard", "Rank agents on the logged steps of a split."),
    "verify": ("benchmarks.leaderboard verify", "Recompute a leaderboard or a run from its replies."),
    "compare": ("benchmarks.leaderboard compare", "Compare two agents, step by step."),
    "submit": ("benchmarks.leaderboard submit", "Verify a leaderboard and record its metrics."),
    "report": ("benchmarks.report", "Write a run or a leaderboard as one HTML page."),
    "sweep": ("benchmarks.sweep", "Make a file's runs, or a paper's table, over seeds; one table of all."),
    "generate": ("replay_sessions generate", ""),
    "import": ("replay_sessions import", ""),
    "show": ("replay_sessions show", ""),
    "check": ("replay_sessions check", ""),
    "erase": ("replay_sessions erase", ""),
    "record": ("replay_sessions collect", ""),
    "shop": ("replay_sessions shop", ""),
    "export": ("replay_sessions export", ""),
    "ab": ("benchmarks.ab", "Predict with agents what a change of the demo shop does."),
    "ab pages": ("benchmarks.ab.pages", "Predict with agents what a change of any shop's pages does."),
    "rationales": ("agents.rationales", "Write the rationales that a store lacks."),
    "serve": ("shop_env.serving", "Serve the environment to other tools."),
    "agents": ("agents", "List, write and check agents."),
    "new": ("agents new", "Write a reward, metric, agent or importer to begin with."),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code (see command_line.py)."""
    try:
        return _main(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # raised before a command handles it
        sys.stderr.write("stopped\n")
        return 130


def _main(argv: Sequence[str]) -> int:
    # Imported here, so that Ctrl-C during the import prints one line too.
    from replay_sessions.__main__ import COMMANDS  # noqa: PLC0415
    from replay_sessions.foundation.command_line import choose, run_command  # noqa: PLC0415
    from replay_sessions.foundation.packages import DISTRIBUTION, check_packages  # noqa: PLC0415

    if " ".join(argv[:2]) in PROGRAMS:
        argv = [" ".join(argv[:2]), *argv[2:]]

    def run() -> int:
        if argv[:1] == ["--version"]:
            sys.stdout.write(f"{DISTRIBUTION} {metadata.version(DISTRIBUTION)}\n")
            return 0
        summaries = {name: summary or COMMANDS[path.split()[1]] for name, (path, summary) in PROGRAMS.items()}
        name, arguments = choose("command", summaries, argv, program=DISTRIBUTION, text=__doc__)
        check_packages()
        return _call(name, arguments)

    return run_command(run)


def _call(name: str, argv: Sequence[str]) -> int:
    path, *first = PROGRAMS[name][0].split()
    module = import_module(path)
    if hasattr(module, "__path__"):  # a package
        module = import_module(f"{path}.__main__")
    main: Callable[[Sequence[str]], int] = module.main
    return main([*first, *argv])
