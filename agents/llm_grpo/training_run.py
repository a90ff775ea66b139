"""A training run: from a store to the checkpoints sft, shop_r1 and sft_longer, phase by phase.

    store ─► tokenizer and model ─► sft ─┬─► shop_r1      GRPO against the frozen sft
                                         └─► sft_longer   SFT that goes on for as long as GRPO took

`phases.json` in the run's folder says which phases are finished; a resumed run goes on with the first that is not.
"""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import torch

from agents.evaluate import evaluate
from agents.llm_grpo.agent import PolicyAgent
from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.phases import Phase, PhaseResult, Trainer, run_phase
from replay_sessions.errors import BadConfig, CheckpointMismatch
from replay_sessions.store import SessionStore
from shop_env.metrics import step_metrics
from shop_env.personas import persona_texts
from train.checkpoints import CheckpointInfo, load_checkpoint, save_checkpoint
from train.grpo.trainer import GrpoTrainer
from train.models import load_model
from train.policy import Policy
from train.run_log import RunLog
from train.session_tree import enable_tree_attention
from train.sft import SftConfig, SftStage, SftTrainer
from train.tiny import build_model, train_tokenizer
from train.tokens import SessionTokens, tokenize_session

__all__ = ["TrainingRun"]

PHASES_FILE = "phases.json"
EVALUATION_BATCH = 2048  # steps asked about at once; those of one session share a trunk


class TrainingRun:
    """One run in `folder`.

    Attributes:
        results: The finished phases by name.
    """

    def __init__(self, config: TrainConfig, store: SessionStore, folder: Path, log: RunLog) -> None:
        self.config, self.store, self.folder, self.log = config, store, folder, log
        self.results = self._finished_phases()
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._trunks: list[SessionTokens] | None = None

    def train(self) -> None:
        """Runs every phase that is not finished."""
        self._run("sft")
        if self.config.grpo is not None:
            self._run("shop_r1")
        if self.config.sft_longer is not None:
            self._run("sft_longer")

    def checkpoint(self, name: str) -> Path:
        """Where a phase's checkpoint lies."""
        return self.folder / name

    def _run(self, name: str) -> None:
        if name in self.results:
            return
        phase = {"sft": self._sft, "shop_r1": self._shop_r1, "sft_longer": self._sft_longer}[name]()
        result = run_phase(phase, self.folder, self.log, self.config.save_every_s)
        self.results[name] = result
        self._write_finished_phases()
        self.log.say(
            f"{name}: {result.steps} steps in {result.seconds:.0f} s of training, kept step {result.best_step}"
        )

    def _sft(self) -> Phase:
        model, tokenizer, info = self._start()
        trunks = self._tokenized(tokenizer, info)
        trainer = SftTrainer(Policy(model), trunks, self.config.sft, seed=self.config.seed)
        return self._phase("sft", model, tokenizer, info, trainer, self.config.sft.total_steps)

    def _shop_r1(self) -> Phase:
        assert self.config.grpo is not None, "checked by train()"
        model, tokenizer, info = load_checkpoint(self.folder / "sft", self._device)
        reference, _, _ = load_checkpoint(self.folder / "sft", self._device)
        trainer = GrpoTrainer(
            Policy(model),
            Policy(reference).requires_grad_(False).eval(),
            tokenizer,
            self._tokenized(tokenizer, info),
            self.config.grpo,
            self.config.reward_config,
            seed=self.config.seed,
        )
        return self._phase("shop_r1", model, tokenizer, info, trainer, self.config.grpo.steps)

    def _sft_longer(self) -> Phase:
        assert self.config.sft_longer is not None, "checked by train()"
        model, tokenizer, info = load_checkpoint(self.folder / "sft", self._device)
        steps = self.config.sft_longer.steps or self._steps_in_grpo_time()
        config = SftConfig(
            optimizer=self.config.sft_longer.optimizer,
            stages=(SftStage(steps=steps),),
            sessions_per_batch=self.config.sft.sessions_per_batch,
            tokens_per_batch=self.config.sft.tokens_per_batch,
        )
        trainer = SftTrainer(Policy(model), self._tokenized(tokenizer, info), config, seed=self.config.seed + 1)
        return self._phase("sft_longer", model, tokenizer, info, trainer, steps)

    def _steps_in_grpo_time(self) -> int:
        """How many SFT steps take as long as GRPO took, by what a whole-session SFT step took in this run."""
        if "shop_r1" not in self.results:
            raise BadConfig("sft_longer without steps follows the time of GRPO, but there is no [grpo]; set its steps.")
        last_stage = self.config.sft.stages[-1].steps  # on whole sessions, as the longer SFT is
        seconds: list[float] = [row["seconds"] for row in self.log.rows("sft")][-last_stage:]
        return max(1, round(self.results["shop_r1"].seconds * len(seconds) / float(sum(seconds))))

    def _phase(
        self, name: str, model: Any, tokenizer: Any, info: CheckpointInfo, trainer: Trainer, total_steps: int
    ) -> Phase:
        def validate() -> float:
            agent = PolicyAgent(policy=(model, tokenizer, info))
            records = evaluate(
                agent,
                self.store,
                "validation",
                context=info.context,
                reward=self.config.reward_config,
                seed=self.config.seed,
                max_sessions=self.config.validation.sessions,
                batch_size=EVALUATION_BATCH,
            )
            return step_metrics(records)["exact_accuracy"]

        def save(step: int) -> None:
            made_by = f"{name} step {step}"
            save_checkpoint(self.folder / name, model, tokenizer, msgspec.structs.replace(info, made_by=made_by))

        validations = self.config.validation.times if self.store.session_ids("validation") else 0
        return Phase(name, model, trainer, total_steps, validations, validate, save)

    def _start(self) -> tuple[Any, Any, CheckpointInfo]:
        """The model that SFT starts from, and its tokenizer."""
        config = self.config
        info = CheckpointInfo(
            made_by="start",
            store_fingerprint=self.store.fingerprint,
            context=config.context,
            prompt=config.prompt,
            temperature=config.evaluation.temperature,
            max_new_tokens=config.model.max_new_tokens,
            max_tokens=config.model.max_tokens,
            own_tokenizer=config.model.path is None,
        )
        if config.model.path is not None:
            model, tokenizer = load_model(config.model.path, device=self._device)
            return model, tokenizer, info
        tokenizer = train_tokenizer(self.store.sessions("train"), config.model.tokenizer, config.prompt)
        model = build_model(tokenizer, config.model.tiny, config.seed).to(self._device)
        enable_tree_attention(model)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        self.log.say(f"model: {parameters:,} parameters, {len(tokenizer)} tokens, made for this store")
        return model, tokenizer, info

    def _tokenized(self, tokenizer: Any, info: CheckpointInfo) -> list[SessionTokens]:
        """The training sessions as trunks; says what did not fit."""
        if self._trunks is None:
            sessions = steps = 0
            self._trunks = []
            personas = persona_texts(self.store, info.context)
            for session in self.store.sessions("train"):
                self._trunks += tokenize_session(
                    tokenizer, session, info.context, info.prompt, info.max_tokens, personas
                )
                sessions += 1
                steps += len(session.steps)
            kept = sum(len(trunk.replies) for trunk in self._trunks)
            tokens = sum(len(trunk.tokens) for trunk in self._trunks)
            self.log.say(f"train split: {sessions} sessions, {kept} steps, {tokens:,} tokens")
            if kept < steps:
                self.log.say(f"left out: {steps - kept} steps whose page does not fit {info.max_tokens} tokens")
        return self._trunks

    def _finished_phases(self) -> dict[str, PhaseResult]:
        file = self.folder / PHASES_FILE
        if not file.exists():
            return {}
        try:
            return msgspec.json.decode(file.read_bytes(), type=dict[str, PhaseResult])
        except msgspec.DecodeError as error:
            raise CheckpointMismatch(f"'{file}' is damaged ({error}); start the run anew.") from error

    def _write_finished_phases(self) -> None:
        partial = self.folder / (PHASES_FILE + ".partial")
        partial.write_text(json.dumps(msgspec.to_builtins(self.results), indent=2) + "\n", encoding="utf-8")
        os.replace(partial, self.folder / PHASES_FILE)
