"""Lint of words, a part of `make check`: users read the field's words, and docstrings say what a function does.

    python -m tests.words

README, the pages of docs and the packages' error messages use none of the words in REPLACED. The docstring of a
function that is no property begins with a verb in the third person, or with an example.
"""

import ast
import re
import sys
from collections.abc import Iterator

from replay_sessions.foundation.packages import OUR_PACKAGES
from tests.processes import ROOT

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


VERB = re.compile(r"[A-Z][a-z-]+s\b|>>>|$")  # "Returns"


def read_by_users() -> Iterator[tuple[str, str]]:
    """Yields README, the pages of docs, and the texts that the packages raise."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        yield page.name, page.read_text(encoding="utf-8")
    for name, tree in parsed_modules():
        raised = (node for node in ast.walk(tree) if isinstance(node, ast.Raise))
        texts = (part.value for node in raised for part in ast.walk(node) if isinstance(part, ast.Constant))
        yield name, " ".join(text for text in texts if isinstance(text, str))


def parsed_modules() -> Iterator[tuple[str, ast.Module]]:
    """Yields the name and the tree of each module of the packages."""
    for package in OUR_PACKAGES:
        for module in sorted((ROOT / package).rglob("*.py")):
            yield str(module.relative_to(ROOT)), ast.parse(module.read_text("utf-8"))


def replaced_words(text: str) -> list[str]:
    """Lists the words of a text that have a replacement."""
    text = re.sub("|".join(ALLOWED), "", " ".join(text.split()))
    return re.findall(rf"(?<!\w)(?:{'|'.join(REPLACED)})(?!\w)", text, re.IGNORECASE)


def docstring_openings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the first word of each docstring of a function that does not say what the function does."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            is_property = any("property" in ast.dump(each) for each in node.decorator_list)
            docstring = ast.get_docstring(node) or ""
            if not is_property and not VERB.match(docstring):
                yield node.lineno, docstring.partition(" ")[0]


def main() -> int:
    """Prints each finding; returns 1 if there are any."""
    findings = [f"{name}: {', '.join(words)}" for name, text in read_by_users() if (words := replaced_words(text))]
    findings += [
        f"{name}:{line}: a docstring begins with {first!r}, not with a verb such as 'Returns'"
        for name, tree in parsed_modules()
        for line, first in docstring_openings(tree)
    ]
    print("\n".join(findings) or "words: nothing found")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
