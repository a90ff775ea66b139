"""The configuration of a training run: a frozen tree that is read from a preset (TOML); each key is a flag.

A run is a list of phases. The tables [sft], [grpo], [context] and [validation] of a file are the defaults of its
phases, and a phase states the keys that differ. presets.py merges them, so that every phase here has complete tables.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from agents.llm_grpo.decoding import MOST_PROBABLE, Decoding
from replay_sessions.foundation.command_line import JSON_OBJECT
from replay_sessions.foundation.errors import BadConfig, check_at_least, did_you_mean
from replay_sessions.foundation.records import Config
from replay_sessions.schema import Split
from replay_sessions.store import SessionStore
from shop_env.evaluation import scored_steps
from shop_env.metrics.presets import PresetName
from shop_env.observation import ContextConfig
from shop_env.prompts import PromptConfig, prompt_of
from shop_env.reward import RewardConfig, reward_preset
from shop_env.reward.score import LOG_LIKELIHOOD
from train.config import ModelConfig, RolloutsConfig, SftConfig
from train.grpo.config import GrpoConfig
from train.objectives import CANDIDATE_LIKELIHOOD, EXPECTED_REWARD, OBJECTIVES, RESTRICTED

POINTER = "pointer"  # a method
PHASE_NAME = re.compile(r"[a-z0-9_]+")
TAKEN_NAMES = ("model", "agents", "shape", "tensorboard", "tokens")  # a value of `start`, and a run's other folders


class ValidationConfig(Config):
    """The choice of a phase's weights: those with the best exact match, with replies sampled as for the final table.

    Attributes:
        sessions: The number of sessions of the validation split, drawn by the run's seed.
        times: The number of validations, at steps with the final learning rate; 0 takes the last weights without
            validation.
    """

    sessions: int = 300
    times: int = 3

    def __post_init__(self) -> None:
        check_at_least(1, **{"validation.sessions": self.sessions})


class PhaseConfig(Config):
    """The training of a policy, and its row of the final table.

    Attributes:
        label: The name of the phase in the table.
        method: `sft`, or `candidate_likelihood` with the same numbers; `none`, which evaluates the weights that it
            starts from; `pointer`, which fits a network that scores the page's elements in place of a language model
            (train/pointer); or an objective with the numbers of [grpo]: `grpo`, `grpo_with_logged`, `weighted_sft`,
            `dpo`, `expected_reward`, which also goes on from a pointer, or your own subclass of
            train.grpo.trainer.GroupTrainer as FILE.py:CLASS or module:CLASS
            (docs/objectives.md).
        start: The initial weights, which are also GRPO's reference policy: `model`, or an earlier phase.
        against: The phases to compare it with, by paired differences over steps; they may come later.
        temperatures: Temperatures to evaluate its policy at, besides the run's (Shop-R1, figure 2).
        reward: A reward preset for GRPO, or `log_likelihood` (train/grpo/likelihood.py); None means the run's.
        context: The context of its policy, in training and in the table.
        teach_rationales: False requests replies with an empty rationale, and teaches them (Customer-R1, table 4).
        same_compute_as: An earlier phase whose FLOPs, of all passes with sampling and reference, set the number of
            steps. For SFT that continues a phase of SFT, on whole sessions at that phase's final learning rate.
        seed: A number that is added to the run's seed; phases with the same number see the same batches.
        sft: The numbers of a phase of SFT.
        grpo: The numbers of a phase of any other method that trains.
        options: Numbers that only your own objective reads, the fields of its class Options.
        validation: The choice of the phase's weights.
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
    seed: int = 0
    sft: SftConfig | None = None
    grpo: GrpoConfig | None = None
    options: Annotated[dict[str, Any], JSON_OBJECT] = {}
    validation: ValidationConfig = ValidationConfig()

    def __post_init__(self) -> None:
        self.get_reward(RewardConfig())
        methods = ["none", "sft", CANDIDATE_LIKELIHOOD, POINTER, *OBJECTIVES]
        if ":" not in self.method and self.method not in methods:
            raise BadConfig(
                f"phase '{self.label}': unknown method {self.method!r}. {did_you_mean(self.method, methods)} Or give "
                "FILE.py:CLASS."
            )
        if self.options and ":" not in self.method:
            raise BadConfig(f"phase '{self.label}' has options, which only objectives of your own read.")
        table = hyperparameters_table(self.method)
        for key, value, needed in (("a reward", self.reward, "grpo"), ("same_compute_as", self.same_compute_as, "sft")):
            if value is not None and table != needed:
                raise BadConfig(f"phase '{self.label}' has {key}, but its method is {self.method!r}, not {needed!r}.")
        if table is not None and getattr(self, table) is None:
            raise BadConfig(f"phase '{self.label}' is {self.method}, but there is no [{table}] with its numbers.")
        if isinstance(self.hyperparameters, GrpoConfig):
            self.hyperparameters.check_length()

    @property
    def hyperparameters(self) -> SftConfig | GrpoConfig | None:
        """The numbers that its method reads; None for a method that does not train."""
        table = hyperparameters_table(self.method)
        return None if table is None else getattr(self, table)

    def get_reward(self, of_run: RewardConfig) -> RewardConfig:
        """Returns the reward that the phase is trained with, given the reward of the run."""
        if self.reward is None:
            return of_run
        return LOG_LIKELIHOOD if self.reward == LOG_LIKELIHOOD.kind else reward_preset(self.reward)


def hyperparameters_table(method: str) -> Literal["sft", "grpo"] | None:
    """Returns the table that a method reads, "grpo" for every objective; None for a method that does not train."""
    return {"none": None, POINTER: None, "sft": "sft", CANDIDATE_LIKELIHOOD: "sft"}.get(method, "grpo")


class TableConfig(Config):
    """The final table.

    Attributes:
        split: The split to evaluate on.
        sessions: The number of its sessions, drawn at random; None means all.
        seed: The seed that draws the sessions; None means the run's. Give a number to evaluate runs with different
            seeds on the same sessions.
        metrics: The metrics preset (shop_env/metrics/presets.py).
        temperature: The sampling temperature; 0 is greedy.
        greedy: Evaluate each policy without sampling too.
        most_probable_action: Evaluate each policy by its most probable action too, with NLL, ECE and Brier score. The
            number is that of sampled rationales (agents/local/policy_agent.py), 0 if no policy writes any; None turns
            it off. A policy that is asked for no rationale always has this row, as its first.
        agents: The agents beside the policies, named as for a leaderboard: NAME, LABEL=NAME?key=value, FILE.py:CLASS.
            Every policy is compared with the best of them.
    """

    split: Split = "test"
    sessions: int | None = 600
    seed: int | None = None
    metrics: PresetName = "shop_r1"
    temperature: float = 0.6
    greedy: bool = True
    most_probable_action: int | None = None
    agents: tuple[str, ...] = ("random", "majority", "copy_match", "page_counts")

    def __post_init__(self) -> None:
        check_at_least(0, **{"evaluation.most_probable_action": self.most_probable_action})

    def get_decodings(self, temperatures: Iterable[float] = (), *, rationales: bool = True) -> list[Decoding]:
        """Returns the decodings of a policy, without repetition.

        First come sampling as in the papers and greedy, then the most probable action; of a policy that writes no
        rationale that comes first, because its probabilities need no sampling.

        Args:
            temperatures: Further temperatures of this policy.
            rationales: Whether the policy is asked for rationales.
        """
        by_token = [Decoding.at(self.temperature), *([Decoding.at(0.0)] if self.greedy else [])]
        drawn = self.most_probable_action if rationales else 0
        by_action = [] if drawn is None else [Decoding(MOST_PROBABLE, 0.0, drawn)]
        decodings = [*by_token, *by_action] if drawn else [*by_action, *by_token]
        return list(dict.fromkeys([*decodings, *map(Decoding.at, temperatures)]))


class TrainConfig(Config):
    """The configuration of a run: phases, data, and evaluation.

    Attributes:
        phases: The phases by name, in the order of training; a name is the folder of the phase's checkpoint.
        sft: The defaults of phases of SFT.
        grpo: The defaults of phases of GRPO and other objectives.
        store: The folder of a session store, or `demo`.
        seed: The seed of the run; the same seed gives the same run on CPU.
        reward: The name of a preset (shop_env.reward.score) or a table of numbers.
        inferred: Train on inferred actions and score them too.
        missing_rationales: The treatment of missing rationales, if the reward scores them (self-certainty,
            requires_rationale, log_likelihood) and fewer than half of the train split's steps have one: `refuse`
            refuses the run; `empty` trains on empty rationales in their place.
        threads: The number of CPU threads; 0 means torch's default. The same seed and number of threads give the same
            run on CPU.
        save_every_s: Seconds between saves of the training state; 0 saves after every step. They are more if a save
            takes more than 2% of the time, but at most half an hour (train/loop.py). A stopped run is saved too.
        watch: The trackers that get the metrics besides metrics.jsonl: tensorboard, wandb, trackio.
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
        check_at_least(0, seed=self.seed, threads=self.threads)
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
            self._check_phase(name, phase)
            earlier.append(name)
        labels = [phase.label for phase in self.phases.values()]
        if repeated := {label for label in labels if labels.count(label) > 1}:
            raise BadConfig(f"two phases are labelled '{min(repeated)}'; give each a label of its own.")

    def _check_phase(self, name: str, phase: PhaseConfig) -> None:
        if phase.same_compute_as and (phase.start == "model" or self.phases[phase.start].method != phase.method):
            raise BadConfig(
                f"phases.{name}.same_compute_as: start is '{phase.start}', and must be a phase of {phase.method}."
            )
        if phase.same_compute_as and self.is_pointer(phase.same_compute_as):
            raise BadConfig(
                f"phases.{name}.same_compute_as is '{phase.same_compute_as}', a pointer, whose FLOPs are not counted."
            )
        if (
            hyperparameters_table(phase.method) == "grpo"
            and phase.method not in RESTRICTED
            and self.is_restricted(phase.start)
        ):
            raise BadConfig(
                f"phases.{name} is {phase.method}, which samples from the whole vocabulary, and starts from "
                f"'{phase.start}', whose policy learnt to choose among a page's actions alone: start it from sft."
            )
        starts_from_pointer = self.is_pointer(phase.start) and phase.method != EXPECTED_REWARD
        if starts_from_pointer or (phase.method == POINTER and phase.start != "model"):
            raise BadConfig(
                f"phases.{name}.start is '{phase.start}': a pointer starts from scratch, and from a pointer only "
                f"{EXPECTED_REWARD}."
            )
        is_paid = (
            isinstance(phase.hyperparameters, GrpoConfig) and phase.get_reward(self.reward_config).requires_rationale
        )
        if is_paid and not (self.prompt.rationales and phase.teach_rationales):
            raise BadConfig(
                f"phases.{name}: reward.requires_rationale pays only replies with a rationale, and the prompt asks "
                "for none; leave one of them out (prompt.rationales, teach_rationales)."
            )

    def is_untaught(self, name: str) -> bool:
        """Returns whether a phase has random weights that no logged reply taught, so that its replies are malformed.

        GRPO alone does not change that, because malformed replies earn no reward.
        """
        while name != "model" and self.phases[name].method in ("none", "grpo"):
            name = self.phases[name].start
        return name == "model" and self.model.path is None

    def is_pointer(self, name: str) -> bool:
        """Returns whether the policy of a phase is a pointer."""
        while name != "model" and self.phases[name].method == EXPECTED_REWARD:
            name = self.phases[name].start
        return name != "model" and self.phases[name].method == POINTER

    def is_restricted(self, name: str) -> bool:
        """Returns whether the policy of a phase chooses among the actions that a page offers."""
        while name != "model" and self.phases[name].method == "none":
            name = self.phases[name].start
        return name != "model" and self.phases[name].method in RESTRICTED

    def prompt_of(self, phase: PhaseConfig, store: SessionStore) -> PromptConfig:
        """Returns the format of a phase's prompts, with the words for typing of the store's log."""
        prompt = prompt_of(store, self.prompt)
        return msgspec.structs.replace(prompt, rationales=prompt.rationales and phase.teach_rationales)

    def writes_rationales(self, phase: PhaseConfig) -> bool:
        """Returns whether a phase's policy is expected to write rationales."""
        is_asked = self.prompt.rationales and phase.teach_rationales
        return is_asked and self.evaluation.most_probable_action != 0

    def get_decodings(self, name: str) -> list[Decoding]:
        """Returns the decodings of a phase's rows; the greedy reply of a pointer is its most probable action."""
        phase, is_pointer = self.phases[name], self.is_pointer(name)
        decodings = self.evaluation.get_decodings(phase.temperatures, rationales=self.writes_rationales(phase))
        return [decoding for decoding in decodings if decoding.rationales is None or not is_pointer]

    def resolve_precision(self, *, on_gpu: bool) -> "TrainConfig":
        """Returns the configuration with a definite precision, which a resumed run keeps on any machine.

        Args:
            on_gpu: True resolves `auto` and None for a GPU, False for this machine.
        """
        is_fast = on_gpu and self.model.precision in (None, "auto")
        precision = "bfloat16_autocast" if is_fast else self.model.computed_in
        model = msgspec.structs.replace(self.model, precision=precision)
        return msgspec.structs.replace(self, model=model)

    @property
    def reward_config(self) -> RewardConfig:
        """The numbers of the run's reward."""
        return reward_preset(self.reward)

    @property
    def evaluation_config(self) -> scored_steps.EvaluationConfig:
        """The configuration of the final table's evaluation."""
        return scored_steps.EvaluationConfig(
            store=self.store,
            split=self.evaluation.split,
            seed=self.seed if self.evaluation.seed is None else self.evaluation.seed,
            sessions=self.evaluation.sessions,
            context=self.context,
            reward=self.reward,
            metrics=self.evaluation.metrics,
            inferred=self.inferred,
            likelihood=any(
                decoding.rationales is not None for name in self.phases for decoding in self.get_decodings(name)
            ),
        )

    @property
    def rewards_rationales(self) -> bool:
        """True if the reward of a phase depends on rationales."""
        phases = (phase for phase in self.phases.values() if isinstance(phase.hyperparameters, GrpoConfig))
        rewards = [phase.get_reward(self.reward_config) for phase in phases]
        return any(
            reward.self_certainty_weight > 0 or reward.requires_rationale or reward == LOG_LIKELIHOOD
            for reward in rewards
        )
