"""The configuration of a training run: one frozen tree, from a preset (TOML); each key is a flag of the command.

A run is a list of phases. What they share (the numbers of [sft] and [grpo], the context, the reward) stands once; a
phase holds the keys in which it differs. presets.py reads the files.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Split
from shop_env.evaluation import scored_steps
from shop_env.observation import ContextConfig, PersonaArm, Scope
from shop_env.prompts import PromptConfig
from shop_env.reward import RewardConfig, reward_preset
from shop_env.reward.score import LOG_LIKELIHOOD
from train.config import ModelConfig, RolloutsConfig, SftConfig
from train.grpo.config import GrpoConfig
from train.objectives import OBJECTIVES

MOST_PROBABLE = "most probable action"  # how a decoding is called
PHASE_NAME = re.compile(r"[a-z0-9_]+")


class ValidationConfig(Config):
    """How the weights of a phase are chosen: those with the best exact match, sampled as the last table samples.

    Attributes:
        sessions: On so many sessions of the validation split.
        times: At so many steps; 0 takes the last weights, unseen.
        when: `end`, where the learning rate has reached its floor, or `throughout` the phase.
        patience: The phase ends early after so many validations in a row without a better one; None: it never does.
    """

    sessions: int = 300
    times: int = 3
    when: Literal["end", "throughout"] = "end"
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.patience is not None and (self.patience < 1 or self.when == "end"):
            raise BadConfig(
                f"validation.patience is {self.patience} with validation.when '{self.when}'; early stopping needs at "
                "least 1 and 'throughout'."
            )


class PhaseContext(Config):
    """What a phase shows otherwise than the run's context does; None: as there. It is trained and tested in it.

    Attributes:
        scope: `whole_session` or `latest_step` (Shop-R1, table 5).
        rationales: False: the history has no rationales (Shop-R1's RL, section 3).
        persona: `matched`, `none`, `shuffled` or `generic` (Customer-R1, table 4).
    """

    scope: Scope | None = None
    rationales: bool | None = None
    persona: PersonaArm | None = None

    def over(self, context: ContextConfig) -> ContextConfig:
        """The run's context with what is different here."""
        changed = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(context, **changed)


class PhaseConfig(Config):
    """A row of the last table, and how its policy is made.

    Attributes:
        label: Its name in the table.
        method: `sft`; `none`, which tests the weights that it starts from; or an objective with the numbers of [grpo]:
            `grpo`, `grpo_with_logged`, `weighted_sft`, `dpo`, or your own subclass of
            train.grpo.trainer.GroupTrainer as FILE.py:CLASS or module:CLASS (docs/objectives.md).
        start: `model`, or an earlier phase, whose weights it goes on from; GRPO's reference policy too.
        against: The phases that it is compared with, pair by pair of steps; they may come later.
        temperatures: At which its policy is tested besides the run's own (Shop-R1, figure 2).
        reward: A reward preset of GRPO's, or `log_likelihood` (train/grpo/likelihood.py); None: the run's.
        context: What differs from the run's context.
        teach_rationales: False teaches replies with an empty rationale (Customer-R1, table 4).
        same_time_as: SFT for as many steps as fit the time that this earlier phase takes, on whole sessions: counted in
            tokens by the speed of the fastest tenth of steps, so that other work on the machine decides nothing.
        several_seeds: What several seeds of it showed: printed below the table.
        seed: Added to the run's; phases with the same number see the same batches.
        sft: Numbers of this phase alone, in place of the run's [sft].
        grpo: Numbers of this phase alone, in place of the run's [grpo].
        validation: The rule of this phase alone, in place of the run's [validation].
    """

    label: str
    method: str
    start: str = "model"
    against: tuple[str, ...] = ()
    temperatures: tuple[float, ...] = ()
    reward: str | None = None
    context: PhaseContext = PhaseContext()
    teach_rationales: bool = True
    same_time_as: str | None = None
    several_seeds: str = ""
    seed: int = 0
    sft: SftConfig | None = None
    grpo: GrpoConfig | None = None
    validation: ValidationConfig | None = None

    def __post_init__(self) -> None:
        if self.reward is not None:
            _get_reward(self.reward)
        methods = ["none", "sft", *OBJECTIVES]
        if ":" not in self.method and self.method not in methods:
            raise BadConfig(
                f"phase '{self.label}': unknown method {self.method!r}. {did_you_mean(self.method, methods)} Or give "
                "FILE.py:CLASS."
            )
        for key, value, table in (("a reward", self.reward, "grpo"), ("same_time_as", self.same_time_as, "sft")):
            if value is not None and self.numbers != table:
                raise BadConfig(f"phase '{self.label}' has {key}, but its method is {self.method!r}, not {table!r}.")

    @property
    def numbers(self) -> Literal["sft", "grpo"] | None:
        """The table that its method reads: [grpo] of every objective; None: it trains nothing."""
        return {"none": None, "sft": "sft"}.get(self.method, "grpo")


def _get_reward(name: str) -> RewardConfig:
    return LOG_LIKELIHOOD if name == LOG_LIKELIHOOD.kind else reward_preset(name)


@dataclass(frozen=True)
class Decoding:
    """How a policy's replies are drawn.

    Attributes:
        rationales: Of the most probable action, how many are sampled; None: the reply is drawn token by token.
    """

    name: str
    temperature: float
    rationales: int | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Of the policy's agent (agents/local/policy_agent.py)."""
        if self.rationales is None:
            return {"temperature": self.temperature}
        return {"decode": "most_probable_action", "rationales": self.rationales}

    def label(self, phase: str) -> str:
        """Of a row of the table."""
        return f"{phase}, {self.name}"

    def file_name(self, phase: str) -> str:
        """Of a row's records."""
        return f"{phase}-{self.name.replace(' ', '')}"


class EvaluationConfig(Config):
    """The last table.

    Attributes:
        split: Whose sessions are predicted.
        sessions: The first so many of them; None: all.
        temperature: Of sampling.
        greedy: Each policy also without sampling.
        most_probable_action: Each policy also by its most probable action, after so many sampled rationales, 0 for an
            empty one (agents/local/policy_agent.py), with NLL, ECE and Brier score; None: not.
        agents: Who stands beside the policies, named as for a leaderboard: NAME, LABEL=NAME?key=value, FILE.py:CLASS.
            Every policy is held against the best of them.
    """

    split: Split = "test"
    sessions: int | None = 600
    temperature: float = 0.6
    greedy: bool = True
    most_probable_action: int | None = None
    agents: tuple[str, ...] = ("random", "majority", "copy_match")

    def __post_init__(self) -> None:
        if self.most_probable_action is not None and self.most_probable_action < 0:
            raise BadConfig(
                f"evaluation.most_probable_action is {self.most_probable_action}; it is a number of rationales, 0 or "
                "more."
            )

    @property
    def decodings(self) -> list[Decoding]:
        """Sampled as the papers do; greedy and by the most probable action where that is wanted."""
        decodings = [Decoding(f"T {self.temperature:g}", self.temperature)]
        if self.greedy:
            decodings.append(Decoding("greedy", 0.0))
        if self.most_probable_action is not None:
            decodings.append(Decoding(MOST_PROBABLE, 0.0, self.most_probable_action))
        return decodings


class TrainConfig(Config):
    """What is trained, on what, and how it is evaluated.

    Attributes:
        phases: What is trained, in this order, by name: the name is the folder of its checkpoint.
        sft: The numbers of every phase of SFT that has none of its own.
        grpo: The numbers of every phase of GRPO that has none of its own.
        store: A session store's folder, or `demo`.
        seed: The same seed gives the same run on CPU.
        reward: A preset's name (shop_env.reward.score) or a table of numbers.
        missing_rationales: `refuse` a run whose reward scores rationales (self-certainty, log_likelihood) on a store
            where under half of the train split's steps have one; `empty` trains on empty ones in their place.
        threads: CPU threads; 0: torch's default. The same seed and thread count give the same run on CPU.
        save_every_s: The training state is saved so often, and when the run is stopped; more rarely where a save takes
            more than 2% of that time, but every half an hour (train/loop.py). 0: after every step.
        watch: Where metrics go besides metrics.jsonl: tensorboard, wandb, trackio.
    """

    phases: dict[str, PhaseConfig]
    sft: SftConfig | None = None
    grpo: GrpoConfig | None = None
    store: str = "demo"
    seed: int = 0
    model: ModelConfig = ModelConfig()
    context: ContextConfig = ContextConfig()
    prompt: PromptConfig = PromptConfig()
    rollouts: RolloutsConfig = RolloutsConfig()
    reward: str | RewardConfig = "shop_r1"
    missing_rationales: Literal["refuse", "empty"] = "refuse"
    validation: ValidationConfig = ValidationConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    threads: int = 0
    save_every_s: float = 60.0
    watch: tuple[str, ...] = ("tensorboard",)

    def __post_init__(self) -> None:
        if not self.phases:
            raise BadConfig("a run needs at least one phase, such as [phases.sft] with method = 'sft'.")
        if LOG_LIKELIHOOD.kind in (self.reward, getattr(self.reward, "kind", None)):
            raise BadConfig(
                "reward is log_likelihood, which only GRPO measures, but the last table scores texts by it; give it to "
                "the phases of GRPO, as phases.NAME.reward, and leave the run's reward as it is."
            )
        earlier = ["model"]
        for name, phase in self.phases.items():
            if not PHASE_NAME.fullmatch(name) or name == "model":
                raise BadConfig(f"phase '{name}': a phase's name is a folder's: lower case, digits and _, not 'model'.")
            for field, other, names in (
                ("start", phase.start, earlier),
                ("same_time_as", phase.same_time_as, earlier[1:]),
                *(("against", compared, list(self.phases)) for compared in phase.against),
            ):
                if other is not None and other not in names:
                    raise BadConfig(f"phases.{name}.{field}: {other!r} is none of {', '.join(names) or 'no phase'}.")
            table = phase.numbers
            if table is not None and getattr(phase, table) is None and getattr(self, table) is None:
                raise BadConfig(f"phases.{name} is {phase.method}, but there is no [{table}] with its numbers.")
            if table is not None and self.prompt_tokens_of(name) < 1:
                raise BadConfig(
                    f"model.max_tree_tokens is {self.model.max_tree_tokens}, which phases.{name} fills with replies "
                    "alone; raise it, or lower grpo.num_generations or grpo.max_new_tokens."
                )
            earlier.append(name)
        labels = [phase.label for phase in self.phases.values()]
        if repeated := {label for label in labels if labels.count(label) > 1}:
            raise BadConfig(f"two phases are labelled '{min(repeated)}'; give each a label of its own.")

    def settled(self, *, on_gpu: bool = False) -> "TrainConfig":
        """The same with what `auto` means on this machine: what a run notes, and keeps wherever it goes on.

        Args:
            on_gpu: What it means on a GPU.
        """
        precision = "bfloat16_autocast" if on_gpu and self.model.precision == "auto" else self.model.computed_in
        model = msgspec.structs.replace(self.model, precision=precision)
        return msgspec.structs.replace(self, model=model)

    def with_seeds_by_prompt(self) -> "TrainConfig":
        """The same with `rollout_seeds` of every phase of GRPO as several processes need (train/grpo/config.py)."""
        tables = msgspec.to_builtins(self)
        for table in (tables, *tables["phases"].values()):
            if table["grpo"] is not None:
                table["grpo"]["rollout_seeds"] = "prompt"
        return msgspec.convert(tables, TrainConfig)

    @property
    def reward_config(self) -> RewardConfig:
        """The reward's numbers."""
        return reward_preset(self.reward) if isinstance(self.reward, str) else self.reward

    @property
    def evaluation_config(self) -> scored_steps.EvaluationConfig:
        """How the final table is evaluated."""
        return scored_steps.EvaluationConfig(
            store=self.store,
            split=self.evaluation.split,
            seed=self.seed,
            sessions=self.evaluation.sessions,
            context=self.context,
            reward=self.reward,
            likelihood=self.evaluation.most_probable_action is not None,
        )

    def sft_of(self, name: str) -> SftConfig:
        """The numbers of a phase of SFT."""
        sft = self.phases[name].sft or self.sft
        assert sft is not None, "checked above"
        return sft

    def grpo_of(self, name: str) -> GrpoConfig:
        """The numbers of a phase of GRPO."""
        grpo = self.phases[name].grpo or self.grpo
        assert grpo is not None, "checked above"
        return grpo

    def prompt_tokens_of(self, name: str) -> int:
        """The longest prompt that a phase trains on: room is left for a reply in its path, and for all in its tree."""
        model, replies = self.model, self.model.max_new_tokens
        longest = model.max_tokens - model.max_new_tokens
        if self.phases[name].numbers == "grpo":
            grpo = self.grpo_of(name)
            size = grpo.num_generations + (self.phases[name].method != "grpo")  # with the logged reply
            replies = size * grpo.max_reply_tokens(self.reward_of(name))
        return longest if model.max_tree_tokens is None else min(longest, model.max_tree_tokens - replies)

    def reward_of(self, name: str) -> RewardConfig:
        """The reward that a phase is trained with."""
        own = self.phases[name].reward
        return self.reward_config if own is None else _get_reward(own)

    @property
    def rewards_rationales(self) -> bool:
        """Whether a phase's reward depends on rationales."""
        rewards = [self.reward_of(name) for name, phase in self.phases.items() if phase.numbers == "grpo"]
        return any(each.self_certainty_weight > 0 or each == LOG_LIKELIHOOD for each in rewards)

    def context_of(self, name: str) -> ContextConfig:
        """The context of a phase's policy, in training and evaluation."""
        return self.phases[name].context.over(self.context)

    def decodings_of(self, name: str) -> list[Decoding]:
        """How a phase's policy is tested: as all are, and at temperatures of its own."""
        further = [Decoding(f"T {temperature:g}", temperature) for temperature in self.phases[name].temperatures]
        return list(dict.fromkeys([*self.evaluation.decodings, *further]))
