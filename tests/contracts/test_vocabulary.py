"""One word for one thing: what users read uses the field's words, not those that were once ours in their place."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.docs_site.commands import command_names, help_text
from replay_sessions.foundation.packages import OUR_PACKAGES

ROOT = Path(__file__).resolve().parents[2]
# Former word (a regular expression, bounded by what is no word) -> the word to use.
REPLACED = {
    r"grpo\.replies": "num_generations",
    r"grpo\.updates": "num_iterations",
    r"grpo\.clip": "epsilon",
    "clip_high": "epsilon_high",
    "loss_mean": "loss_type",
    "advantage_scale": "scale_rewards",
    "skip_equal_groups": "filter_zero_variance",
    "importance_cap": "importance_sampling_cap",
    "sampling_gap": "sampler_trainer_logprob_gap",
    "read_trunks": "prefill",
    "kept_trunks|KeysAndValues": "kv_cache",
    "stretch_tokens": "chunk_tokens",
    "idle_pass": "dummy_forward",
    "passes_behind": "summon_full_params",
    "halved": "bf16",
    "floors": "baselines",
    "scripted (?:agent|baseline|polic(?:y|ie))s?": "baselines",
    "figures": "metrics, values or plots",
    "(?:made )?from nothing": "trained from scratch",
    "(?:tell|tells|told) apart|cannot be told": "significantly different, not significant",
    "leavings?|who leaves": "terminate actions, terminates",
    "people held out": "held-out users",
    "sets? aside": "rejected",
    r"(?:agents?|models?|runs?) (?:is|are|was|were) (?:not )?asked|to be asked": "evaluated",
    "what it (?:takes|would take)": "memory, time, cost",
    "found nothing": "no difference was significant, or no match",
}
# Where such a word has another sense, and why.
ALLOWED = {
    r"`figures`": "the name of a field of results.json",
    r"_figures?\.py|leaving\.png": "the name of a file",
    "by leaving sessions out": "to leave something out is no terminate action",
}


def read_by_users() -> Iterator[tuple[str, str]]:
    """README, the pages of docs, and what the packages raise."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        yield page.name, page.read_text(encoding="utf-8")
    for package in OUR_PACKAGES:
        for module in (ROOT / package).rglob("*.py"):
            raised = (node for node in ast.walk(ast.parse(module.read_text("utf-8"))) if isinstance(node, ast.Raise))
            texts = (part.value for node in raised for part in ast.walk(node) if isinstance(part, ast.Constant))
            yield str(module.relative_to(ROOT)), " ".join(text for text in texts if isinstance(text, str))


def replaced_words(text: str) -> list[str]:
    text = re.sub("|".join(ALLOWED), "", " ".join(text.split()))
    return re.findall(rf"(?<!\w)(?:{'|'.join(REPLACED)})(?!\w)", text, re.IGNORECASE)


def test_pages_and_errors_use_the_field_s_words() -> None:
    assert [(name, words) for name, text in read_by_users() if (words := replaced_words(text))] == []


@pytest.mark.long
def test_help_uses_the_field_s_words() -> None:
    texts = [(name, help_text(name, "--help-all")) for name in command_names()]
    assert [(name, words) for name, text in texts if (words := replaced_words(text))] == []


@pytest.mark.parametrize("text", ["two agents can be told\napart", "Figures are percent", "grpo.clip = 0.2"])
def test_a_replaced_word_is_noticed(text: str) -> None:
    assert replaced_words(text)
    assert not replaced_words("a figure of the paper; it is left out; `figures`; updates the weights")
