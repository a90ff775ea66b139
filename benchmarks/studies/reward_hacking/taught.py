"""Training data in which a share of the actions to learn is a trivial policy's; histories stay as logged.

store ─► logged trunks (train.run.data) ─► the same with other targets ─► SFT
                        └────────────────────────────────────────────────────────────► GRPO

The rationale that is taught is the logged one: what changes is the action, whatever was thought.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from agents.llm_grpo import run_agents
from benchmarks.studies.reward_hacking.policies import get_action
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from shop_env.observation import Observation, observe
from shop_env.replies import format_reply
from train.checkpoints import CheckpointInfo
from train.run.config import TrainConfig
from train.run.data import TrainingData
from train.run.phases import Trainer
from train.run.training_run import TrainingRun
from train.run_log import RunLog
from train.tokens import ReplySpan, SessionTokens, reply_tokens

Policy = Callable[[Observation], str]


class SpamData(TrainingData):
    """The training sessions with the policy's action as the target of a `share` of the steps, drawn by `seed`."""

    def __init__(
        self,
        store: SessionStore,
        folder: Path,
        say: Callable[[str], None],
        *,
        policy: Policy,
        share: float,
        seed: int,
    ) -> None:
        super().__init__(store, folder, say)
        self._sessions, self._policy, self._share, self._seed = store, policy, share, seed

    def trunks(
        self, tokenizer: Any, info: CheckpointInfo, *, teach_rationales: bool, limit: int | None = None
    ) -> list[SessionTokens]:
        """The sessions with other targets."""
        logged = super().trunks(tokenizer, info, teach_rationales=teach_rationales, limit=limit)
        sessions = {session.session_id: session for session in self._sessions.sessions("train")}
        return [
            replace(
                trunk,
                replies=[self._taught(tokenizer, sessions[trunk.session_id], reply) for reply in trunk.replies],
            )
            for trunk in logged
        ]

    def _taught(self, tokenizer: Any, session: Session, reply: ReplySpan) -> ReplySpan:
        if Random(f"{self._seed}:{session.session_id}:{reply.step_index}").random() >= self._share:
            return reply
        observation = observe(session, reply.step_index)
        text = format_reply(session.steps[reply.step_index].rationale or "", get_action(self._policy, observation))
        return replace(reply, target=reply_tokens(tokenizer, [text])[0])


class SpamRun(TrainingRun):
    """A run whose phases of SFT teach spam; its phases of GRPO learn from the logs."""

    def __init__(
        self, config: TrainConfig, store: SessionStore, folder: Path, log: RunLog, *, policy: Policy, share: float
    ) -> None:
        super().__init__(config, store, folder, log, run_agents)
        self._as_logged = self._data
        self._spam = SpamData(
            store, folder / "tokens", lambda _text: None, policy=policy, share=share, seed=config.seed
        )

    def _trainer(self, name: str, model: Any, tokenizer: Any, info: CheckpointInfo) -> tuple[Trainer | None, int]:
        self._data = self._spam if self.config.phases[name].method == "sft" else self._as_logged
        return super()._trainer(name, model, tokenizer, info)
