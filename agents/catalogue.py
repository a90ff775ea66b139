"""The agents of this project by name, with what is declared of each; registry.py builds them.

Agents that need an extra are imported when they are used, so that the others work without it.
"""

from pathlib import Path
from typing import Literal, NamedTuple

from agents.policies import FOLDER
from shop_env.evaluation.waves import AgentSpec

# rule: fixed; counts and fitted: learn from the store's train split; policy: a trained network, or a mixture; model: a
# language model that was not trained here; reference: knows what no agent can know.
Kind = Literal["rule", "counts", "fitted", "policy", "model", "reference"]


class AgentEntry(NamedTuple):
    """An agent of this project.

    Attributes:
        target: Its class or factory, as "module:name".
        extra: The extra that installs its dependencies; "" if the core has all of them.
        package: A package of that extra, which the agent imports.
        summary: The first line of its docstring, which cannot be read without that package.
        checkpoint: The folder of a packaged policy, its first argument.
        probabilities: Whether it may give probabilities.
        remarks: Whether it may have remarks on its answers.
        without_page: Its counterpart that learns without pages.
    """

    target: str
    kind: Kind
    extra: str = ""
    package: str = ""
    summary: str = ""
    checkpoint: Path | None = None
    probabilities: bool = True
    remarks: bool = False
    without_page: str = ""


AGENTS = {
    "random": AgentEntry("agents.baselines.rules:RandomAgent", "rule", probabilities=False),
    "majority": AgentEntry("agents.baselines.rules:MajorityAgent", "rule", probabilities=False),
    "repeat_last": AgentEntry("agents.baselines.rules:RepeatLastAgent", "rule", probabilities=False),
    "copy_match": AgentEntry("agents.baselines.rules:CopyMatchAgent", "rule", probabilities=False),
    "oracle": AgentEntry("agents.baselines.rules:OracleAgent", "reference"),
    "context_majority": AgentEntry("agents.baselines.fitted:ContextMajority", "counts"),
    "page_counts": AgentEntry("agents.baselines.page_counts:PageCounts", "counts", without_page="history_counts"),
    "session_knn": AgentEntry("agents.baselines.session_knn:SessionKnn", "counts"),
    "step_number": AgentEntry("agents.baselines.page_counts:StepNumber", "counts"),
    "ngram": AgentEntry("agents.baselines.fitted:Ngram", "counts", without_page="history_ngram"),
    "history_counts": AgentEntry("agents.baselines.page_counts:HistoryCounts", "counts"),
    "history_ngram": AgentEntry("agents.baselines.page_counts:HistoryNgram", "counts"),
    "logistic": AgentEntry(
        "agents.baselines.classifiers:Logistic",
        "fitted",
        "baselines",
        "sklearn",
        "Logistic regression over pairs of words.",
    ),
    "boosting": AgentEntry(
        "agents.baselines.classifiers:Boosting", "fitted", "baselines", "sklearn", "Gradient-boosted trees."
    ),
    "choice": AgentEntry("agents.baselines.choice_model:ChoiceModel", "fitted"),
    "boosted_choice": AgentEntry(
        "agents.baselines.classifiers:BoostedChoice",
        "fitted",
        "baselines",
        "sklearn",
        "Gradient-boosted trees over the facts of `choice`, relations and counts: a nonlinear variant of it.",
    ),
    "pointer": AgentEntry(
        "agents.local.pointer:PointerAgent",
        "fitted",
        "train",
        "torch",
        "A GRU over past actions whose softmax runs over the page's own elements: GRU4Rec with the slate.",
    ),
    "mixture": AgentEntry("agents.mixture:MixtureAgent", "policy", remarks=True),
    "demo_sft": AgentEntry(
        "agents.policies.demo:DemoSft",
        "policy",
        "train",
        "torch",
        "A tiny policy of the demo shop: SFT without past rationales.",
        FOLDER / "sft",
        remarks=True,
    ),
    "demo_shop_r1": AgentEntry(
        "agents.policies.demo:DemoShopR1",
        "policy",
        "train",
        "torch",
        "A tiny policy of the demo shop: Shop-R1, SFT without past rationales.",
        FOLDER / "shop_r1",
        remarks=True,
    ),
    "sb3": AgentEntry(
        "agents.sb3.saved:Sb3Agent",
        "policy",
        "sb3",
        "sb3_contrib",
        "Chooses among the page's candidates as a saved policy does; its replies have no rationale.",
    ),
    "local": AgentEntry(
        "agents.local.agent:local",
        "model",
        "train",
        "transformers",
        "Runs your language model, zero-shot: a folder, hub id or GGUF file, with or without a LoRA adapter.",
        remarks=True,
    ),
    "prompting": AgentEntry(
        "agents.prompting.agent:PromptingAgent",
        "model",
        "api",
        "openai",
        "Asks a model behind an OpenAI-compatible server: zero-shot, few-shot or guided.",
        probabilities=False,
        remarks=True,
    ),
}
CHECKPOINT = AgentEntry("agents.local.policy_agent:PolicyAgent", "policy", "train", remarks=True)
POINTER_CHECKPOINT = AgentEntry("agents.local.pointer:PointerPolicy", "policy", "train")
POINTER_FILE = "pointer.json"  # of the checkpoint of a pointer (train/pointer/checkpoint.py)
LEARNT_FROM_STORE: tuple[Kind, ...] = ("counts", "fitted")
WITHOUT_PAGE = {name: entry.without_page for name, entry in AGENTS.items() if entry.without_page}
# Names in --agents that stand for several agents.
GROUPS = {
    "baselines": tuple(
        name
        for name, entry in AGENTS.items()
        if entry.kind in LEARNT_FROM_STORE and entry.extra != "train" and name not in WITHOUT_PAGE.values()
    )
}


def is_own(spec: AgentSpec) -> bool:
    """Returns whether the agent belongs to this project: a registered name or a checkpoint."""
    return entry_of(spec) is not None


def entry_of(spec: AgentSpec) -> AgentEntry | None:
    """Returns what is declared of an agent of this project; None for an agent of a user."""
    if spec.is_checkpoint:
        return POINTER_CHECKPOINT if (Path(spec.target) / POINTER_FILE).is_file() else CHECKPOINT
    return AGENTS.get(spec.target)
