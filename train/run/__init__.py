"""A training run: configuration ─► phases ─► evaluation ─► final table; agents/llm_grpo/train.py starts it.

config.py presets.py options.py extension.py    what is to be trained; nothing there loads torch
command.py ─► training_run.py ─► phases.py      phase after phase, each of them resumable bit for bit
data.py models.py                               the train split as tokens; base models, vLLM as the engine of rollouts
evaluation.py ─► table.py                       every policy and agent on the same steps; what the differences say
dry_run.py export.py                            memory, steps and tokens without training; files for TRL and verl
"""
