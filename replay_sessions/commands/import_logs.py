"""Reads logs into a store.

Records that cannot be read are rejected, counted and listed in the store.

  shop-r1 import jsonl logs.jsonl.gz --out STORE
  shop-r1 import jsonl log.jsonl --mapping my.toml --out STORE
  shop-r1 import raw visits --recipe my.toml --out STORE

Each importer has its own --help.
"""

from collections.abc import Sequence
from datetime import date
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro
from rich.console import Console

from replay_sessions.commands.contents import print_contents
from replay_sessions.foundation.command_line import choose, parse_options
from replay_sessions.foundation.errors import check_at_least
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import print_results, printable
from replay_sessions.importers import IMPORTERS, importer_class
from replay_sessions.importers.cleaner import Cleaner
from replay_sessions.importers.customer_table import read_customers
from replay_sessions.importers.importer import Importer
from replay_sessions.importers.remaining_values import RemainingValues
from replay_sessions.importers.running.engines import Engine
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.private_data.customers import Customers
from replay_sessions.private_data.ner import load_ner
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.typed_texts import blank_rare_texts
from replay_sessions.store.splits import SplitBy, SplitPlan
from replay_sessions.store.work_folder import check_target

OptionsT = TypeVar("OptionsT")


class NewStore(Record):
    """The options of a new store.

    Attributes:
        out: The folder to write the store to.
        overwrite: Replace an existing store.
        split_by: Unit that stays in one split; official: the publisher's splits; date: test begins on a day.
        validation: Share for validation.
        test: Share for test.
        test_from: First day of test, with --split-by date.
    """

    out: Path
    overwrite: bool = False
    split_by: SplitBy = "user"
    validation: float = 0.1
    test: float = 0.2
    test_from: date | None = None

    @property
    def splits(self) -> SplitPlan:
        return SplitPlan(by=self.split_by, validation=self.validation, test=self.test, test_from=self.test_from)


class Import(NewStore, Generic[OptionsT]):
    """The options of `import`, which include the importer's own options.

    Attributes:
        source: The file or folder to read.
        workers: Number of processes; None: one per core if reading takes longer than starting them.
        engine: ray: use the machines of a Ray cluster that share the folder of SOURCE.
        customers: Table (CSV, parquet) of the shop's users; its columns are user_id and any others. Each value is
            removed from the sessions of its user, and the store is searched for what is left.
        rare_texts: Blank typed texts of fewer users than this number.
        ner: MODULE:FUNCTION or FILE.py:FUNCTION that finds names in a line of a page (docs/privacy.md).
        allow_found: Call the store `private_data = customers` though values of the table were found in it.
    """

    source: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="SOURCE")]]
    importer: Annotated[OptionsT, tyro.conf.arg(name="")]
    workers: int | None = None
    engine: Engine = "processes"
    customers: Path | None = None
    rare_texts: int | None = None
    ner: str | None = None
    allow_found: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, workers=self.workers)
        check_at_least(2, rare_texts=self.rare_texts)


def run(argv: Sequence[str]) -> int:
    """Runs `import` with the arguments after it."""
    program = "shop-r1 import"
    user_importer = {word: "" for word in argv[:1] if ":" in word}  # MODULE:CLASS or FILE.py:CLASS
    name, arguments = choose("importer", IMPORTERS | user_importer, argv, program=program, text=__doc__)
    importer = importer_class(name)
    options_class: Any = Import[importer.Options]  # type: ignore[name-defined]  # the importer is only known here
    text = f"{IMPORTERS.get(name) or getdoc(importer)}\n\n{importer.help()}"
    return _import(importer, parse_options(options_class, arguments, program=f"{program} {name}", text=text))


def _import(kind: type[Importer], options: Import[Any]) -> int:
    check_target(options.out, overwrite=options.overwrite)
    rows = read_customers(options.customers)
    cleaner = Cleaner(Customers(rows), load_ner(options.ner) if options.ner else None)
    remaining = RemainingValues(rows)
    importer = kind(options.source, options.importer)
    for note in importer.notes:
        Console().print(printable(note), style="dim", highlight=False, markup=False, soft_wrap=True)
    try:
        with progress_bar("importing", importer.size) as advance:
            run_import(
                importer,
                options.out,
                splits=options.splits,
                overwrite=options.overwrite,
                workers=options.workers,
                engine=options.engine,
                cleaner=cleaner,
                on_progress=advance,
            )
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("nothing is written") from stop
    if options.rare_texts is not None:
        blank_rare_texts(SessionStore.open(options.out), options.rare_texts)
    is_clean = remaining.search_store(SessionStore.open(options.out), allow_found=options.allow_found)
    print_contents(SessionStore.open(options.out))
    for line in (*importer.report, *cleaner.report(), *remaining.report()):
        print_results(f"  {line}")
    for line in importer.warnings:
        print_results(f"  warning: {line}")
    return 0 if is_clean else 1
