"""Shop-R1's GRPO as one loop that is read from top to bottom, on the demo shop, in two minutes on two CPU cores.

    python docs/grpo_loop.py                    30 steps from the packaged SFT policy
    python docs/grpo_loop.py --steps 3 --validation-sessions 20

    sessions ─► sample ─► score ─► log-probs ─► rewards with self-certainty ─► advantages ─► loss ─► update

Shape letters: P prompts (one scored step of a session each), G replies to a prompt, R = P · G replies, N reply tokens.

The trainer (train/grpo) computes the same, and adds what a long run needs: micro-batches, several processes, frozen
copies without memory for them, resume, validation, other engines and objectives. It starts at `shop-r1 train`.
"""

import argparse
import copy
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.policies import FOLDER
from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig
from shop_env.prompts import PromptConfig
from shop_env.replies import MalformedReply, Reply, parse_reply
from shop_env.reward import RewardConfig, score_reply
from shop_env.reward.matching import is_exact
from train.chat_template import stop_token
from train.checkpoints import load_checkpoint
from train.config import SamplingConfig
from train.policy import Policy
from train.rollouts.engine import SampledReply, generate
from train.rollouts.sampling import draw_uniforms
from train.session_tree import SessionTree, pack
from train.tokens import ReplySpan, SessionTokens, decode_replies, rationale_tokens, tokenize_session

SESSIONS, G = 12, 8  # of a batch; replies to each prompt
LR, BETA, EPSILON = 3e-4, 0.001, 0.2
TEMPERATURE = 0.6
# Goal and persona are hidden. RL hides past rationales too (Shop-R1, section 3).
CONTEXT = ContextConfig(goal="hidden", persona="none", rationales=False)
REWARD = RewardConfig()  # Shop-R1's table 1: DARS 1,000, self-certainty times 0.005, format 0.5


def main() -> None:
    """Trains the packaged SFT policy, and prints its exact match on validation sessions before and after."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--validation-sessions", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    store = SessionStore.open("demo")
    model, tokenizer, info = load_checkpoint(FOLDER / "sft")
    policy = Policy(model)
    reference = Policy(copy.deepcopy(model)).eval()  # the SFT policy, which the KL keeps the policy near
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.98), weight_decay=0.0)
    draws = random.Random(options.seed)
    train_ids = draws.sample(store.session_ids("train"), SESSIONS * options.steps)
    train_sessions = read_sessions(store, train_ids, tokenizer, info.prompt)
    validation_ids = store.session_ids("validation")[: options.validation_sessions]
    validation = read_sessions(store, validation_ids, tokenizer, info.prompt)
    print_exact_match("SFT", policy, tokenizer, validation)
    for step in range(options.steps):
        batch = train_sessions[step * SESSIONS : (step + 1) * SESSIONS]
        generator = np.random.default_rng([options.seed, step])
        metrics = take_step(policy, reference, tokenizer, optimizer, batch, generator)
        print(f"step {step + 1:3}  " + "  ".join(f"{name} {value:.3f}" for name, value in metrics.items()), flush=True)
    print_exact_match("GRPO", policy, tokenizer, validation)


def read_sessions(
    store: SessionStore, session_ids: Iterable[str], tokenizer: Any, prompt: PromptConfig
) -> list[SessionTokens]:
    """Tokenizes sessions once. The prompt of each step is the beginning of the prompt of the next one.

    The papers predict no first action, so that its reply is left out.
    """
    sessions = []
    for session_id in session_ids:
        for trunk in tokenize_session(tokenizer, store.session(session_id), CONTEXT, prompt, max_prompt_tokens=4064):
            replies = [reply for reply in trunk.replies if reply.step_index > 0]
            if replies:
                sessions.append(replace(trunk, replies=replies))
    return sessions


def take_step(
    policy: Policy,
    reference: Policy,
    tokenizer: Any,
    optimizer: torch.optim.Optimizer,
    batch: list[SessionTokens],
    generator: np.random.Generator,
) -> dict[str, float]:
    """Takes one optimizer step on a batch of sessions, and returns its metrics."""
    # 1. Sample G replies to each prompt. Prompts of a session share the computation of their pages.
    steps_P = [(session, reply) for session in batch for reply in session.replies]
    replies_P_G = sample(policy, tokenizer, steps_P, generator)

    # 2. Score the actions: Shop-R1's reward without self-certainty, which needs the policy's distribution (step 4).
    texts_P_G = [decode_replies(tokenizer, [reply.tokens for reply in replies]) for replies in replies_P_G]
    parsed_P_G = [[parse_reply(text) for text in texts] for texts in texts_P_G]
    scores_P_G = [
        [score_reply(reply, step.action, REWARD).total for reply in replies]
        for (_, step), replies in zip(steps_P, parsed_P_G, strict=True)
    ]

    # A group with equal scores says nothing about actions, and is left out (a departure from the papers).
    used = [index for index, scores in enumerate(scores_P_G) if len(set(scores)) > 1]
    metrics = {"reward": float(np.mean(scores_P_G)), "used": len(used) / len(steps_P)}
    if not used:
        return metrics
    steps_P = [steps_P[index] for index in used]
    replies_P_G, parsed_P_G = [replies_P_G[index] for index in used], [parsed_P_G[index] for index in used]

    # 3. Compute log-probabilities of the N sampled tokens, in one pass for all prompts: each session is a tree whose
    #    trunk are its pages and whose branches are the replies.
    packed = pack(list(build_trees(steps_P, replies_P_G)))
    stats = policy.stats(packed, temperature=TEMPERATURE, definition=REWARD.self_certainty)
    with torch.no_grad():
        reference_log_probs_N = reference.log_probs(packed, temperature=TEMPERATURE)
    lengths_R = packed.reply_lengths

    # 4. Rewards (P, G): self-certainty is the mean over the tokens of the rationale (Shop-R1, section 3).
    certainty_R = stats.self_certainty.split(lengths_R)
    rewards_P_G = compute_rewards(tokenizer, steps_P, replies_P_G, parsed_P_G, certainty_R)

    # 5. Advantages (P, G): each reply relative to the others of its group (2402.03300).
    deviation_P_1 = rewards_P_G.std(dim=1, keepdim=True)
    advantages_P_G = (rewards_P_G - rewards_P_G.mean(dim=1, keepdim=True)) / (deviation_P_1 + 1e-6)

    # 6. Loss.
    loss, kl = compute_loss(stats.log_probs, reference_log_probs_N, advantages_P_G, torch.tensor(lengths_R))

    # 7. Update.
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return {**metrics, "kl": kl.item(), "entropy": stats.entropy.mean().item()}


def sample(
    policy: Policy,
    tokenizer: Any,
    steps_P: list[tuple[SessionTokens, ReplySpan]],
    generator: np.random.Generator,
    num_generations: int = G,
    temperature: float = TEMPERATURE,
) -> list[list[SampledReply]]:
    """Samples replies to the prompt of each step: all tokens of its session before the logged reply."""
    prompts_P = [session.tokens[: reply.start] for session, reply in steps_P]
    config = SamplingConfig(
        temperature=temperature,
        max_new_tokens=32,
        end_token=stop_token(tokenizer),
        num_generations=num_generations,
    )
    uniforms = draw_uniforms(generator.spawn(len(prompts_P)), num_generations, 32)
    return generate(policy, prompts_P, config, uniforms=uniforms)


def build_trees(
    steps_P: list[tuple[SessionTokens, ReplySpan]], replies_P_G: list[list[SampledReply]]
) -> Iterator[SessionTree]:
    """Builds a tree for each session: its tokens up to the last fork, and at each fork the G replies to that step."""
    forks: dict[int, list[int]] = {}
    for index, (session, _) in enumerate(steps_P):
        forks.setdefault(id(session), []).append(index)
    for indices in forks.values():
        session, last = steps_P[indices[-1]]
        starts = [steps_P[index][1].start for index in indices]
        replies = [[reply.tokens for reply in replies_P_G[index]] for index in indices]
        yield SessionTree(session.tokens[: last.start], starts, replies)


def compute_rewards(
    tokenizer: Any,
    steps_P: list[tuple[SessionTokens, ReplySpan]],
    replies_P_G: list[list[SampledReply]],
    parsed_P_G: list[list[Reply | MalformedReply]],
    certainty_R: Sequence[Tensor],
) -> Tensor:
    """Computes the rewards (P, G), with the self-certainty of each reply."""
    rewards = []
    for (_, step), replies, parsed in zip(steps_P, replies_P_G, parsed_P_G, strict=True):
        for sampled, reply in zip(replies, parsed, strict=True):
            certainty = mean_certainty(tokenizer, reply, sampled.tokens, certainty_R[len(rewards)])
            rewards.append(score_reply(reply, step.action, REWARD, self_certainty=certainty).total)
    return torch.tensor(rewards).view(-1, G)


def mean_certainty(
    tokenizer: Any, reply: Reply | MalformedReply, tokens: list[int], certainty_n: Tensor
) -> float | None:
    """Returns the mean self-certainty of a rationale's tokens; None for a reply that cannot be read."""
    if isinstance(reply, MalformedReply):
        return None
    first, end = rationale_tokens(tokenizer, tokens, reply.rationale_span)
    return certainty_n[first:end].mean().item() if end > first else 0.0


def compute_loss(
    log_probs_N: Tensor, reference_log_probs_N: Tensor, advantages_P_G: Tensor, lengths_R: Tensor
) -> tuple[Tensor, Tensor]:
    """Computes the loss and the KL to the reference: means over the tokens of each reply, then over replies.

    The ratio is 1 here, because the policy that sampled is the one that is updated; its gradient is that of the
    log-probability. Clipping acts from a second update on the same replies on.
    """
    advantages_N = advantages_P_G.flatten().repeat_interleave(lengths_R)
    weights_N = (1 / (lengths_R * len(lengths_R))).repeat_interleave(lengths_R)
    ratio_N = torch.exp(log_probs_N - log_probs_N.detach())
    gain_N = torch.minimum(ratio_N * advantages_N, ratio_N.clamp(1 - EPSILON, 1 + EPSILON) * advantages_N)
    kl_N = estimate_kl(log_probs_N, reference_log_probs_N)
    return (weights_N * (BETA * kl_N - gain_N)).sum(), (weights_N * kl_N).sum()


def estimate_kl(log_probs_N: Tensor, reference_log_probs_N: Tensor) -> Tensor:
    """Estimates KL(π ‖ π_ref) from each sampled token as exp(x) − x − 1, x = log(π_ref/π), which is never negative."""
    x = reference_log_probs_N - log_probs_N
    return torch.exp(x) - x - 1


def print_exact_match(label: str, policy: Policy, tokenizer: Any, sessions: list[SessionTokens]) -> None:
    """Prints the share of steps whose reply has the logged action, for greedy replies and for sampled ones."""
    steps_P = [(session, reply) for session in sessions for reply in session.replies]
    for name, temperature in (("greedy", 0.0), (f"at T {TEMPERATURE}", TEMPERATURE)):
        replies_P_1 = sample(policy, tokenizer, steps_P, np.random.default_rng(0), 1, temperature)
        texts = decode_replies(tokenizer, [reply.tokens for (reply,) in replies_P_1])
        exact = [is_exact(parse_reply(text), step.action) for text, (_, step) in zip(texts, steps_P, strict=True)]
        print(f"{label}: {100 * np.mean(exact):.1f}% exact match of {len(exact)} validation steps, {name}")


if __name__ == "__main__":
    main()
