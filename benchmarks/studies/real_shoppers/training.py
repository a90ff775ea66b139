"""Does reinforcement learning add anything to SFT on real shoppers, and what of it is decoding?

  python -m replay_sessions import events clicks_april_june.csv.gz --mapping clothing_shop \\
    --split-by date --test-from 2008-06-01 --out runs/stores/clothing
  python -m benchmarks.seeds --seeds 0 1 2 --store runs/stores/clothing --out runs/clothing \\
    --preset benchmarks/studies/real_shoppers/policies.toml -- \\
    --sft.sessions-per-batch 16 --sft.tokens-per-batch 8000
  python -m benchmarks.series benchmarks/studies/real_shoppers/clothing_policies.toml
  python -m benchmarks.studies.real_shoppers.training boards/clothing_policies

  python -m benchmarks.seeds --seeds 101 102 103 --out runs/demo_objectives \\
    --preset benchmarks/studies/real_shoppers/policies.toml -- \\
    --rows benchmarks/studies/real_shoppers/objectives.toml --evaluation.sessions 60 --threads 1
  python -m benchmarks.seeds --seeds 0 1 2 --store runs/stores/clothing --out runs/clothing_objectives \\
    --preset benchmarks/studies/real_shoppers/policies.toml -- \\
    --rows benchmarks/studies/real_shoppers/objectives.toml --evaluation.sessions 60 --threads 1 \\
    --only sft grpo weighted_sft grpo_with_logged dpo sft_longer \\
    --sft.sessions-per-batch 16 --sft.tokens-per-batch 8000
  python -m benchmarks.series benchmarks/studies/real_shoppers/demo_objectives.toml    # and clothing_objectives.toml

compare objectives (train/objectives) in the same way.

The first three train and evaluate: SFT, SFT for GRPO's time, and GRPO with divided and undivided advantages, each
decoded in four ways; what was stopped goes on with the same call. The last one keeps the record and draws, for each
policy and decoding, the difference of exact match from greedy SFT.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Estimate, print_results
from train.show.plot_style import SERIES, Series, draw_forest

REFERENCE = "SFT greedy"
DECODINGS = ("T 1", "T 0.6", "greedy", "most probable action")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Keeps the record of a series of policies, and draws it.

    Attributes:
        folder: Of the series: it holds series.json.
        out: The folder of the record.
    """

    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    out: Path = Path("benchmarks/results/real_shoppers")


def _run(options: Options) -> None:
    try:
        text = (options.folder / "series.json").read_text(encoding="utf-8")
        table = (options.folder / "series.md").read_text(encoding="utf-8")
    except OSError as error:
        raise BadConfig(
            f"'{options.folder}' holds no finished series ({error.strerror}): run python -m benchmarks.series first"
        ) from error
    record = json.loads(text)
    series = differences(record)
    if not series:
        raise BadConfig(f"no table of '{options.folder}' compares a policy with '{REFERENCE}'")
    options.out.mkdir(parents=True, exist_ok=True)
    write_results(options.out, options.folder.name, record, table)
    groups = list(dict.fromkeys(group for each in series for group in each.estimates))
    plot = options.out / f"{options.folder.name}.png"
    draw_forest(groups, series, plot, f"exact match − that of {REFERENCE}, points; 95% intervals")
    print_results(f"written: {options.out / options.folder.name}.json, .md, .png")


def differences(record: dict[str, Any]) -> list[Series]:
    """Of exact match from the reference, in points, a series for each decoding."""
    estimates: dict[str, dict[str, Estimate]] = {decoding: {} for decoding in DECODINGS}
    for row in (row for table in record["tables"] for row in table["differences"]):
        if row["second"] != REFERENCE or row["metric"] != "exact_accuracy":
            continue
        decoding = next((each for each in DECODINGS if row["first"].endswith(f" {each}")), None)
        if decoding:
            low, high = (None if row[key] is None else 100 * row[key] for key in ("low", "high"))
            policy = row["first"].removesuffix(f" {decoding}")
            estimates[decoding][policy] = Estimate(100 * row["difference"], low, high)
    return [
        Series(decoding, *SERIES[index], estimates[decoding])
        for index, decoding in enumerate(DECODINGS)
        if estimates[decoding]
    ]


main = command(Options, _run)

if __name__ == "__main__":
    sys.exit(main())
