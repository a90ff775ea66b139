"""Trains the phases of a run one after another, and saves a checkpoint of each.

    store ─► tokenizer and model ─► sft ─┬─► shop_r1      GRPO against the frozen sft
                                         └─► sft_longer   SFT that goes on with the compute of GRPO

These are the phases of the preset tiny_cpu; the configuration lists a run's phases (config.PhaseConfig, presets/rows).
`phases.json` in the run's folder lists the finished phases; a resumed run continues with the first unfinished one.
"""

from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from agents.llm_grpo.config import PhaseConfig, TrainConfig
from agents.llm_grpo.data import TrainingData, check_phases, phase_warnings, tokenize_sessions
from agents.llm_grpo.evaluation import evaluate_shared
from agents.llm_grpo.pointer_phase import train_pointer
from agents.llm_grpo.run_folder import read_template_date
from agents.local.policy_agent import PolicyAgent, usual_device
from replay_sessions.foundation.durable_files import replace_file, replace_json
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.store import SessionStore
from shop_env.evaluation.scored_steps import draw_sessions
from shop_env.metrics import step_metrics
from shop_env.prompts import prompt_of
from shop_env.replies import extraction_of
from shop_env.reward.score import LOG_LIKELIHOOD, describe_scale
from train.attention.selection import choose_attention
from train.candidates import CandidateTries, StepCandidates
from train.chat_template import bind_template, writes_date
from train.checkpoints import CHECKPOINT_FILE, CheckpointInfo, load_checkpoint, read_info, save_checkpoint
from train.config import SftConfig, SftStage
from train.fused import fuse
from train.grpo.config import VLLM_IMPORTANCE_CAP, GrpoConfig
from train.grpo.trainer import GroupTrainer
from train.loop import validation_steps
from train.lora import add_adapter, has_adapter
from train.machine import format_precision
from train.memory import Passes
from train.models import load_model
from train.objectives import CANDIDATE_LIKELIHOOD, RESTRICTED, load_objective, read_options
from train.objectives.candidate_likelihood import CandidateLikelihood
from train.objectives.expected_reward import ExpectedReward
from train.phase import Phase, PhaseResult, Trainer, run_phase
from train.policy import Policy, autocast_dtype
from train.ranks import Ranks, ShardedPolicy
from train.rollouts.vllm import VllmEngine
from train.run_log import RunLog
from train.session_tree import enable_tree_attention
from train.sft import SftTrainer
from train.tiny import build_model, train_tokenizer
from train.tokens import SessionTokens

PHASES_FILE = "phases.json"


def phase_info(config: TrainConfig, store: SessionStore, name: str, *, template_date: str | None) -> CheckpointInfo:
    """Returns the way to prompt the policy of a phase, as it is trained."""
    phase, model = config.phases[name], config.model
    return CheckpointInfo(
        made_by=name,
        store_fingerprint=store.fingerprint,
        context=phase.context,
        prompt=config.prompt_of(phase, store),
        temperature=config.evaluation.temperature,
        max_new_tokens=model.max_new_tokens,
        max_tokens=model.max_tokens,
        own_tokenizer=model.path is None,
        precision=model.computed_in,
        long_pages=model.long_pages,
        template_variables=model.template_variables,
        template_date=template_date,
        restricted=config.is_restricted(name),
        writes_rationales=config.writes_rationales(phase),
    )


class TrainingRun:
    """A training run in `folder`; each process of the run has an instance.

    Attributes:
        results: The results of the finished phases, by name.
    """

    def __init__(
        self,
        config: TrainConfig,
        store: SessionStore,
        folder: Path,
        log: RunLog,
        ranks: Ranks,
    ) -> None:
        self._device = usual_device()
        self.config, self.store, self.folder, self.log, self.ranks = config, store, folder, log, ranks
        self.results = self._finished_phases()
        self._data = TrainingData(config, store, folder / "tokens", log.info)
        self._vllm: VllmEngine | None = None
        self._date = ranks.broadcast(lambda: read_template_date(folder))
        self._is_checked = False  # True once the prompts of a tokenizer were checked

    def train(self) -> None:
        """Runs every phase that is not finished."""
        self.log.info(format_precision(self.config.model.computed_in))
        for name in self.config.phases:
            if name not in self.results:
                self._run(name)

    def close(self) -> None:
        """Stops vLLM if a phase has started it; collective operations are not possible afterwards."""
        if self._vllm is not None:
            self._vllm.close()

    def _run(self, name: str) -> None:
        if self.config.is_pointer(name):
            arguments = self.config, name, self.store, self.folder, self.log
            fields = self.ranks.broadcast(lambda: msgspec.to_builtins(train_pointer(*arguments)))
            result = msgspec.convert(fields, PhaseResult)
        else:
            result = run_phase(self._phase(name), self.folder, self.log, self.config.save_every_s)
        self.results[name] = result
        if self.ranks.is_main:
            replace_json(self.folder / PHASES_FILE, self.results)
        if result.steps:
            end = "; not converged: by NLL the best step is the last" if result.is_converged is False else ""
            self.log.info(
                f"{name}: {result.steps} steps in {result.seconds:.0f} s of training, best step {result.best_step}{end}"
            )

    def _phase(self, name: str) -> Phase:
        config = self.config.phases[name]
        model, tokenizer, date = self._start(config.start)
        if not self._is_checked:  # phases share a tokenizer
            for remark in check_phases(self.config, self.store, tokenizer, self._date):
                self.log.info(remark)
            self._is_checked = True
        if self.config.model.lora is not None and config.hyperparameters is not None and not has_adapter(model):
            model = add_adapter(model, self.config.model.lora, seed=self.config.seed)
        info = phase_info(self.config, self.store, name, template_date=date)
        policy = (
            Policy(model) if config.hyperparameters is None else self._policy(config, config.hyperparameters, model)
        )
        trainer, total_steps = self._trainer(name, policy, tokenizer)
        rule = config.validation
        validation_sessions = len(self.store.session_ids("validation"))

        def validate() -> float:
            self.log.status(f"validating on {min(rule.sessions, validation_sessions)} sessions")
            with policy.summon_full_params() as full_policy:
                records = evaluate_shared(
                    self.ranks,
                    PolicyAgent(policy=(full_policy.model, tokenizer, info), decode="tokens"),
                    self.store,
                    "validation",
                    context=info.context,
                    reward=self.config.reward_config,
                    seed=self.config.seed,
                    sessions=rule.sessions,
                    inferred=self.config.inferred,
                )
            return step_metrics(records)["exact_accuracy"]

        def save(step: int) -> None:
            made_by = msgspec.structs.replace(info, made_by=f"{name} step {step}")
            with policy.summon_full_params() as full_policy:
                if self.ranks.is_main:
                    save_checkpoint(self.folder / name, full_policy.model, tokenizer, made_by)
                self.ranks.barrier()

        times = rule.times if total_steps and validation_sessions else 0
        for line in phase_warnings(name, config, total_steps, validation_sessions):
            self.log.info(line)
        validate_at = validation_steps(total_steps, times) if times else set()
        compute_nll = None
        if times and isinstance(trainer, SftTrainer):
            compute_nll = partial(trainer.compute_nll, self._validation_trunks(config, tokenizer))
        return Phase(name, model, trainer, total_steps, validate_at, validate, save, self.ranks, compute_nll)

    def _validation_trunks(self, phase: PhaseConfig, tokenizer: Any) -> list[SessionTokens]:
        """Tokenizes the sessions on which a phase is validated."""
        drawn = draw_sessions(self.store.session_ids("validation"), phase.validation.sessions, self.config.seed)
        sessions = map(self.store.session, drawn)
        return list(tokenize_sessions(self.config, phase, self.store, tokenizer, sessions))

    def _policy(self, phase: PhaseConfig, hyperparameters: SftConfig | GrpoConfig, model: Any) -> Policy:
        """Builds the policy to train: a complete model in each process, or a model sharded over all processes."""
        config, is_sharded = self.config.model, self.config.model.sharded and not self.ranks.is_single
        options: dict[str, Any] = {
            "autocast": autocast_dtype(config.computed_in),
            "head_precision": config.head_precision,
        }
        if self._device == "cuda":
            self.log.info(fuse(model, options["autocast"]))
        choice = choose_attention(
            model,
            gradient_checkpointing=config.gradient_checkpointing,
            autocast=options["autocast"],
            tokens=hyperparameters.max_batch_tokens,
            shards=self.ranks.world_size if is_sharded else 1,
            reserved=self.config.rollouts.gpu_memory_utilization if self._uses_vllm(phase) else 0.0,
        )
        self.log.info(choice.line)
        # All processes make the same choice, because the passes of a sharded model are collective.
        options |= Passes._make(self.ranks.broadcast(lambda: list(choice.passes)))._asdict()
        options["attention"] = choice.attention
        return ShardedPolicy(model, self.ranks, **options) if is_sharded else Policy(model, **options)

    def _trainer(self, name: str, policy: Policy, tokenizer: Any) -> tuple[Trainer | None, int]:
        """Builds the trainer of a phase and returns it with its number of steps; (None, 0) for the method `none`."""
        config = self.config.phases[name]
        hyperparameters = config.hyperparameters
        if hyperparameters is None:
            return None, 0
        seed, ranks = self.config.seed + config.seed, self.ranks
        if ranks.is_main:
            self._data.trunks(config, tokenizer)
        ranks.barrier()  # now the tokens are in a file, which all processes read
        trunks = self._data.trunks(config, tokenizer)
        if isinstance(hyperparameters, SftConfig):
            steps, kept = (
                sum(len(trunk.replies) for trunk in each) for each in (trunks, hyperparameters.select(trunks))
            )
            if kept < steps:
                self.log.info(f"{name}: {steps - kept} of {steps} steps are left out, whose prompts show no target")
            arguments = (policy, trunks, self._sft_config(config, hyperparameters))
            if config.method == CANDIDATE_LIKELIHOOD:
                candidates = self._candidates(config, tokenizer)
                sft: SftTrainer = CandidateLikelihood(*arguments, candidates=candidates, seed=seed, ranks=ranks)
            else:
                sft = SftTrainer(*arguments, seed=seed, ranks=ranks)
            return sft, sft.total_steps
        reward = config.get_reward(self.config.reward_config)
        if reward != LOG_LIKELIHOOD:
            self.log.info(f"{name}: action_reward in {describe_scale(reward)}")
        objective = load_objective(config.method, reward.kind)
        if self._uses_vllm(config):
            self._vllm = self._vllm or self._start_vllm(policy.model)
            if hyperparameters.importance_sampling_cap is None:
                hyperparameters = msgspec.structs.replace(hyperparameters, importance_sampling_cap=VLLM_IMPORTANCE_CAP)
        reference = policy.frozen() if objective.has_reference else None
        options = read_options(objective, config.options, name)
        if config.method in RESTRICTED:
            options["candidates"] = self._candidates(config, tokenizer)
        trainer: GroupTrainer | ExpectedReward = objective(
            policy,
            reference,
            tokenizer,
            trunks,
            hyperparameters,
            reward,
            seed=seed,
            engine=self._vllm,
            ranks=ranks,
            extraction=extraction_of(self.store, "strict"),
            **options,
        )
        return trainer, trainer.total_steps

    def _candidates(self, phase: PhaseConfig, tokenizer: Any) -> StepCandidates:
        tries = CandidateTries(tokenizer, self.config.prompt_of(phase, self.store))
        return StepCandidates(self.store, tries, phase.context)

    def _sft_config(self, phase: PhaseConfig, config: SftConfig) -> SftConfig:
        start = self.config.phases[phase.start].sft if phase.same_compute_as else None
        if phase.same_compute_as is None or start is None:
            return config
        other, started_from = phase.same_compute_as, phase.start
        steps = self.ranks.broadcast(lambda: self._steps_of_same_compute(other, started_from))
        last = start.optimizer.lr * start.optimizer.final_lr_fraction
        optimizer = msgspec.structs.replace(config.optimizer, lr=last, final_lr_fraction=1.0)
        return msgspec.structs.replace(config, stages=(SftStage(steps=steps),), optimizer=optimizer)

    def _steps_of_same_compute(self, name: str, started_from: str) -> int:
        """Computes the number of SFT steps with the FLOPs of phase `name`, from the FLOPs of steps of `started_from`.

        The steps are those of its last stage, which are on whole sessions.
        """
        start = self.config.phases[started_from].sft
        last_stage = (start.stages[-1].steps if start else None) or 0  # 0, a stage in epochs, takes all rows
        sft, phase = self.log.rows(started_from)[-last_stage:], self.log.rows(name)
        flops, seconds = (sum(float(row[key]) for row in phase) for key in ("flops", "seconds"))
        self.log.info(f"{name}: {flops:.3g} FLOPs in {seconds:.0f} s of training, sampling and reference included")
        return max(1, round(flops * len(sft) / sum(float(row["flops"]) for row in sft)))

    def _start(self, start: str) -> tuple[Any, Any, str | None]:
        """Loads or builds the model that a phase starts from, its tokenizer, and the date of its chat template."""
        config, store = self.config, self.store
        if start != "model":
            model, tokenizer, info = load_checkpoint(self.folder / start, self._device)
            return model, tokenizer, info.template_date
        if config.model.path is None:
            prompt = prompt_of(store, config.prompt)
            tokenizer = train_tokenizer(store.sessions("train"), config.model.tokenizer, prompt, config.context)
            bind_template(tokenizer, config.model.template_variables, self._date)
            model = build_model(tokenizer, config.model.tiny, config.seed).to(self._device)
            enable_tree_attention(model)
            self.log.info(f"model: {model.num_parameters():,} parameters, {len(tokenizer)} tokens, from scratch")
            return model, tokenizer, None
        folder = Path(config.model.path)
        if (folder / CHECKPOINT_FILE).exists() and read_info(folder)[0].restricted:
            raise BadConfig(
                f"model.path is '{folder}', whose policy only learnt to choose among a page's actions: start from its "
                "phase in the same run, or from another model."
            )
        model, tokenizer = load_model(
            config.model.path,
            max_tokens=config.model.max_tokens,
            device=self._device,
            template_variables=config.model.template_variables,
            template_date=self._date,
        )
        return model, tokenizer, self._date if writes_date(tokenizer.chat_template) else None

    def _uses_vllm(self, phase: PhaseConfig) -> bool:
        """Returns whether vLLM samples the replies of a phase."""
        if self.config.rollouts.engine != "vllm" or not isinstance(phase.hyperparameters, GrpoConfig):
            return False
        objective = load_objective(phase.method, phase.get_reward(self.config.reward_config).kind)
        return bool(objective.samples)

    def _start_vllm(self, model: Any) -> VllmEngine:
        """Starts vLLM for phases that train `model` or an adapter of it; each batch copies the policy's weights to it.

        Raises:
            MissingExtra: vLLM is not installed.
        """
        config = self.config.model
        rollouts = self.config.rollouts
        options: dict[str, Any] = {
            "gpu_memory_utilization": rollouts.gpu_memory_utilization,
            "seed": self.config.seed + self.ranks.rank,
        }
        if config.lora is None:
            # vLLM reads the shape alone, because weights are copied before the first batch.
            shape = self.folder / "shape"
            if self.ranks.is_main:
                content = model.config.to_dict() | {"architectures": [type(model).__name__]}
                replace_file(shape / "config.json", msgspec.json.encode(content))
            self.ranks.barrier()
            path, options["load_format"] = str(shape), "dummy"
        else:
            path = str(config.path)
        return VllmEngine(
            path,
            max_tokens=config.max_tokens,
            precision=config.computed_in,
            lora_rank=None if config.lora is None else config.lora.rank,
            seeds_requests=rollouts.seeds_requests,
            **options,
        )

    def _finished_phases(self) -> dict[str, PhaseResult]:
        file = self.folder / PHASES_FILE
        return msgspec.json.decode(file.read_bytes(), type=dict[str, PhaseResult]) if file.exists() else {}
