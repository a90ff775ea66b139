"""A training run: configuration ─► phases ─► evaluation ─► final table; agents/llm_grpo/train.py starts it.

config.py presets.py options.py                 what is to be trained; nothing there loads torch
command.py ─► training_run.py ─► phases.py      phase after phase, each of them resumable bit for bit
data.py                                         the train split as tokens
evaluation.py                                   every policy and agent on the same steps; what the differences say
dry_run.py                                      memory, steps and tokens without training
"""
