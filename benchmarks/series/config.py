"""The file of a series: who is asked about what, and which leaderboards that makes.

    series.toml ─► runs × stores × seeds × draws ─► boards: one leaderboard for each store, settings and draw

A table of the series holds what may be compared: the boards of one store under the same settings. A `{seed}` in an
agent or a store stands for each of a run's seeds: policies trained on several seeds are one row.
"""

import tomllib
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agents.registry import parse_spec
from benchmarks.leaderboard.ranking import LeaderboardConfig, agent_texts
from replay_sessions.foundation.config_errors import what_is_wrong
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from shop_env.evaluation.log import folder_name

SEED = "{seed}"
NOT_SETTINGS = ("agents", "store", "out", "fresh")  # keys of a leaderboard that a series fills in


class SeriesRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Agents that are asked alike.

    Attributes:
        agents: As a leaderboard's --agents; `{seed}` stands for each seed.
        stores: As its --store; likewise.
        seeds: Of the training; an agent without `{seed}` is asked once on a store without it.
        draws: How often each agent is asked, with other seeds of its sampling.
        settings: Further keys of a leaderboard, over those of the series.
    """

    agents: tuple[str, ...]
    stores: tuple[str, ...] = ("demo",)
    seeds: tuple[int, ...] = ()
    draws: int = 1
    settings: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise BadConfig(f"draws is {self.draws}; it must be 1 or more")
        if len(set(self.seeds)) < len(self.seeds):
            raise BadConfig(f"seeds are {', '.join(map(str, self.seeds))}; give each once")
        for text in agent_texts(self.agents):
            if SEED in parse_spec(text).label:
                raise BadConfig(f"agent '{text}' is one of several seeds: give it a label, LABEL={text}")
        holds_seed = any(SEED in text for text in (*self.agents, *self.stores))
        if holds_seed and not self.seeds:
            raise BadConfig(f"an agent or a store holds {SEED}, but the run has no seeds, such as seeds = [0, 1, 2]")
        if self.seeds and not holds_seed:
            raise BadConfig(f"the run has seeds, but no agent and no store holds {SEED}; for other draws give draws")


class Series(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file.

    Attributes:
        out: The folder of all leaderboards and of series.json and series.md.
        settings: Keys of a leaderboard that hold for all runs, such as sessions or context.
        runs: Who is asked.
        compare: Pairs of labels whose difference is told, in every table that has both.
    """

    out: str
    runs: tuple[SeriesRun, ...]
    settings: dict[str, Any] = {}
    compare: tuple[tuple[str, str], ...] = ()


class TableKey(NamedTuple):
    """What the rows of one table have in common: the store, as the file writes it, and the settings, as JSON."""

    store: str
    settings: str


class Place(NamedTuple):
    """Where replies of a row lie: an entry of a board, of one seed and draw; seed None where it is of all."""

    table: TableKey
    label: str
    seed: int | None
    draw: int
    entry: str


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """One leaderboard of the series."""

    config: LeaderboardConfig
    places: list[Place]


def read_series(file: Path) -> Series:
    """The series of a TOML file.

    Raises:
        BadConfig: It cannot be read, a key does not exist, or a value does not fit.
    """
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        series = msgspec.convert(table, Series)
    except OSError as error:
        raise BadConfig(f"'{file}' cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{file}' is no valid TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise BadConfig(f"'{file}': {what_is_wrong(error, Series)}") from error
    if not series.runs:
        raise BadConfig(f"'{file}' has no [[runs]]: give the agents to evaluate, a table for each run")
    return series


def boards_of(series: Series, out: Path) -> list[Board]:
    """The leaderboards that a series is made of, in the order of the file."""
    boards: dict[tuple[str, str, int], Board] = {}
    for run in series.runs:
        settings = _settings(_merged(series.settings, run.settings))
        for place, store, text in _places(run, msgspec.json.encode(settings, order="sorted").decode()):
            key = (store, place.table.settings, place.draw)
            board = boards.get(key) or Board(config=_leaderboard(settings, store, place.draw, out), places=[])
            if text in board.config.agents:  # another run asks for it too
                continue
            if any(place.entry == other.entry for other in board.places):
                raise BadConfig(f"two agents on store '{store}' are labelled '{place.entry}': give each a LABEL=")
            agents = msgspec.structs.replace(board.config, agents=(*board.config.agents, text))
            boards[key] = Board(config=agents, places=[*board.places, place])
    labels = {place.label for board in boards.values() for place in board.places}
    for label in (label for pair in series.compare for label in pair if label not in labels):
        raise BadConfig(f"compare names '{label}', which is no agent of a run. {did_you_mean(label, labels)}")
    return list(boards.values())


def _merged(settings: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run over those of the series; of a table such as context its keys, one by one."""
    tables = {name: {**settings[name], **over[name]} for name in settings.keys() & over if isinstance(over[name], dict)}
    return {**settings, **over, **tables}


def _places(run: SeriesRun, settings: str) -> Iterator[tuple[Place, str, str]]:
    """Each entry of a run with the store that it is asked about, and the agent as a leaderboard is given it."""
    for draw in range(run.draws):
        for store in run.stores:
            for text in agent_texts(run.agents):
                label = parse_spec(text).label
                seeds: tuple[int | None, ...] = run.seeds if SEED in store or SEED in text else (None,)
                for seed in seeds:
                    entry, filled = label, text
                    if SEED in text:
                        entry = f"{label} seed {seed}"
                        filled = f"{entry}={_filled(text.removeprefix(f'{label}='), seed)}"
                    yield Place(TableKey(store, settings), label, seed, draw, entry), _filled(store, seed), filled


def _filled(text: str, seed: int | None) -> str:
    return text if seed is None else text.replace(SEED, str(seed))


def _settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """Every key of a leaderboard that is not the series' own, with its value."""
    for name in table.keys() & NOT_SETTINGS:
        raise BadConfig(f"settings.{name}: a series fills in {', '.join(NOT_SETTINGS)} itself")
    try:
        config = msgspec.convert({**table, "agents": ["random"], "out": "."}, LeaderboardConfig)
    except msgspec.ValidationError as error:
        raise BadConfig(f"settings: {what_is_wrong(error, LeaderboardConfig)}") from error
    return {name: value for name, value in msgspec.to_builtins(config).items() if name not in NOT_SETTINGS}


def _leaderboard(settings: Mapping[str, Any], store: str, draw: int, out: Path) -> LeaderboardConfig:
    digest = blake2b(msgspec.json.encode(settings, order="sorted"), digest_size=3).hexdigest()
    folder = out / f"{folder_name(store)}-{digest}" / f"draw{draw}"
    return msgspec.convert(
        {**settings, "seed": settings["seed"] + draw, "agents": [], "store": store, "out": str(folder)},
        LeaderboardConfig,
    )
