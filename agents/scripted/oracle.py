"""`oracle`: the demo shop's own policy, and the best accuracy that anything can reach against it.

The demo shop's shoppers draw their actions from known probabilities p(a | observation), so the ceiling is known too:
whoever always answers the likeliest action is right with probability max p; whoever samples from p sharpened to
q ∝ p^(1/T) is right with probability Σ p·q. No agent that sees the same observation can do better than the first.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from agents.scored_steps import scored_steps
from agents.train_view import TrainView
from replay_sessions import demo_shop
from replay_sessions.errors import AgentFailed, BadConfig
from replay_sessions.schema import Action, Split
from replay_sessions.store import SessionStore
from shop_env.context import ContextConfig
from shop_env.observation import Observation
from shop_env.replies import format_reply

__all__ = ["Ceiling", "OracleAgent", "ceiling", "has_known_ceiling", "is_demo_store", "sharpened"]


class OracleAgent:
    """Answers as a shopper of the demo shop would.

    Args:
        temperature: 0 answers the likeliest action; T > 0 samples from p^(1/T), 1 being the shoppers themselves.
        store: What it will be evaluated on; a store that is not of the demo shop is refused, and none is read.
    """

    def __init__(self, temperature: float = 0.0, store: TrainView | None = None) -> None:
        if temperature < 0:
            raise BadConfig(f"Agent 'oracle': temperature {temperature} is below 0")
        if store is not None and store.source != demo_shop.SOURCE:
            raise BadConfig(
                f"Agent 'oracle' knows the shoppers of the demo shop only, and store '{store.name}' comes from "
                f"'{store.source}': leave it out of --agents"
            )
        self._temperature = temperature
        self._random = random.Random()

    def reset(self, *, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def act(self, observation: Observation) -> str:
        action = self._draw(sharpened(_probabilities(observation), self._temperature))
        return format_reply(demo_shop.rationale_for(observation, action), action)

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None] = ()
    ) -> list[Mapping[Action, float] | Exception]:
        """The shoppers' own, whatever the temperature and the seeds."""
        return [_probabilities_or_failure(observation) for observation in observations]

    def _draw(self, probabilities: Mapping[Action, float]) -> Action:
        return self._random.choices(list(probabilities), list(probabilities.values()))[0]


def _probabilities(observation: Observation) -> Mapping[Action, float]:
    try:
        return demo_shop.action_probabilities(observation)
    except (ValueError, IndexError) as error:
        raise AgentFailed(f"the oracle answers pages of the demo shop only: {error}") from error


def _probabilities_or_failure(observation: Observation) -> Mapping[Action, float] | AgentFailed:
    try:
        return _probabilities(observation)
    except AgentFailed as failure:
        return failure


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """The expected exact accuracy of an agent that knows the shoppers' policy.

    Attributes:
        greedy: When it always answers the likeliest action: no agent can do better.
        sampled: When it samples at `temperature` instead.
        type_accuracy: The expected type accuracy of the likeliest action.
        steps: Over how many steps these are means.
    """

    greedy: float
    sampled: float
    type_accuracy: float
    temperature: float
    steps: int


def is_demo_store(store: SessionStore) -> bool:
    return store.manifest.source == demo_shop.SOURCE


def has_known_ceiling(store: SessionStore, context: ContextConfig) -> bool:
    """Whether `ceiling` can be computed: the shoppers' policy needs their own persona and whole pages."""
    return is_demo_store(store) and context.persona == "matched" and context.budget is None


def ceiling(
    store: SessionStore,
    split: Split | Literal["all"],
    *,
    context: ContextConfig | None = None,
    temperature: float = 0.6,
    skip_first_action: bool = True,
    max_sessions: int | None = None,
) -> Ceiling:
    """What the oracle is expected to reach on the steps that `agents.evaluate.evaluate` scores.

    Raises:
        BadConfig: The store is not of the demo shop, or too little is shown (`has_known_ceiling`).
    """
    if not is_demo_store(store):
        raise BadConfig(
            f"Only the demo shop has a known ceiling; store '{store.path}' is from '{store.manifest.source}'"
        )
    if context is not None and not has_known_ceiling(store, context):
        raise BadConfig(
            f"The ceiling is known for persona 'matched' without a budget; the context has persona '{context.persona}' "
            f"and budget {context.budget}"
        )
    steps = scored_steps(store, split, context=context, skip_first_action=skip_first_action, max_sessions=max_sessions)
    return _mean_ceiling((demo_shop.action_probabilities(step.observation) for step in steps), temperature)


def _mean_ceiling(policies: Iterable[Mapping[Action, float]], temperature: float) -> Ceiling:
    greedy = sampled = of_type = 0.0
    count = 0
    for policy in policies:
        best = max(policy, key=lambda action: policy[action])
        answered = sharpened(policy, temperature)
        greedy += policy[best]
        sampled += sum(chance * answered[action] for action, chance in policy.items())
        of_type += sum(chance for action, chance in policy.items() if type(action) is type(best))
        count += 1
    if count == 0:
        raise BadConfig("No step to score: the split is empty or each of its sessions has one step")
    return Ceiling(
        greedy=greedy / count,
        sampled=sampled / count,
        type_accuracy=of_type / count,
        temperature=temperature,
        steps=count,
    )


def sharpened(probabilities: Mapping[Action, float], temperature: float) -> dict[Action, float]:
    """p^(1/T), normalised; T = 0 puts everything on the (first) likeliest action."""
    highest = max(probabilities.values())
    if temperature == 0:
        best = next(action for action, chance in probabilities.items() if chance == highest)
        return {action: float(action == best) for action in probabilities}
    powers = {action: (chance / highest) ** (1 / temperature) for action, chance in probabilities.items()}
    total = sum(powers.values())
    return {action: power / total for action, power in powers.items()}
