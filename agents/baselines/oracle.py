"""`oracle`: the demo shop's own policy (shop_env/evaluation/results.py has what it is expected to reach)."""

import random
from collections.abc import Mapping, Sequence

from agents.adapted import SeededAgent, TrainView
from replay_sessions import demo_shop
from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.schema import Action
from shop_env.evaluation.results import sharpened
from shop_env.observation import Observation
from shop_env.replies import format_reply


class OracleAgent(SeededAgent):
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

    def act(self, observation: Observation) -> str:
        """The likeliest action, or one that is drawn, with the shop's own rationale."""
        shares = sharpened(_probabilities(observation), self._temperature)
        (action,) = random.Random(self._seed).choices(list(shares), list(shares.values()))
        return format_reply(demo_shop.rationale_for(observation, action), action)

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None] = ()
    ) -> list[Mapping[Action, float] | Exception]:
        """The shoppers' own, whatever the temperature and the seeds."""
        results: list[Mapping[Action, float] | Exception] = []
        for observation in observations:
            try:
                results.append(_probabilities(observation))
            except AgentFailed as failure:
                results.append(failure)
        return results


def _probabilities(observation: Observation) -> Mapping[Action, float]:
    try:
        return demo_shop.action_probabilities(observation)
    except (ValueError, IndexError) as error:
        raise AgentFailed(f"the oracle answers pages of the demo shop only: {error}") from error
