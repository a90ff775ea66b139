"""A tiny policy and some tokenised sessions of the demo shop, made once for all tests of training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from replay_sessions.demo_shop import generate_sessions
from replay_sessions.schema import Session
from shop_env.observation import ContextConfig, Observation
from shop_env.prompts import PromptConfig
from train.checkpoints import CheckpointInfo
from train.config import TinyModelConfig, TinyTokenizerConfig
from train.memory import PassShape
from train.policy import Policy
from train.session_tree import PackedTrees, enable_tree_attention
from train.tiny import build_model, train_tokenizer
from train.tokens import SessionTokens, fit_prompt, tokenize_session

COMPACT = PromptConfig(style="compact")


def checkpoint_info(**fields: Any) -> CheckpointInfo:
    """How a checkpoint of the tiny model is asked, but for the fields given."""
    asked = CheckpointInfo(
        made_by="test",
        store_fingerprint="",
        context=ContextConfig(),
        prompt=COMPACT,
        temperature=0.6,
        max_new_tokens=12,
        max_tokens=4096,
        own_tokenizer=True,
    )
    return msgspec.structs.replace(asked, **fields)


def get_pass_shape(packed: PackedTrees) -> PassShape:
    """Returns the size of a pass over a pack."""
    return PassShape(packed.input_ids.numel(), len(packed.targets))


@dataclass(frozen=True)
class Tiny:
    """Fresh weights with grouped-query attention, a tokenizer, 24 sessions and their trunks."""

    model: Any
    tokenizer: Any
    sessions: list[Session]
    trunks: list[SessionTokens]

    def plain_model(self) -> Any:
        """The same weights with transformers' own attention."""
        model = build_model(self.tokenizer, self.model_config, seed=0)
        model.load_state_dict(self.model.state_dict())
        return model

    def save(self, folder: Path) -> None:
        """Writes the same as a folder that others can load."""
        self.plain_model().save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @property
    def model_config(self) -> TinyModelConfig:
        return TinyModelConfig(hidden_size=32, layers=2, heads=4, key_value_heads=2, intermediate_size=48)


def own_model(tiny: Tiny) -> Any:
    """A copy of the tiny model with session-tree attention."""
    model = tiny.plain_model()
    enable_tree_attention(model)
    return model


def learnt(policy: Policy, packed: PackedTrees) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The log-probabilities of all reply tokens, and the gradients of a weighted sum of them."""
    policy.zero_grad()
    count, device = len(packed.targets), packed.input_ids.device
    weights = torch.randn(count, generator=torch.Generator().manual_seed(0)).to(device) / count
    log_probs = policy.log_probs(packed, temperature=0.6)
    (log_probs * weights).sum().backward()
    gradients = {name: p.grad.clone() for name, p in policy.model.named_parameters() if p.grad is not None}
    return log_probs.detach(), gradients


def assert_same_gradients(model: Any, other: Any, tolerance: float = 1e-5) -> None:
    for (name, ours), (_, theirs) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        assert (ours.grad - theirs.grad).abs().max().item() < tolerance, name


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    return make_tiny()


def make_tiny() -> Tiny:
    """The same in every process."""
    sessions = list(generate_sessions(24, seed=3))
    tokenizer = train_tokenizer(sessions, TinyTokenizerConfig(min_count=2), COMPACT)
    config = TinyModelConfig(hidden_size=32, layers=2, heads=4, key_value_heads=2, intermediate_size=48)
    model = build_model(tokenizer, config, seed=0)
    enable_tree_attention(model)
    trunks = [
        trunk for session in sessions for trunk in tokenize_session(tokenizer, session, ContextConfig(), COMPACT, 4096)
    ]
    return Tiny(model, tokenizer, sessions, trunks)


def prompt_tokens(tokenizer: Any, observation: Observation, prompt: PromptConfig) -> list[int]:
    """The tokens of an observation's prompt, up to and including what the template puts before a reply."""
    fitted = fit_prompt(tokenizer, observation, prompt, 10**9)
    return fitted.tokens


def prompts(trunks: list[SessionTokens]) -> dict[int, list[int]]:
    """The tokens of each step's prompt."""
    return {reply.step_index: trunk.tokens[: reply.start] for trunk in trunks for reply in trunk.replies}
