"""What the rows of a run's last table are called, and where their records lie (evaluated_rows.py makes them)."""

import hashlib
from dataclasses import dataclass

import msgspec

from agents.agent_code import code_digest
from agents.folder_names import folder_name
from agents.llm_grpo.config import EvaluationConfig, TrainConfig
from agents.registry import parse_spec
from shop_env.versions import SCORING_VERSION

__all__ = ["Decoding", "agent_file_name", "decodings", "decodings_of", "record_file"]


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


def agent_file_name(agent: str) -> str:
    """Of an agent's records: what was edited since, or is given other arguments, is another agent and asked anew."""
    spec = parse_spec(agent)
    made_of = msgspec.json.encode([spec.target, spec.arguments, code_digest(spec)], order="sorted")
    return f"{folder_name(spec.label)}-{hashlib.blake2b(made_of, digest_size=4).hexdigest()}"


def record_file(name: str) -> str:
    """Where the records of a row lie in a run's folder, by agent_file_name or Decoding.file_name."""
    return f"steps/{name}.v{SCORING_VERSION}.jsonl"
