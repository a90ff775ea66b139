"""The two packaged policies as agents."""

from collections.abc import Mapping
from typing import Any, ClassVar

from agents.local.policy_agent import Decode, PolicyAgent
from agents.policies import FOLDER
from shop_env.evaluation.results_file import digest_file


class DemoSft(PolicyAgent):
    """A tiny policy of the demo shop, after SFT.

    The options are those of a checkpoint (agents/local/policy_agent.py).
    """

    name: ClassVar[str] = "sft"

    def __init__(
        self,
        *,
        temperature: float | None = None,
        max_new_tokens: int | None = None,
        device: str | None = None,
        decode: Decode = "tokens",
        rationales: int = 16,
    ) -> None:
        super().__init__(
            str(FOLDER / self.name),
            temperature=temperature,
            max_new_tokens=max_new_tokens,
            device=device,
            decode=decode,
            rationales=rationales,
        )

    @classmethod
    def deciding_arguments(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what decides its replies: its arguments and its weights."""
        return {**arguments, "weights": digest_file(FOLDER / cls.name / "model.safetensors")}


class DemoShopR1(DemoSft):
    """A tiny policy of the demo shop, after GRPO."""

    name: ClassVar[str] = "shop_r1"
