"""Counts of what was done next, the models that a trained policy must beat: `page_counts` and `step_number`.

`page_counts` counts the actions that followed a page's heading, the product before the last one, the last product and
the last action. A context that was not seen is shortened from the left, with Witten-Bell smoothing (fitted.py) whose
weight is the one that predicts a tenth of the train sessions best. `step_number` counts how often a session ends at its
first, second, … step, and divides the rest evenly. Both read every step of the train split once, without observations.

Without pages, what a log's labels say alone: `history_counts` counts after the product before the last one, the last
product, the last action and its type, `history_ngram` after the last three actions and the last type. "The last action
again" is an outcome of its own, and every action that was counted may be chosen, whether or not it is on the page.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import log

import msgspec
import numpy as np

from agents.adapted import Distribution, DistributionAgent, Floats, TrainView
from agents.baselines.witten_bell import Context, WittenBell
from replay_sessions.schema import Action, Session, Terminate, reply_action
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.replies import action_json
from shop_env.reward.click_types import click_type_of
from shop_env.words import past_actions

_HEADING = re.compile(r"<h1\b[^>]*>(.*?)</h1>", re.DOTALL)
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
_HELD_OUT = 10  # every tenth session chooses the weight
_MAX_CANDIDATES = 400
AGAIN = "the last action again"
_MAX_STEPS = 200  # later steps count as this one


class _CountingAgent(DistributionAgent):
    """Reads the train split of a store, session by session.

    Args:
        store: What to learn from: all steps of its train split.
        temperature: See DistributionAgent.
        skip_first_action: Learn from the steps that are scored, without each session's first.
        inferred: Learn from actions too that the log does not hold and the import inferred.
    """

    def __init__(
        self,
        store: TrainView | str,
        *,
        temperature: float = 0.0,
        skip_first_action: bool = True,
        inferred: bool = False,
    ) -> None:
        super().__init__(temperature)
        self.learn(TrainView.of(store).learnt(skip_first_action=skip_first_action, inferred=inferred))

    @abstractmethod
    def learn(self, sessions: Iterable[tuple[Session, list[int]]]) -> None:
        """Takes from the sessions, each with the steps to learn from, what `weigh` needs."""

    @abstractmethod
    def weigh(self, observation: Observation, actions: Sequence[Action]) -> Floats:
        """Returns the probabilities of the page's actions, (actions,), summing to 1."""

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        offered = [candidate_actions(observation, _MAX_CANDIDATES) for observation in observations]
        weighed = map(self.weigh, observations, offered)
        return list(zip(offered, weighed, strict=True))


class PageCounts(_CountingAgent):
    """Counts of what was done next after the same heading, product before, last product and last action."""

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
        """Yields the context of each step, and what was done there."""
        past: list[dict[str, str]] = []
        for step in session.steps:
            action = reply_action(step.action)
            yield self.context(step.page, past), self.outcome(past, action)
            past.append(action)

    def context(self, page: str, past: Sequence[dict[str, str]]) -> Context:
        """Returns what the next action is counted after."""
        heading = _HEADING.search(page) or _TITLE.search(page)
        return heading[1] if heading else "", *_last_products(past), action_json(past[-1]) if past else ""

    def outcome(self, past: Sequence[dict[str, str]], action: dict[str, str]) -> str:
        """Returns what an action counts as."""
        return action_json(action)

    def weigh(self, observation: Observation, actions: Sequence[Action]) -> Floats:
        context = self.context(observation["page"], past_actions(observation["history"]))
        return self._counts.among(context, [action_json(reply_action(action)) for action in actions], self._weight)


class HistoryCounts(PageCounts):
    """Counts of what was done next after the same product before, last product and last action, whatever the page."""

    def context(self, page: str, past: Sequence[dict[str, str]]) -> Context:
        return (*super().context("", past)[1:], *(action["type"] for action in past[-1:]))

    def outcome(self, past: Sequence[dict[str, str]], action: dict[str, str]) -> str:
        return AGAIN if past[-1:] == [action] else action_json(action)

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        return [self._of_history(past_actions(observation["history"])) for observation in observations]

    def _of_history(self, past: Sequence[dict[str, str]]) -> Distribution:
        context = self.context("", past)
        offered = self._counts.outcomes(context, _MAX_CANDIDATES)
        last = action_json(past[-1]) if past else action_json(reply_action(Terminate()))
        shares: dict[str, float] = {}
        for outcome, share in zip(offered, self._counts.among(context, offered, self._weight), strict=True):
            action = last if outcome == AGAIN else outcome
            shares[action] = shares.get(action, 0.0) + float(share)
        return [msgspec.json.decode(action, type=Action) for action in shares], np.array([*shares.values()])


class HistoryNgram(HistoryCounts):
    """Counts of what was done next after the same three actions, whatever the page."""

    def context(self, page: str, past: Sequence[dict[str, str]]) -> Context:
        return (*map(action_json, past[-3:]), *(action["type"] for action in past[-1:]))


def _last_products(past: Sequence[dict[str, str]]) -> tuple[str, str]:
    """Returns the names of the last two products that were clicked, the earlier one first."""
    products = (action["name"] for action in reversed(past) if click_type_of(action.get("name", "")) == "product_link")
    last, before_last = (*islice(products, 2), "", "")[:2]
    return before_last, last


class StepNumber(_CountingAgent):
    """Counts of how often a session ends at each step's number; all other actions are alike."""

    def learn(self, sessions: Iterable[tuple[Session, list[int]]]) -> None:
        reached, ended = np.ones(_MAX_STEPS), np.zeros(_MAX_STEPS)
        for session, learnt in sessions:
            for index in learnt:
                reached[min(index, _MAX_STEPS - 1)] += 1
                ended[min(index, _MAX_STEPS - 1)] += isinstance(session.steps[index].action, Terminate)
        overall = ended.sum() / reached.sum()
        self._ends = (ended + overall) / reached  # a step that was never reached ends as steps do on the whole

    def weigh(self, observation: Observation, actions: Sequence[Action]) -> Floats:
        ends = float(self._ends[min(observation["step"], _MAX_STEPS - 1)])
        terminates = np.array([isinstance(action, Terminate) for action in actions])
        if terminates.all():
            return np.ones(1)
        shares: Floats = np.where(terminates, ends, (1 - ends) / (~terminates).sum())
        return shares
