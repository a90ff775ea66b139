"""Trains an LLM policy on a session store: SFT, GRPO with the paper's reward, and a table on people held out.

    python -m agents.llm_grpo.train                                             the demo shop, two CPU cores
    python -m agents.llm_grpo.train --store stores/mine --out runs/mine         your own sessions
    python -m agents.llm_grpo.train --preset tiny_cpu --set grpo.steps=20       another number for this run
    python -m agents.llm_grpo.train --resume runs/mine                          go on after a stop

Phases: sft ─► shop_r1 (GRPO from sft) and sft_longer (SFT from sft, for as long as GRPO took) ─► evaluation.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import torch

from agents.llm_grpo.config import TrainConfig, load_config, preset_names
from agents.llm_grpo.final_table import evaluate_run
from agents.llm_grpo.training_run import TrainingRun
from replay_sessions.errors import BadConfig, run_command
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from train.run_log import RunLog

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong, 130 stopped by Ctrl-C."""
    parser = _parser()
    try:
        parsed = parser.parse_args(arguments)
    except SystemExit as done:
        return int(done.code or 0)
    return run_command(lambda: _train(parsed))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"error: {message} (see `{self.prog} --help`)\n")
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m agents.llm_grpo.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        epilog="OUT holds run.json (configuration, versions, machine), metrics.jsonl, tensorboard/, results.json, "
        "results.md,\nand the checkpoints sft/, shop_r1/ and sft_longer/, each of which `make_agent` loads.",
    )
    parser.add_argument(
        "--preset",
        default="tiny_cpu",
        metavar="NAME|FILE",
        help=f"{', '.join(preset_names())}, or a .toml file (tiny_cpu)",
    )
    parser.add_argument("--store", metavar="STORE", help="a session store's folder, or 'demo' (the preset's)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the run is written (runs/PRESET-seedS)")
    parser.add_argument("--seed", type=int, metavar="S", help="the same seed gives the same run on CPU (the preset's)")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with the run in DIR, with its configuration")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one value, such as grpo.steps=50; agents/llm_grpo/config.py names them all",
    )
    return parser


def _train(parsed: argparse.Namespace) -> int:
    folder, config = _prepare(parsed)
    if config.threads:
        torch.set_num_threads(config.threads)
    store = SessionStore.open(config.store)
    _write_run_file(folder, config, store)
    with RunLog(folder) as log:
        run = TrainingRun(config, store, folder, log)
        run.train()
        evaluate_run(run)
    return 0


def _prepare(parsed: argparse.Namespace) -> tuple[Path, TrainConfig]:
    """The run's folder and configuration, new or resumed."""
    if parsed.resume:
        given = [name for name in ("store", "out", "seed") if getattr(parsed, name) is not None] + parsed.set
        if given:
            raise BadConfig(f"--resume goes on with the run's own configuration; leave out {', '.join(given)}.")
        return parsed.resume, _resumed_config(parsed.resume)
    config = load_config(parsed.preset, parsed.set, {"store": parsed.store, "seed": parsed.seed})
    folder = parsed.out or Path("runs") / f"{Path(parsed.preset).stem}-seed{config.seed}"
    if (folder / "run.json").exists():
        raise BadConfig(
            f"'{folder}' already holds a run. Go on with it by --resume {folder}, or give another folder by --out."
        )
    return folder, config


def _resumed_config(folder: Path) -> TrainConfig:
    try:
        table: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        return msgspec.convert(table["config"], TrainConfig)
    except FileNotFoundError as error:
        raise BadConfig(f"'{folder}' holds no run to go on with: it has no run.json.") from error
    except (ValueError, KeyError) as error:
        raise BadConfig(f"'{folder}/run.json' cannot be read: {error}. Start a new run.") from error


def _write_run_file(folder: Path, config: TrainConfig, store: SessionStore) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "run.json").exists():
        return
    record = provenance(msgspec.to_builtins(config), store=store, seed=config.seed)
    partial = folder / "run.json.partial"
    partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    os.replace(partial, folder / "run.json")


if __name__ == "__main__":
    sys.exit(main())
