# ruff: noqa
# mypy: ignore-errors
"""The shipped SFT policy (tiny model, past rationales shown) with past rationales hidden, by form; and after 200 more steps
of SFT with past rationales hidden.

    python benchmarks/results/conversation_form/tiny.py 200 no_key placeholder restated empty words told
"""

import sys
from pathlib import Path

import torch
import trial

from replay_sessions.store import SessionStore
from shop_env.prompts import PromptConfig
from train.checkpoints import load_checkpoint
from train.policy import Policy

torch.set_num_threads(1)
trial.STYLE, trial.OUT = PromptConfig(style="compact"), Path("runs/conversation_form/tiny.jsonl")
from train.session_tree import SessionTree, pack
import random, time

STEPS = 200


def train(policy, tokenizer, sessions, form, seed):
    optimizer = trial.Optimizer(
        policy.model,
        trial.OptimizerConfig(lr=1e-3, warmup_steps=10, final_lr_fraction=0.1, weight_decay=0.05, beta2=0.98),
        STEPS,
    )
    rng = random.Random(f"{seed} sft")
    order = list(range(len(sessions)))
    rng.shuffle(order)
    policy.train()
    began = time.time()
    for step in range(STEPS):
        trees, masks = [], []
        for number in order[8 * step : 8 * step + 8]:
            session = sessions[number]
            trunk, branches = trial.branches_of(tokenizer, session, form, trial.HIDDEN, range(len(session.steps)))
            replies = trial.reply_tokens(
                tokenizer, [trial.format_reply(s.rationale or "", s.action) for s in session.steps]
            )
            trees.append(SessionTree(trunk, [f for _, f, _ in branches], [[[*h, *replies[i]]] for i, _, h in branches]))
            for i, _, h in branches:
                masks += [False] * len(h) + [True] * len(replies[i])
        packed = pack(trees)
        loss = -policy.log_probs(packed)[torch.tensor(masks)].mean()
        loss.backward()
        optimizer.step(step)
        if step % 50 == 0 or step == STEPS - 1:
            print(f"{form} {step} {loss.item():.3f} {packed.input_ids.numel()} {time.time() - began:.0f}s", flush=True)


store = SessionStore.open("demo")
sessions = list(store.sessions("train"))
model, tok, info = load_checkpoint("agents/policies/sft", "cpu")
trial.evaluate(Policy(model), tok, store, "no_key", "shipped|shown", int(sys.argv[1]), trial.SHOWN)
for form in sys.argv[2:]:
    trial.evaluate(Policy(model), tok, store, form, "shipped", int(sys.argv[1]))
for form in sys.argv[2:]:
    model, tok, info = load_checkpoint("agents/policies/sft", "cpu")
    policy = Policy(model)
    train(policy, tok, sessions, form, 0)
    trial.evaluate(policy, tok, store, form, "shipped_then_hidden_200", int(sys.argv[1]))
