"""Trains an LLM policy on a session store: SFT, GRPO with the paper's reward, and a table on held-out users.

  shop-r1 train
  shop-r1 train --store stores/mine --out runs/mine
  shop-r1 train --preset my_preset.toml --grpo.steps 20
  shop-r1 train --reward binary --seed 3
  shop-r1 train --resume runs/mine
  shop-r1 train --preset smollm2_cpu --dry-run

By default it trains on the demo shop, on two CPU cores. --resume continues a stopped run. --dry-run trains nothing: it
prints steps, tokens, the shares of steps with pages that are too long, memory and hours, on this machine or on
--machine.gpus 8 --machine.gpu h100. --show-prompt prints the messages of the first scored step.

Phases: sft ─► shop_r1 (GRPO from sft) and sft_longer (SFT from sft, with as much compute) ─► evaluation.

Every key of the configuration is a flag, with the preset's value as its default. A preset is a TOML file of the same
keys; only a preset sets the number of stages of SFT. OUT holds run.json (configuration, versions, machine),
metrics.jsonl, tensorboard/, results.json, results.md, and the checkpoints sft/, shop_r1/ and sft_longer/, which
`make_agent` loads.
"""

import sys
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.options import RunOptions, check_inputs, prepare, prepare_from
from agents.llm_grpo.show_prompt import show_prompt
from replay_sessions.foundation.command_line import program_of
from replay_sessions.foundation.config_errors import keyword_signature
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from shop_env.evaluation.results_file import EvaluationLog, read_log
from train.machine import get_world_size, let_segments_expand


def train(**options: Any) -> EvaluationLog:
    """Runs `shop-r1 train` from Python and returns the log of its final table.

        log = train(preset="tiny_cpu", store="demo", out="runs/first", grpo={"steps": 20}, reward="my_reward.py:reward")
        log.to_pandas()

    Args:
        options: The options of the command, by name; tables of the configuration are dicts.

    Raises:
        BadConfig: An option does not exist, or its value is invalid.
    """
    if of_command := sorted(options.keys() & {"dry_run", "show_prompt", "for_verl", "for_trl"}):
        raise BadConfig(f"{of_command[0]} trains nothing; give it to the command, `shop-r1 train`.")
    prepared = prepare_from(options)
    check_inputs(prepared[0], prepared[2])
    with requires_extra("train"):
        from agents.llm_grpo import command  # noqa: PLC0415 - an extra that may be missing
    command.run(lambda: prepared)
    return read_log(prepared[1], trust=None)


vars(train)["__signature__"] = keyword_signature(RunOptions, TrainConfig, result=EvaluationLog)


def _run(argv: Sequence[str]) -> int:
    let_segments_expand()
    prepare_once = cache(partial(prepare, argv, __doc__))
    if get_world_size() == 1:
        # Prints help and errors of the call before torch is loaded; with several processes, only one of them prints.
        options, _, config = prepare_once()
        if options.show_prompt:
            sys.stdout.writelines(show_prompt(config, options.only))
            return 0
        check_inputs(options, config)
    with requires_extra("train"):
        from agents.llm_grpo import command  # noqa: PLC0415 - an extra that may be missing
    try:
        return command.run(prepare_once, argv)
    except KeyboardInterrupt:
        folder = prepare_once()[1]
        if get_world_size() > 1 or not (folder / "run.json").exists():
            raise
        raise KeyboardInterrupt(f"`shop-r1 train --resume {folder}` continues this run") from None


main = program_of(_run)

if __name__ == "__main__":
    sys.exit(main())
