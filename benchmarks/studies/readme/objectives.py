"""What the files of train/objectives change of GRPO's: the members of their classes, as diffs."""

import ast
import difflib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent

from train.objectives import LIKELIHOOD, OBJECTIVES

TRAIN = Path(__file__).parents[3] / "train"
MEMBERS = ("samples", "has_reference", "measured", "replies", "is_used", "rewards", "advantages", "loss")


def objective_diffs() -> dict[str, Callable[[], str]]:
    """By the name of a table: GRPO's members, and what each other objective has in their place."""
    targets = OBJECTIVES | {"likelihood": LIKELIHOOD}
    return {f"objective_{name}": partial(_block, name, target.partition(":")[2]) for name, target in targets.items()}


def _block(name: str, class_name: str) -> str:
    grpo = _members(TRAIN / "objectives/grpo.py", "GrpoTrainer")
    if name == "grpo":
        lines = [*grpo["advantages"], "", "", *grpo["loss"]]
        return "\n".join(["```python", *lines, "```", ""])
    own = _members(TRAIN / f"objectives/{name}.py", class_name)
    return "\n".join(["```diff", *_diff(grpo, own), "```", ""])


def _diff(first: dict[str, list[str]], second: dict[str, list[str]]) -> Iterator[str]:
    for member in MEMBERS:
        before, after = first[member], second[member]
        if before != after:
            yield from list(difflib.unified_diff(before, after, lineterm="", n=len(before)))[3:]


def _members(file: Path, class_name: str) -> dict[str, list[str]]:
    """The lines of a class's members, with those of its base that it leaves as they are."""
    text = file.read_text(encoding="utf-8")
    (found,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == class_name)
    bases = {ast.unparse(base) for base in found.bases}
    members = {}
    if "GroupTrainer" in bases:
        members = _members(TRAIN / "grpo/trainer.py", "GroupTrainer")
    elif "GrpoTrainer" in bases:
        members = _members(TRAIN / "objectives/grpo.py", "GrpoTrainer")
    for node in found.body:
        name = getattr(node, "name", ast.unparse(getattr(node, "target", node)))
        if isinstance(node, ast.Assign):
            name = ast.unparse(node.targets[0])
        lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
        members[name] = (
            dedent("\n".join(lines)).replace(": ClassVar[bool]", "").replace(": ClassVar[str]", "").split("\n")
        )
    return members
