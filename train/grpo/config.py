"""The numbers of a phase of GRPO."""

from typing import Literal

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Config
from shop_env.reward import RewardConfig
from train.config import OptimizerConfig, SamplingConfig
from train.sampler import Balance

ScaleRewards = Literal["group", "none"]
VLLM_IMPORTANCE_CAP = 2.0


class GrpoConfig(Config):
    """The numbers of GRPO; keys and values have the names of trl.GRPOConfig where they mean the same arithmetic.

    Attributes:
        steps: Batches of rollouts. TRL's max_steps counts optimizer steps, which are `steps` · `num_iterations`.
        num_iterations: Optimizer steps on each batch; from the second on, ratios and clipping act.
        sessions_per_batch: Sessions in one batch, in one trunk or several, at most.
        tokens_per_batch: Tokens in the longest trunks of those sessions, at most.
        steps_per_batch: ⟨context, next action⟩ pairs in a batch (the papers: 64); None: whole sessions.
        balance: Which pairs: `uniform`, or `balanced`, in which click and type_and_submit each come 10% more often than
            terminate (Shop-R1, section 4.1). Rare actions come back: 500 steps of 64 draw each terminate of OPeRA's
            train split some 60 times. Only with steps_per_batch.
        num_generations: G, the replies sampled at every scored step of a session: a group.
        temperature: Of sampling, and of the log-probabilities in the loss.
        max_new_tokens: The longest reply that is sampled, in tokens.
        beta: Weight of the KL to the frozen policy that GRPO starts from.
        epsilon: ε of the clipped ratio.
        importance_sampling_cap: The largest weight of a token that is likelier under the policy than under the sampler,
            where the two differ in their numerics (train/grpo/loss.py); None: 2 with vLLM, and with the policy's own
            engine no weights, as in the papers.
        scale_rewards: What a group's centred rewards are divided by: the standard deviation of the `group`, or `none`.
        filter_zero_variance: Leave out groups whose action rewards are all equal.
        max_batch_tokens: Tokens in one forward pass; a larger batch is cut into several.
    """

    optimizer: OptimizerConfig
    steps: int
    num_iterations: int = 1
    sessions_per_batch: int = 12
    tokens_per_batch: int = 65_536
    steps_per_batch: int | None = None
    balance: Balance = "uniform"
    num_generations: int = 8
    temperature: float = 0.6
    max_new_tokens: int = 64
    beta: float = 0.001
    epsilon: float = 0.2
    importance_sampling_cap: float | None = None
    scale_rewards: ScaleRewards = "group"
    filter_zero_variance: bool = True
    max_batch_tokens: int = 32_768

    def __post_init__(self) -> None:
        if self.num_generations < 2:
            raise BadConfig(
                f"grpo.num_generations is {self.num_generations}; a group needs at least 2 replies to compare."
            )
        if self.temperature <= 0:
            raise BadConfig(f"grpo.temperature is {self.temperature}; sampling needs a temperature above 0.")
        if self.steps_per_batch is None and self.balance != "uniform":
            raise BadConfig(
                f"grpo.balance is {self.balance!r}, but whole sessions make the batches; give grpo.steps_per_batch."
            )
        for key in ("steps_per_batch", "num_iterations", "importance_sampling_cap"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise BadConfig(f"grpo.{key} is {value}; it must be at least 1.")

    def max_reply_tokens(self, reward: RewardConfig) -> int:
        """The tokens of a reply in training: with the logged action behind it, where the reward is its likelihood."""
        return self.max_new_tokens * (2 if reward.kind == "log_likelihood" else 1)

    def sampling(self, end_token: int) -> SamplingConfig:
        """The options by which the groups of a batch are sampled."""
        return SamplingConfig(
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
            end_token=end_token,
            num_generations=self.num_generations,
            max_batch_tokens=self.max_batch_tokens,
        )
