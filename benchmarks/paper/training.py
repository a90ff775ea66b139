"""What a table needs trained, and the records of its rows: one run of the training command for each seed and recipe.

    OUT/store0                       seed 0's demo shop, where no store is given
    OUT/shop_r1/seed0                its run for all tables of Shop-R1: run.json, checkpoints, steps/*.jsonl
    OUT/customer_r1/seed0            …of Customer-R1
    OUT/customer_r1-smaller_model/seed0     rows that are trained otherwise

A run has the phases of every table that was asked for so far (`agents.llm_grpo.train --extend`): what two tables share
is trained and asked once. A run of another preset, store or flags is refused before anything is trained.
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.presets import load_preset
from agents.llm_grpo.row_names import agent_file_name, decodings_of, record_file
from agents.llm_grpo.run_options import prepare
from agents.registry import parse_spec
from benchmarks.paper.published import PaperTable, Variant
from benchmarks.training_processes import demo_store_of_seed, run_measured
from replay_sessions.errors import BadConfig, BadSession, ShopR1Error
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from replay_sessions.store.locks import working_alone_in
from shop_env.metrics import StepRecord

__all__ = ["Asked", "SeedRun", "planned_runs", "read_records", "train"]


@dataclass(frozen=True)
class Asked:
    """What decides a run besides the table.

    Attributes:
        store: A store for all seeds; None: the preset's, or a demo shop for each seed.
        sessions: Of the test split; None: as many as the preset says.
        smaller_model: What takes the place of a model that is given, in rows of a smaller one.
        training: Further flags of agents.llm_grpo.train.
    """

    preset: str
    seeds: tuple[int, ...]
    out: Path
    store: str | None = None
    sessions: int | None = None
    smaller_model: str | None = None
    training: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeedRun:
    """The run that has the rows of one recipe and seed.

    Attributes:
        config: Its configuration, with the phases that it has already, or is to have.
        phases: Those of them that the table shows.
        words: Of the training command.
        flags: Those of them that make it a variant of the preset.
        store: Whose sessions it learns from.
    """

    seed: int
    folder: Path
    config: TrainConfig
    phases: tuple[str, ...]
    words: tuple[str, ...]
    flags: tuple[str, ...]
    store: Path

    def file(self, row: str) -> Path:
        """Where the records of a row lie (agents/llm_grpo/row_names.py)."""
        return self.folder / record_file(row)

    def files(self) -> list[Path]:
        """The records of everything that the table shows."""
        rows = [name.file_name(phase) for phase in self.phases for name in decodings_of(self.config, phase)]
        return [self.file(row) for row in [*self.agents().values(), *rows]]

    def agents(self) -> dict[str, str]:
        """The agents beside the policies: their labels, and the rows that `file` asks for."""
        return {parse_spec(agent).label: agent_file_name(agent) for agent in self.config.evaluation.agents}

    def is_done(self) -> bool:
        """Whether nothing is left to be trained or asked for the table."""
        told = {self.folder / file for file in (self.results() or {}).get("records", {}).values()}
        return all(file in told and file.exists() for file in self.files())

    def finished(self) -> dict[str, Any]:
        """Its phases that are trained."""
        return _json(self.folder / "phases.json") or {}

    def provenance(self) -> dict[str, Any]:
        """Its run.json without the configuration, which stands once in the table's."""
        record: dict[str, Any] = _json(self.folder / "run.json")
        return {name: value for name, value in record.items() if name != "config"}

    def results(self) -> dict[str, Any] | None:
        """Its results.json, once it has been at its end; of the tables until then."""
        found: dict[str, Any] | None = _json(self.folder / "results.json")
        return found

    def cost(self) -> dict[str, Any] | None:
        """Wall time and peak memory of all calls together."""
        found: dict[str, Any] | None = _json(self.folder / "cost.json")
        return found


def planned_runs(table: PaperTable, asked: Asked) -> dict[str | None, list[SeedRun]]:
    """The runs of a table by variant, one a seed; nothing is written.

    Raises:
        BadConfig: A flag is wrong, or a folder holds a run that was made otherwise.
    """
    return {variant: [_seed_run(table, variant, seed, asked) for seed in asked.seeds] for variant in table.runs()}


def _seed_run(table: PaperTable, variant: str | None, seed: int, asked: Asked) -> SeedRun:
    folder = asked.out / "-".join([table.paper, *([variant] if variant else [])]) / f"seed{seed}"
    store = _store_path(seed, asked)
    words = ["--preset", asked.preset, "--rows", table.rows_file, "--only", *table.phases(variant)]
    words += ["--store", str(store), "--seed", str(seed), "--out", str(folder)]
    if asked.sessions is not None:
        words += ["--evaluation.sessions", str(asked.sessions)]
    words += asked.training
    flags: list[str] = []
    if variant is not None:
        _, _, plain = prepare([*words, "--dry-run"])
        flags = _variant_flags(variant, table.variants[variant], plain, asked)
    words += [*flags, "--extend"]
    _, _, config = prepare(words)
    run = SeedRun(seed, folder, config, tuple(table.phases(variant)), tuple(words), tuple(flags), store)
    _check_store(run)
    return run


def _store_path(seed: int, asked: Asked) -> Path:
    preset = load_preset(asked.preset)
    if asked.store is None and preset.store == "demo":
        return asked.out / f"store{seed}"
    return SessionStore.open(asked.store or preset.store).path


def _variant_flags(name: str, variant: Variant, config: TrainConfig, asked: Asked) -> list[str]:
    flags = []
    if variant.max_tokens is not None:
        share = round(variant.max_tokens * config.model.max_tokens)
        flags += ["--model.max-tokens", str(variant.max_tokens_of.get(Path(asked.preset).stem, share))]
    if variant.width is not None and config.model.path is None:
        for size in ("hidden_size", "intermediate_size"):
            width = round(variant.width * getattr(config.model.tiny, size))
            flags += [f"--model.tiny.{size.replace('_', '-')}", str(width)]
    elif variant.width is not None:
        if asked.smaller_model is None:
            raise BadConfig(
                f"the rows of '{name}' need a model smaller than '{config.model.path}': name one by --smaller-model"
            )
        flags += ["--model.path", asked.smaller_model]
    return flags


def _check_store(run: SeedRun) -> None:
    if not (run.folder / "run.json").exists() or not run.store.exists():
        return
    begun_with = _json(run.folder / "run.json")["store"]["fingerprint"]
    now = SessionStore.open(run.store).fingerprint
    if begun_with != now:
        raise BadConfig(
            f"'{run.folder}' holds a run on another store ({begun_with[:12]}, '{run.store}' is {now[:12]}): give "
            "another --out, or the same --store."
        )


def train(run: SeedRun) -> None:
    """Trains and asks what is still to be; what is there is left as it is.

    Raises:
        BadConfig: Another call is at work on this run.
        ShopR1Error: The training has failed; it has said why.
    """
    with working_alone_in(run.folder) as held:
        if run.is_done():  # another call may have made it while this one came here
            return
        if not run.store.exists():
            demo_store_of_seed(run.store, run.seed)
        started = time.monotonic()
        peak_bytes = 0
        try:
            code, peak_bytes = run_measured(
                [sys.executable, "-m", "agents.llm_grpo.train", *run.words], held=held, quiet=True
            )
        finally:
            _add_cost(run, time.monotonic() - started, peak_bytes)
    if code:
        raise ShopR1Error(f"the run in '{run.folder}' ended with exit code {code}; what it said stands above.")


def _add_cost(run: SeedRun, wall_s: float, peak_bytes: int) -> None:
    """A run may take several calls: their times add up, the highest peak stays."""
    before = run.cost() or {"wall_s": 0.0, "peak_memory_mb": 0}
    cost = {
        "wall_s": round(before["wall_s"] + wall_s, 1),
        "peak_memory_mb": max(before["peak_memory_mb"], round(peak_bytes / 2**20)),
    }
    replace_file(run.folder / "cost.json", json.dumps(cost) + "\n")


def read_records(run: SeedRun, row: str) -> list[StepRecord]:
    """The kept records of a row.

    Raises:
        BadSession: There are none, or they cannot be read.
    """
    file = run.file(row)
    try:
        return msgspec.json.Decoder(StepRecord).decode_lines(file.read_bytes())
    except FileNotFoundError as error:
        raise BadSession(f"no records at '{file}': the same call asks again") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadSession(f"'{file}' cannot be read ({error}): take it away, and the same call asks again") from error


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise BadSession(f"'{path}' is no JSON ({error}): give another --out") from error
