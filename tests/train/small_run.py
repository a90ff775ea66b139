"""The flags of a training of seconds."""

SMALL = {
    "sft.stages.0.steps": 3,
    "sft.stages.1.steps": 3,
    "sft.stages.2.steps": 3,
    "sft.sessions-per-batch": 4,
    "grpo.steps": 4,
    "grpo.sessions-per-batch": 2,
    "grpo.num_generations": 3,
    "model.tiny.hidden-size": 32,
    "model.tiny.layers": 1,
    "model.tokenizer.min-count": 2,
    "validation.sessions": 6,
    "validation.times": 1,
    "evaluation.sessions": 6,
    "threads": 1,
}
SMALL_FLAGS = [word for key, value in SMALL.items() for word in (f"--{key}", str(value))]
