"""A training run: from a store to a checkpoint for each phase, one after the other.

    store ─► tokenizer and model ─► sft ─┬─► shop_r1      GRPO against the frozen sft
                                         └─► sft_longer   SFT that goes on for as long as GRPO took

Those are the phases of the preset tiny_cpu; which there are is data (config.PhaseConfig, train/presets/rows).
`phases.json` in the run's folder says which phases are finished; a resumed run goes on with the first that is not.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from agents.llm_grpo.agent import PolicyAgent
from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.phases import Phase, PhaseResult, Trainer, run_phase
from agents.llm_grpo.rollouts import READ_MODEL, vllm_engine
from agents.llm_grpo.shared_evaluation import evaluate_shared
from agents.llm_grpo.training_data import TrainingData, first_info
from replay_sessions.errors import BadConfig, CheckpointMismatch
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from shop_env.metrics import step_metrics
from train.attention.choice import Passes, choose_passes
from train.checkpoints import CheckpointInfo, load_checkpoint, save_checkpoint, save_model
from train.config import SftConfig, SftStage
from train.grpo.trainer import GrpoTrainer
from train.loop import validation_steps
from train.lora import add_adapter, has_adapter
from train.models import load_model
from train.policy import Policy, autocast_dtype
from train.precision import precision_line
from train.ranks import ALONE, Ranks
from train.rollout_engines.sampling import RolloutEngine
from train.rollout_engines.vllm import VllmEngine
from train.run_log import RunLog
from train.session_tree import enable_tree_attention
from train.sft import SftTrainer
from train.sharding import ShardedPolicy
from train.tiny import build_model, train_tokenizer

__all__ = ["TrainingRun"]

PHASES_FILE = "phases.json"


class TrainingRun:
    """One run in `folder`, of one process or of several that each hold one of these.

    Attributes:
        results: The finished phases by name.

    Raises:
        BadConfig: vLLM is to sample in several processes.
    """

    def __init__(
        self, config: TrainConfig, store: SessionStore, folder: Path, log: RunLog, ranks: Ranks = ALONE
    ) -> None:
        if config.rollouts.engine == "vllm" and not ranks.alone:
            raise BadConfig("rollouts.engine 'vllm' samples in a run of one process; launch one, or take 'local'.")
        self.config, self.store, self.folder, self.log, self.ranks = config, store, folder, log, ranks
        self.results = self._finished_phases()
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._data = TrainingData(store, folder / "tokens", log.say)
        self._vllm: VllmEngine | None = None
        self._told = ""

    def train(self) -> None:
        """Runs every phase that is not finished."""
        if self.config.model.path is not None:
            self.log.say(precision_line(self.config.model.computed_in))
        for name in self.config.phases:
            if name not in self.results:
                self._run(name)

    def checkpoint(self, name: str) -> Path:
        """Where a phase's checkpoint lies."""
        return self.folder / name

    def _run(self, name: str) -> None:
        phase = self._phase(name)
        result = run_phase(phase, self.folder, self.log, self.config.save_every_s)
        self.results[name] = result
        if self.ranks.writes:
            self._write_finished_phases()
        if result.steps:
            self.log.say(
                f"{name}: {result.steps} steps in {result.seconds:.0f} s of training, kept step {result.best_step}"
            )

    def _phase(self, name: str) -> Phase:
        config = self.config.phases[name]
        model, tokenizer, started_from = self._start(config.start)
        if self.config.model.lora is not None and config.method != "none" and not has_adapter(model):
            model = add_adapter(model, self.config.model.lora, seed=self.config.seed)
        info = msgspec.structs.replace(started_from, context=self.config.context_of(name))
        policy = self._policy(name, model, info) if config.method != "none" else Policy(model)
        trainer, total_steps = self._trainer(name, policy, tokenizer, info)
        rule = config.validation or self.config.validation
        validation_sessions = len(self.store.session_ids("validation"))

        def validate() -> float:
            self.log.note(f"validating on {min(rule.sessions, validation_sessions)} sessions")
            with policy.whole() as whole:
                records = evaluate_shared(
                    self.ranks,
                    PolicyAgent(policy=(whole.model, tokenizer, info)),
                    self.store,
                    "validation",
                    context=info.context,
                    reward=self.config.reward_config,
                    seed=self.config.seed,
                    max_sessions=rule.sessions,
                )
            return step_metrics(records)["exact_accuracy"]

        def save(step: int) -> None:
            made_by = msgspec.structs.replace(info, made_by=f"{name} step {step}")
            with policy.whole() as whole:
                if self.ranks.writes:
                    save_checkpoint(self.folder / name, whole.model, tokenizer, made_by)
                self.ranks.meet()

        times = rule.times if total_steps and validation_sessions else 0
        validate_at = validation_steps(total_steps, times, throughout=rule.when == "throughout") if times else set()
        return Phase(name, model, trainer, total_steps, validate_at, rule.patience, validate, save, self.ranks)

    def _policy(self, name: str, model: Any, info: CheckpointInfo) -> Policy:
        """What learns: the model whole in each process, or laid over several."""
        config, passes, autocast = self.config.model, self._passes(name, model), autocast_dtype(info.precision)
        if self._lays_out:
            return ShardedPolicy(
                model,
                self.ranks,
                autocast=autocast,
                gradient_checkpointing=config.gradient_checkpointing,
                attention=passes.attention,
            )
        return Policy(
            model,
            autocast=autocast,
            gradient_checkpointing=config.gradient_checkpointing,
            stretch_tokens=passes.stretch_tokens,
            attention=passes.attention,
        )

    @property
    def _lays_out(self) -> bool:
        return self.config.model.sharded and not self.ranks.alone

    def _trainer(self, name: str, policy: Policy, tokenizer: Any, info: CheckpointInfo) -> tuple[Trainer | None, int]:
        """What takes the steps of a phase, and how many; no one takes any where weights are tested as they are."""
        config = self.config.phases[name]
        if config.method == "none":
            return None, 0
        limit = self.config.prompt_tokens_of(name)
        seed, ranks = self.config.seed + config.seed, self.ranks
        if ranks.writes:
            self._data.trunks(tokenizer, info, teach_rationales=config.teach_rationales, limit=limit)
        ranks.meet()  # from here on the tokens are in a file
        trunks = self._data.trunks(tokenizer, info, teach_rationales=config.teach_rationales, limit=limit)
        if config.method == "sft":
            sft = SftTrainer(policy, trunks, self._sft_config(name), seed=seed, ranks=ranks)
            return sft, sft.total_steps
        grpo, reward = self.config.grpo_of(name), self.config.reward_of(name)
        reference, engine = policy.frozen(), self._engine(policy.model)
        trainer = GrpoTrainer(policy, reference, tokenizer, trunks, grpo, reward, seed=seed, engine=engine, ranks=ranks)
        return trainer, grpo.steps

    def _passes(self, name: str, model: Any) -> Passes:
        """How a phase's policy attends; told where it is another way than the phase's before."""
        config = self.config.model
        numbers = self.config.sft_of(name) if self.config.phases[name].method == "sft" else self.config.grpo_of(name)
        passes = choose_passes(
            model,
            config.attention,
            stretch_tokens=config.stretch_tokens,
            autocast=autocast_dtype(config.computed_in),
            recomputed=config.gradient_checkpointing,
            tokens=numbers.max_batch_tokens,
            whole_packs=self._lays_out,
        )
        if passes.line != self._told:
            self.log.say(passes.line)
        self._told = passes.line
        return passes

    def _engine(self, model: Any) -> RolloutEngine | None:
        """What samples for all phases of GRPO, where that is not the policy itself; it is given each one's weights."""
        if self._vllm is None and self.config.rollouts.engine == "vllm":
            self._vllm = vllm_engine(self.config, model, self.folder)
        return self._vllm

    def _sft_config(self, name: str) -> SftConfig:
        config, phase = self.config.sft_of(name), self.config.phases[name]
        if phase.same_time_as is None:
            return config
        other, start = phase.same_time_as, phase.start
        steps = self.ranks.first(lambda: self._steps_in_time_of(other, started_from=start))
        return msgspec.structs.replace(config, stages=(SftStage(steps=steps),))

    def _steps_in_time_of(self, name: str, *, started_from: str) -> int:
        """How many SFT steps take as long as a phase took, by what a whole-session SFT step took in this run."""
        last_stage = self.config.sft_of(started_from).stages[-1].steps or 0  # on whole sessions; in epochs: all of it
        sft = self.log.rows(started_from)[-last_stage:]
        return max(1, round(undisturbed_seconds(self.log.rows(name)) * len(sft) / undisturbed_seconds(sft)))

    def _start(self, start: str) -> tuple[Any, Any, CheckpointInfo]:
        """The model that a phase starts from, its tokenizer, and how it was asked so far."""
        config = self.config
        if start != "model":
            return load_checkpoint(self.folder / start, self._device)
        info = first_info(config, self.store)
        if config.model.path is not None:
            return *self._given_model(config.model.path), info
        tokenizer = train_tokenizer(self.store.sessions("train"), config.model.tokenizer, config.prompt)
        model = build_model(tokenizer, config.model.tiny, config.seed).to(self._device)
        enable_tree_attention(model)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        self.log.say(f"model: {parameters:,} parameters, {len(tokenizer)} tokens, made for this store")
        return model, tokenizer, info

    def _given_model(self, path: str) -> tuple[Any, Any]:
        """The model of [model] path; from a GGUF file, which takes long to read, by way of a folder in the run's."""
        limit = self.config.model.max_tokens
        read = self.folder / READ_MODEL
        if not path.endswith(".gguf"):
            return load_model(path, max_tokens=limit, device=self._device)
        if self.ranks.first(lambda: not read.exists()):
            self.log.say(f"model: reading {path}")
            model, tokenizer = load_model(path, max_tokens=limit, device=self._device)
            if self.ranks.writes:
                save_model(read, model, tokenizer)
            self.ranks.meet()
            return model, tokenizer
        model, tokenizer = load_model(str(read), max_tokens=limit, device=self._device)
        model.name_or_path = path  # what an adapter names as its base, wherever the run is moved
        return model, tokenizer

    def _finished_phases(self) -> dict[str, PhaseResult]:
        file = self.folder / PHASES_FILE
        if not file.exists():
            return {}
        try:
            return msgspec.json.decode(file.read_bytes(), type=dict[str, PhaseResult])
        except msgspec.DecodeError as error:
            raise CheckpointMismatch(f"'{file}' is damaged ({error}); start the run anew.") from error

    def _write_finished_phases(self) -> None:
        content = msgspec.json.format(msgspec.json.encode(self.results), indent=2)
        replace_file(self.folder / PHASES_FILE, content + b"\n")


def undisturbed_seconds(steps: Sequence[Mapping[str, Any]]) -> float:
    """What training steps take on a machine that does nothing else: their tokens, at the speed of the fastest tenth.

    What they did take is other programs' work too, and a suspended machine's sleep: luck, for whoever compares.

    >>> steps = [{"tokens": 1000, "tokens_per_s": 500.0}] * 4 + [{"tokens": 1000, "tokens_per_s": 2.0}] * 16
    >>> undisturbed_seconds(steps)
    40.0
    """
    return float(sum(step["tokens"] for step in steps) / np.quantile([step["tokens_per_s"] for step in steps], 0.9))
