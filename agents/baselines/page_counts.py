"""Baselines that count next actions: `page_counts`, `step_number`, `history_counts` and `history_ngram`.

`page_counts` counts the actions that followed a page's heading, the product before the last one, the last product and
the last action. A context that was not seen is shortened from the left, with Witten-Bell smoothing (witten_bell.py);
the smoothing weight is the one that predicts a tenth of the train sessions best. `step_number` counts how often a
session ends at its first, second, … step, and divides the remaining probability evenly. A trained policy must beat
these two. Both read every step of the train split once, without observations.

The other two do not read pages, and show how far a log's actions predict themselves. `history_counts` counts after the
product before the last one, the last product, the last action and its type; `history_ngram` counts after the last three
actions and the last type. "The last action again" is a separate outcome. Every counted action may be chosen, whether or
not it is on the page.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from math import log

import msgspec
import numpy as np

from agents.adapted import Distribution, DistributionAgent, Floats
from agents.baselines.witten_bell import Context, WittenBell
from replay_sessions.schema import Action, Session, Terminate, reply_action
from shop_env.candidates import MAX_CANDIDATES, candidate_actions
from shop_env.choices.transitions import heading_of, last_products
from shop_env.observation import Observation
from shop_env.replies import action_json
from shop_env.shopper_words import past_actions
from shop_env.train_view import TrainView

_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
_HELD_OUT = 10  # every tenth session chooses the weight
AGAIN = "the last action again"
_MAX_STEPS = 200  # later steps count as step 200


class CountingAgent(DistributionAgent):
    """An agent that learns from the train split of a store, session by session.

    Args:
        store: The store to learn from: all steps of its train split.
        temperature: See DistributionAgent.
        first_action: Learn from the first step of each session too.
        inferred: Learn from inferred actions too.
    """

    def __init__(
        self,
        store: TrainView | str,
        *,
        temperature: float = 0.0,
        first_action: bool = False,
        inferred: bool = False,
    ) -> None:
        super().__init__(temperature)
        view = TrainView.of(store)
        self._scrolls = view.scrolls
        self.learn(view.learnt(first_action=first_action, inferred=inferred))

    @abstractmethod
    def learn(self, sessions: Iterable[tuple[Session, list[int]]]) -> None:
        """Fits the agent to sessions, each with the indices of the steps to learn from."""

    @abstractmethod
    def weigh(self, observation: Observation, actions: Sequence[Action]) -> Floats:
        """Computes the probabilities of the page's actions, (actions,), summing to 1."""

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        offered = [candidate_actions(observation, scrolls=self._scrolls) for observation in observations]
        shares = map(self.weigh, observations, offered)
        return list(zip(offered, shares, strict=True))


class PageCounts(CountingAgent):
    """Counts of next actions after the same page heading, last two products and last action."""

    def learn(self, sessions: Iterable[tuple[Session, list[int]]]) -> None:
        self._counts, fitted = WittenBell(), WittenBell()
        held_out: list[tuple[Context, str]] = []
        for number, (session, learnt) in enumerate(sessions):
            transitions = list(self.transitions(session))
            for context, action in (transitions[index] for index in learnt):
                self._counts.add(context, action)
                if number % _HELD_OUT:
                    fitted.add(context, action)
                else:
                    held_out.append((context, action))
        self._weight = min(_WEIGHTS, key=lambda weight: -sum(log(fitted.share(*pair, weight)) for pair in held_out))

    def transitions(self, session: Session) -> Iterator[tuple[Context, str]]:
        """Yields the context and the outcome of each step of a session."""
        past: list[dict[str, str]] = []
        for step in session.steps:
            action = reply_action(step.action)
            yield self.context(step.page, past), self.outcome(past, action)
            past.append(action)

    def context(self, page: str, past: Sequence[dict[str, str]]) -> Context:
        """Returns the context that the next action is counted in."""
        return heading_of(page), *last_products(past), action_json(past[-1]) if past else ""

    def outcome(self, past: Sequence[dict[str, str]], action: dict[str, str]) -> str:
        """Returns the outcome that an action is counted as."""
        return action_json(action)

    def weigh(self, observation: Observation, actions: Sequence[Action]) -> Floats:
        context = self.context(observation["page"], past_actions(observation["history"]))
        return self._counts.among(context, [action_json(reply_action(action)) for action in actions], self._weight)


class HistoryCounts(PageCounts):
    """Counts of next actions after the same last two products and last action, without reading the page."""

    def context(self, page: str, past: Sequence[dict[str, str]]) -> Context:
        return (*super().context("", past)[1:], *(action["type"] for action in past[-1:]))

    def outcome(self, past: Sequence[dict[str, str]], action: dict[str, str]) -> str:
        return AGAIN if past[-1:] == [action] else action_json(action)

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        return [self._of_history(past_actions(observation["history"])) for observation in observations]

    def _of_history(self, past: Sequence[dict[str, str]]) -> Distribution:
        context = self.context("", past)
        offered = self._counts.outcomes(context, MAX_CANDIDATES)
        last = action_json(past[-1]) if past else action_json(reply_action(Terminate()))
        shares: dict[str, float] = {}
        for outcome, share in zip(offered, self._counts.among(context, offered, self._weight), strict=True):
            action = last if outcome == AGAIN else outcome
            shares[action] = shares.get(action, 0.0) + float(share)
        return [msgspec.json.decode(action, type=Action) for action in shares], np.array([*shares.values()])


class HistoryNgram(HistoryCounts):
    """Counts of next actions after the same last three actions, without reading the page."""

    def context(self, page: str, past: Sequence[dict[str, str]]) -> Context:
        return (*map(action_json, past[-3:]), *(action["type"] for action in past[-1:]))


class StepNumber(CountingAgent):
    """Counts of how often sessions end at each step's number; all other actions are equally likely."""

    def learn(self, sessions: Iterable[tuple[Session, list[int]]]) -> None:
        reached, ended = np.ones(_MAX_STEPS), np.zeros(_MAX_STEPS)
        for session, learnt in sessions:
            for index in learnt:
                reached[min(index, _MAX_STEPS - 1)] += 1
                ended[min(index, _MAX_STEPS - 1)] += isinstance(session.steps[index].action, Terminate)
        overall = ended.sum() / reached.sum()
        self._ends = (ended + overall) / reached  # a step number that was never reached gets the overall share

    def weigh(self, observation: Observation, actions: Sequence[Action]) -> Floats:
        ends = float(self._ends[min(observation["step"], _MAX_STEPS - 1)])
        terminates = np.array([isinstance(action, Terminate) for action in actions])
        if terminates.all():
            return np.ones(1)
        shares: Floats = np.where(terminates, ends, (1 - ends) / (~terminates).sum())
        return shares
