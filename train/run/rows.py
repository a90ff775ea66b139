"""The labels of the rows of a run's final table, and the files of their records (evaluation.py writes them)."""

from dataclasses import dataclass

from train.run.config import EvaluationConfig, TrainConfig


@dataclass(frozen=True)
class Decoding:
    """How a policy's replies are drawn."""

    name: str
    temperature: float

    def label(self, phase: str) -> str:
        """Of a row of the table."""
        return f"{phase}, {self.name}"

    def file_name(self, phase: str) -> str:
        """Of a row's records."""
        return f"{phase}-{self.name.replace(' ', '')}"


def decodings(config: EvaluationConfig) -> list[Decoding]:
    """Sampled as the papers do, and greedy where that is wanted."""
    sampled = Decoding(f"T {config.temperature:g}", config.temperature)
    return [sampled, Decoding("greedy", 0.0)] if config.greedy else [sampled]


def decodings_of(config: TrainConfig, phase: str) -> list[Decoding]:
    """How a phase's policy is tested: as all are, and at temperatures of its own."""
    further = [Decoding(f"T {temperature:g}", temperature) for temperature in config.phases[phase].temperatures]
    return list(dict.fromkeys([*decodings(config.evaluation), *further]))
