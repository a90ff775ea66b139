"""Runs a phase of a pointer: a fit to the train split, or training by the expected reward from such a phase."""

import time
from pathlib import Path

import msgspec

from agents.llm_grpo.config import TrainConfig
from replay_sessions.store import SessionStore
from shop_env.train_view import TrainView
from train.phase import PhaseResult
from train.pointer.checkpoint import load_pointer, save_pointer
from train.pointer.fit import fit_pointer
from train.pointer.reward import train_on_reward
from train.run_log import RunLog


def train_pointer(config: TrainConfig, name: str, store: SessionStore, folder: Path, log: RunLog) -> PhaseResult:
    """Trains the pointer of a phase, and saves its checkpoint in `folder`; a stopped phase begins anew."""
    phase, began = config.phases[name], time.perf_counter()
    result = PhaseResult(steps=0, seconds=0.0, best_step=0, best_exact=None)

    def report(step: int, steps: int, metrics: dict[str, float]) -> None:
        nonlocal result
        if step == 1:
            log.start_phase(name, steps, 0)
        log.step(name, step, metrics)
        seconds = time.perf_counter() - began
        result = msgspec.structs.replace(result, steps=step, best_step=step, seconds=seconds)

    view, seed = TrainView(store, phase.context), config.seed + phase.seed
    if phase.grpo is None:
        pointer = fit_pointer(view, seed=seed, inferred=config.inferred, report=report)
        result = msgspec.structs.replace(result, best_step=pointer.best_epoch)
    else:
        pointer, _ = load_pointer(folder / phase.start)
        reward = phase.get_reward(config.reward_config)
        train_on_reward(pointer, view, phase.grpo, reward, seed=seed, inferred=config.inferred, report=report)
    log.flush()
    save_pointer(folder / name, pointer, made_by=name, store_fingerprint=view.fingerprint, context=view.context)
    return result
