"""`session_knn`: the choices of the train sessions that are most similar to the session so far.

A session's similarity is the sum over the clicks that both share, a recent click of the present session weighing most
(V-SkNN: M. Ludewig and D. Jannach, 2018):

    similarity(s) = Σ_{i shared} position(i) / clicks so far        score(a) = Σ_{s among NEIGHBOURS nearest} similarity(s) · [a ∈ s]

The scores, divided by their sum over the page, are mixed with the popularity of each choice under the page's heading.
The weight of the mixture is the one that predicts some held-out sessions best.
"""  # noqa: E501 - a formula is a line

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain

import numpy as np

from agents.adapted import Floats
from agents.baselines.page_counts import CountingAgent
from replay_sessions.schema import Action, Session, reply_action
from shop_env.candidates import candidate_actions
from shop_env.choices.transitions import heading_of, outcome_of
from shop_env.observation import Observation, observe_session
from shop_env.shopper_words import past_actions

NEIGHBOURS = 100
MOST_SHARING = 2000  # sessions with a click, the latest ones, that are searched
HELD_OUT_EVERY, MOST_HELD_OUT = 10, 200  # every tenth session, at most so many
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class SessionKnn(CountingAgent):
    """The choices of the most similar train sessions: session-based nearest neighbours (V-SkNN)."""

    def learn(self, sessions: Iterable[tuple[Session, list[int]]]) -> None:
        self._sessions: list[frozenset[str]] = []
        self._having: dict[str, list[int]] = {}
        self._popular: dict[str, Counter[str]] = {}
        held_out: list[tuple[Session, list[int]]] = []
        for number, (session, learnt) in enumerate(sessions):
            if number % HELD_OUT_EVERY == 0 and len(held_out) < MOST_HELD_OUT:
                held_out.append((session, learnt))
            else:
                self._add(session, learnt)
        pairs = np.array([*chain.from_iterable(self._held_out_shares(*each) for each in held_out)]).reshape(-1, 2)
        costs = [-np.log(weight * pairs[:, 0] + (1 - weight) * pairs[:, 1]).sum() for weight in WEIGHTS]
        self._weight = WEIGHTS[int(np.argmin(costs))]
        for each in held_out:
            self._add(*each)

    def weigh(self, observation: Observation, actions: Sequence[Action]) -> Floats:
        near, popular = self._shares(observation, actions)
        return self._weight * near + (1 - self._weight) * popular

    def _add(self, session: Session, learnt: Sequence[int]) -> None:
        outcomes = [outcome_of(reply_action(step.action)) for step in session.steps]
        for index in learnt:
            self._popular.setdefault(heading_of(session.steps[index].page), Counter())[outcomes[index]] += 1
        taken = frozenset(outcomes[index] for index in learnt)
        for outcome in sorted(taken):
            self._having.setdefault(outcome, []).append(len(self._sessions))
        self._sessions.append(taken)

    def _held_out_shares(self, session: Session, learnt: Sequence[int]) -> Iterator[tuple[float, float]]:
        """Yields the shares of each logged action among neighbours and by popularity."""
        observations = observe_session(session)
        for index in learnt:
            actions = candidate_actions(observations[index], scrolls=self._scrolls)
            logged = reply_action(session.steps[index].action)
            place = next((number for number, action in enumerate(actions) if reply_action(action) == logged), None)
            if place is not None:
                near, popular = self._shares(observations[index], actions)
                yield float(near[place]), float(popular[place])

    def _shares(self, observation: Observation, actions: Sequence[Action]) -> tuple[Floats, Floats]:
        """Computes the shares of the actions among neighbours and by popularity, (actions,) each, both summing to 1."""
        outcomes = [outcome_of(reply_action(action)) for action in actions]
        counts = self._popular.get(heading_of(observation["page"]), Counter[str]())
        popular = np.array([counts[outcome] + 1.0 for outcome in outcomes])
        popular /= popular.sum()
        past = [outcome_of(action) for action in past_actions(observation["history"])]
        similarities: dict[int, float] = {}
        for outcome, position in {outcome: position for position, outcome in enumerate(past, start=1)}.items():
            for number in self._having.get(outcome, [])[-MOST_SHARING:]:
                similarities[number] = similarities.get(number, 0.0) + position / len(past)
        scores: dict[str, float] = {}
        for number, similarity in nlargest(NEIGHBOURS, similarities.items(), key=lambda pair: (pair[1], pair[0])):
            for outcome in self._sessions[number]:
                scores[outcome] = scores.get(outcome, 0.0) + similarity
        near = np.array([scores.get(outcome, 0.0) for outcome in outcomes])
        return (near / near.sum() if near.any() else popular), popular
