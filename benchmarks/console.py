"""One command for the programs of all packages; `python -m` runs each too.

  shop-r1 train --store demo --out runs/first
  shop-r1 rank --agents random,runs/first/shop_r1 --out runs/board
  shop-r1 report runs/board
  source <(shop-r1 completion)

--help of a command shows its main flags, --help-all explains every one.
--version prints the version.
"""

import contextlib
import io
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, metadata

from replay_sessions.__main__ import COMMANDS as STORE_COMMANDS
from replay_sessions.foundation.command_line import choose, naming, run_command
from replay_sessions.foundation.packages import DISTRIBUTION, ROOT, check_packages

# Name -> the module and the words after it that it stands for, and a summary.
PROGRAMS = {
    "train": ("agents.llm_grpo.train", "Train an LLM policy: SFT, GRPO, and a table on held-out users."),
    "rank": ("benchmarks.leaderboard", "Rank agents on the logged steps of a split."),
    "verify": ("benchmarks.leaderboard verify", "Recompute a leaderboard or a run from its replies."),
    "compare": ("benchmarks.leaderboard compare", "Compare two agents, step by step."),
    "report": ("benchmarks.report", "Write a run or a leaderboard as one HTML page."),
    "curves": ("train.show", "Draw the curves of training runs."),
    "series": ("benchmarks.series", "Fill, pool and compare the leaderboards of one file."),
    "seeds": ("benchmarks.seeds", "Train on several seeds, with one table over all."),
    **{name: (f"replay_sessions {name}", summary) for name, summary in STORE_COMMANDS.items() if name != "collect"},
    "record": ("replay_sessions collect", STORE_COMMANDS["collect"]),
    "ab": ("benchmarks.ab", "Ask agents what a change of the demo shop would do."),
    "ab pages": ("benchmarks.ab.pages", "The same of the logged pages of any shop."),
    "coefficients": ("benchmarks.coefficients", "Report what prices and ratings do to the choices of a store."),
    "rationales": ("agents.rationales", "Write the rationales that a store lacks."),
    "paper": ("benchmarks.paper", "Train a paper's table and print the published one beside it."),
    "serve": ("shop_env.serving", "Serve the environment to other tools."),
    "agents": ("agents", "List, write and check agents."),
    "new": ("agents new", "Write a reward, metric, agent or importer to begin with."),
}
COMPLETION = """\
[ -n "$ZSH_VERSION" ] && autoload -U +X bashcompinit && bashcompinit
_shop_r1() {{
  local words=""
  case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _shop_r1 shop-r1
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; exit codes as in command_line.py."""
    words = sys.argv[1:] if arguments is None else arguments
    with naming({f"python -m {program}": f"{DISTRIBUTION} {name}" for name, (program, _) in PROGRAMS.items()}):
        return run_command(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    summaries = {name: summary for name, (_, summary) in PROGRAMS.items()}
    if " ".join(words[:2]) in PROGRAMS:
        words = [" ".join(words[:2]), *words[2:]]
    summaries["completion"] = "Print a script by which bash and zsh complete this command."
    if words[:1] == ["--version"]:
        sys.stdout.write(f"{DISTRIBUTION} {metadata.version(DISTRIBUTION)}\n")
        return 0
    name, rest = choose("command", summaries, words, program=DISTRIBUTION, text=__doc__)
    check_packages()
    if name == "completion":
        sys.stdout.write(completion_script())
        return 0
    return _call(name, rest)


def _call(name: str, words: Sequence[str]) -> int:
    module, *first = PROGRAMS[name][0].split()
    is_package = ROOT.joinpath(*module.split(".")).is_dir()
    main: Callable[[Sequence[str]], int] = import_module(f"{module}.__main__" if is_package else module).main
    return main([*first, *words])


def completion_script() -> str:
    """A script for bash and zsh, with the subcommands and flags of every command."""
    cases = {"1:*": [*(name for name in PROGRAMS if " " not in name), "completion"]}
    for name in PROGRAMS:
        first, *second = name.split()
        cases.setdefault(f"*:{first}", []).extend([*second, *_words_of_help(name)])
    return COMPLETION.format(
        cases="\n".join(f'    {case}) words="{" ".join(words)}" ;;' for case, words in cases.items())
    )


def _words_of_help(name: str) -> list[str]:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        _call(name, ["--help-all"])
    return re.findall(r"^  (--[\w.-]+|[a-z]\w*(?=  ))", text.getvalue().partition("usage:")[2], re.MULTILINE)
