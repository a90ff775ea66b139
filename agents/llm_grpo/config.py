"""The configuration of a training run: one frozen tree, from a preset (TOML); each key is a flag of the command.

A run is a list of phases. A file states once what they share ([sft], [grpo], [context], [validation]) and in each phase
the keys in which it differs; presets.py fills these in, so that every phase here holds complete tables.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.evaluation import scored_steps
from shop_env.observation import ContextConfig
from shop_env.prompts import PromptConfig, prompt_of
from shop_env.reward import RewardConfig, reward_preset
from shop_env.reward.score import LOG_LIKELIHOOD
from train.config import ModelConfig, RolloutsConfig, SftConfig
from train.grpo.config import GrpoConfig
from train.objectives import OBJECTIVES

MOST_PROBABLE = "most probable action"  # how a decoding is called
PHASE_NAME = re.compile(r"[a-z0-9_]+")
TAKEN_NAMES = ("model", "agents", "shape", "tensorboard", "tokens")  # the start of phases, and a run's other folders


class ValidationConfig(Config):
    """The choice of the weights of a phase: those with the best exact match, sampled as the last table samples.

    Attributes:
        sessions: On so many sessions of the validation split, drawn by the run's seed.
        times: At so many steps whose learning rate has reached its floor; 0 takes the last weights, unseen.
    """

    sessions: int = 300
    times: int = 3


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
        context: What its policy is shown, in training and in the table.
        teach_rationales: False asks for replies with an empty rationale, and teaches them (Customer-R1, table 4).
        same_compute_as: SFT that goes on from SFT, on whole sessions at the last learning rate that it had, for as many
            steps as have the FLOPs of this earlier phase: those of all its passes, sampling and reference included.
        several_seeds: What several seeds of it showed: printed below the table.
        seed: Added to the run's; phases with the same number see the same batches.
        sft: The numbers of a phase of SFT.
        grpo: The numbers of a phase of any other method that trains.
        validation: How its weights are chosen.
    """

    label: str
    method: str
    start: str = "model"
    against: tuple[str, ...] = ()
    temperatures: tuple[float, ...] = ()
    reward: str | None = None
    context: ContextConfig = ContextConfig()
    teach_rationales: bool = True
    same_compute_as: str | None = None
    several_seeds: str = ""
    seed: int = 0
    sft: SftConfig | None = None
    grpo: GrpoConfig | None = None
    validation: ValidationConfig = ValidationConfig()

    def __post_init__(self) -> None:
        self.get_reward(RewardConfig())
        methods = ["none", "sft", *OBJECTIVES]
        if ":" not in self.method and self.method not in methods:
            raise BadConfig(
                f"phase '{self.label}': unknown method {self.method!r}. {did_you_mean(self.method, methods)} Or give "
                "FILE.py:CLASS."
            )
        table = numbers_table(self.method)
        for key, value, needed in (("a reward", self.reward, "grpo"), ("same_compute_as", self.same_compute_as, "sft")):
            if value is not None and table != needed:
                raise BadConfig(f"phase '{self.label}' has {key}, but its method is {self.method!r}, not {needed!r}.")
        if table is not None and getattr(self, table) is None:
            raise BadConfig(f"phase '{self.label}' is {self.method}, but there is no [{table}] with its numbers.")

    @property
    def numbers(self) -> SftConfig | GrpoConfig | None:
        """Those that its method reads; None: it trains nothing."""
        table = numbers_table(self.method)
        return None if table is None else getattr(self, table)

    def get_reward(self, of_run: RewardConfig) -> RewardConfig:
        """The reward that it is trained with."""
        if self.reward is None:
            return of_run
        return LOG_LIKELIHOOD if self.reward == LOG_LIKELIHOOD.kind else reward_preset(self.reward)


def numbers_table(method: str) -> Literal["sft", "grpo"] | None:
    """The table that a method reads: [grpo] of every objective; None: it trains nothing."""
    return {"none": None, "sft": "sft"}.get(method, "grpo")


@dataclass(frozen=True)
class Decoding:
    """A way to draw a policy's replies.

    Attributes:
        rationales: Of the most probable action, how many are sampled; None: the reply is drawn token by token.
    """

    name: str
    temperature: float
    rationales: int | None = None

    @classmethod
    def at(cls, temperature: float) -> "Decoding":
        """Sampling at a temperature; 0 is greedy."""
        return cls(f"T {temperature:g}" if temperature else "greedy", temperature)

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


class TableConfig(Config):
    """The last table.

    Attributes:
        split: Whose sessions are predicted.
        sessions: So many of them, drawn at random; None: all.
        seed: Draws them; None: the run's. Runs on several seeds are tested on the same sessions if it is given.
        temperature: Of sampling; 0 is greedy.
        greedy: Each policy also without sampling.
        most_probable_action: Each policy also by its most probable action, after so many sampled rationales, 0 for an
            empty one (agents/local/policy_agent.py), with NLL, ECE and Brier score; None: not.
        agents: Who stands beside the policies, named as for a leaderboard: NAME, LABEL=NAME?key=value, FILE.py:CLASS.
            Every policy is held against the best of them.
    """

    split: Split = "test"
    sessions: int | None = 600
    seed: int | None = None
    temperature: float = 0.6
    greedy: bool = True
    most_probable_action: int | None = None
    agents: tuple[str, ...] = ("random", "majority", "copy_match", "page_counts")

    def __post_init__(self) -> None:
        if self.most_probable_action is not None and self.most_probable_action < 0:
            raise BadConfig(
                f"evaluation.most_probable_action is {self.most_probable_action}; it is a number of rationales, 0 or "
                "more."
            )

    def get_decodings(self, temperatures: Iterable[float] = ()) -> list[Decoding]:
        """Sampled as the papers do; greedy and by the most probable action where that is wanted; at more temperatures.

        Those that every policy has come first.
        """
        decodings = [Decoding.at(self.temperature)]
        if self.greedy:
            decodings.append(Decoding.at(0.0))
        if self.most_probable_action is not None:
            decodings.append(Decoding(MOST_PROBABLE, 0.0, self.most_probable_action))
        return list(dict.fromkeys([*decodings, *map(Decoding.at, temperatures)]))


class TrainConfig(Config):
    """The configuration of a run: phases, data, and evaluation.

    Attributes:
        phases: What is trained, in this order, by name: the name is the folder of its checkpoint.
        sft: What phases of SFT share.
        grpo: What phases of GRPO and other objectives share.
        store: A session store's folder, or `demo`.
        seed: The same seed gives the same run on CPU.
        reward: A preset's name (shop_env.reward.score) or a table of numbers.
        inferred: Train on actions too, and score them, that the log does not hold and the import inferred.
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
    inferred: bool = False
    missing_rationales: Literal["refuse", "empty"] = "refuse"
    validation: ValidationConfig = ValidationConfig()
    evaluation: TableConfig = TableConfig()
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
            if not PHASE_NAME.fullmatch(name) or name in TAKEN_NAMES:
                raise BadConfig(
                    f"phase '{name}': a phase's name is a folder's: lower case, digits and _, and none of "
                    f"{', '.join(TAKEN_NAMES)}."
                )
            for field, other, names in (
                ("start", phase.start, earlier),
                ("same_compute_as", phase.same_compute_as, earlier[1:]),
                *(("against", compared, list(self.phases)) for compared in phase.against),
            ):
                if other is not None and other not in names:
                    raise BadConfig(f"phases.{name}.{field}: {other!r} is none of {', '.join(names) or 'no phase'}.")
            if phase.same_compute_as and (phase.start == "model" or self.phases[phase.start].method != "sft"):
                raise BadConfig(f"phases.{name}.same_compute_as: start is '{phase.start}', and must be a phase of sft.")
            earlier.append(name)
        labels = [phase.label for phase in self.phases.values()]
        if repeated := {label for label in labels if labels.count(label) > 1}:
            raise BadConfig(f"two phases are labelled '{min(repeated)}'; give each a label of its own.")

    def prompt_of(self, phase: PhaseConfig, store: SessionStore) -> PromptConfig:
        """The prompt of a phase, in the words of the store's log."""
        prompt = prompt_of(store, self.prompt)
        return msgspec.structs.replace(prompt, rationales=prompt.rationales and phase.teach_rationales)

    def resolve_precision(self, *, on_gpu: bool) -> "TrainConfig":
        """The same with what `auto` means on this machine, which a run keeps wherever it goes on.

        Args:
            on_gpu: What it means on a GPU.
        """
        precision = "bfloat16_autocast" if on_gpu and self.model.precision == "auto" else self.model.computed_in
        model = msgspec.structs.replace(self.model, precision=precision)
        return msgspec.structs.replace(self, model=model)

    @property
    def reward_config(self) -> RewardConfig:
        """The reward's numbers."""
        return reward_preset(self.reward)

    @property
    def evaluation_config(self) -> scored_steps.EvaluationConfig:
        """The evaluation of the final table."""
        return scored_steps.EvaluationConfig(
            store=self.store,
            split=self.evaluation.split,
            seed=self.seed if self.evaluation.seed is None else self.evaluation.seed,
            sessions=self.evaluation.sessions,
            context=self.context,
            reward=self.reward,
            inferred=self.inferred,
            likelihood=self.evaluation.most_probable_action is not None,
        )

    @property
    def rewards_rationales(self) -> bool:
        """True where a phase's reward depends on rationales."""
        phases = (phase for phase in self.phases.values() if isinstance(phase.numbers, GrpoConfig))
        rewards = [phase.get_reward(self.reward_config) for phase in phases]
        return any(each.self_certainty_weight > 0 or each == LOG_LIKELIHOOD for each in rewards)
