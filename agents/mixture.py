"""`mixture`: a log-linear pool of agents that give probabilities (C. Genest and J. Zidek, 1986).

    observation ─► each agent's probabilities ─► union of their actions ─► p(a) ∝ Π_i max(p_i(a), floor)^w_i, w_i ≥ 0

shop-r1 rank --agents "mixture?agents=pointer+boosting,pointer" --likelihood --store STORE --out boards/mixture
make_agent("mixture", agents=["runs/mine/sft", "pointer?seed=1"], store=store)

`+` separates the agents, registered ones or checkpoints, each with arguments of its own; in these `&`, `,` and `+` are
written %26, %2C and %252B. Weights and floor minimize the negative log-likelihood (NLL), convex in the weights. These
need not sum to 1, so they also calibrate: a fair comparison is with the mixture of `pointer` alone.

Weights must not be chosen on steps that an agent learnt from. If the mixture itself fits all agents, it fits them to
nine users in ten of the train split, chooses the weights on the others, and fits the agents again to all. A checkpoint
may have learnt from all users; with one, the weights are chosen on the validation split.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from agents.adapted import Distribution, DistributionAgent, Floats
from agents.agent_identity import code_digest, gives_probabilities
from agents.catalogue import LEARNT_FROM_STORE, entry_of, is_own
from agents.registry import format_spec, make_agent, parse_spec
from replay_sessions.foundation.errors import AgentFailed, BadConfig, PromptTooLong, check_at_least
from replay_sessions.schema import Action
from shop_env.evaluation.answering import Probabilities, adapt_agent
from shop_env.evaluation.steps_file import observation_digest
from shop_env.evaluation.waves import AgentSpec
from shop_env.metrics.likelihood import action_key
from shop_env.observation import Observation, observe_session
from shop_env.train_view import TrainView, validation_of

FLOORS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
PRIOR = 0.5  # nats for a weight that is 1 from an equal share, which is the weight if there are no steps
BATCH = 64  # steps in a call of an agent
Weighed = tuple[Floats, int]  # the agents' probabilities of a page's actions, (agents, actions), and the logged action


class Pool(NamedTuple):
    """The numbers of a log-linear pool.

    Attributes:
        weights: The exponents, (agents,).
        floor: The least probability of an action that another agent names.
        nll: The mean NLL of the steps that they were chosen on; NaN without steps.
    """

    weights: Floats
    floor: float
    nll: float

    def shares(self, probabilities: Floats) -> Floats:
        """Returns the pool's probabilities, (actions,), from those of the agents, (agents, actions)."""
        shares: Floats = softmax(self.weights @ np.log(np.maximum(probabilities, self.floor)))
        return shares


class MixtureAgent(DistributionAgent):
    """A log-linear pool of agents that give probabilities, with the weights that held-out users decide.

    Args:
        agents: The agents, separated by `+`, or a list of them.
        store: The store to learn from: its train split; and its validation split for weights, if an agent is a
            checkpoint.
        temperature: See DistributionAgent.
        first_action: Choose the weights on the first step of each session too.
        inferred: Choose the weights on inferred actions too.
        sessions: The maximum number of sessions to choose the weights on, drawn at random.
        seed: The seed that draws them.

    Attributes:
        pool: The weights, in the order of the agents.
    """

    def __init__(
        self,
        agents: str | Sequence[str],
        *,
        store: TrainView | str,
        temperature: float = 0.0,
        first_action: bool = False,
        inferred: bool = False,
        sessions: int = 1000,
        seed: int = 0,
    ) -> None:
        super().__init__(temperature)
        check_at_least(1, sessions=sessions)
        self._specs, view = _parse_agents(agents), TrainView.of(store)
        fitted = self._agents = [make_agent(spec, store=view) for spec in self._specs]
        self.reads_whole_sessions = any(adapt_agent(agent).reads_whole_sessions for agent in self._agents)
        if all(map(_is_fitted, self._specs)):
            self._source = "of held-out users of the train split"
            fitting, held_out = view.divided()
            if len(held_out):
                fitted = [make_agent(spec, store=fitting) for spec in self._specs]
        else:
            self._source = "of the validation split, which this row should not be ranked on"
            held_out = validation_of(view)
            if not len(held_out):
                raise BadConfig(
                    "A mixture with a checkpoint chooses its weights on the validation split, and that of store "
                    f"'{view.name}' has no session."
                )
        drawn = {*random.Random(seed).sample(held_out.session_ids(), min(sessions, len(held_out)))}
        learnt = held_out.learnt(first_action=first_action, inferred=inferred) if drawn else ()
        steps = (
            (observation, session.steps[index].action)
            for session, indices in learnt
            if session.session_id in drawn
            for index, observation in enumerate(observe_session(session, view.context))
            if index in indices
        )
        self._steps, weighed = 0, list[Weighed]()
        while batch := list(islice(steps, BATCH)):
            self._steps += len(batch)
            weighed += _weigh(fitted, batch)
        self._used, self.pool = len(weighed), choose_pool(weighed, len(self._specs))

    @staticmethod
    def deciding_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments that decide replies, with digests of the agents' code and checkpoints."""
        specs = _parse_agents(arguments.get("agents", ""))
        return {**arguments, "agents": [[format_spec(spec), code_digest(spec)] for spec in specs]}

    def distributions(self, observations: Sequence[Observation]) -> list[Distribution | Exception]:
        return [
            page if isinstance(page, Exception) else (page[0], self.pool.shares(page[1]))
            for page in _unite_batch(self._agents, observations)
        ]

    def remarks(self) -> list[str]:
        """Returns a line with the weights and where they come from."""
        weights = ", ".join(
            f"{spec.label} {weight:.2f}" for spec, weight in zip(self._specs, self.pool.weights, strict=True)
        )
        basis = f"NLL {self.pool.nll:.3f} on" if self._used else "equal for want of steps:"
        steps = f"{self._used:,} of {self._steps:,} steps {self._source}"
        return [f"weights {weights}, floor {self.pool.floor:g}, {basis} {steps}"]


def choose_pool(weighed: Sequence[Weighed], agents: int) -> Pool:
    """Returns the weights and the floor with the lowest NLL of the logged actions.

    Args:
        weighed: The steps.
        agents: The number of agents.
    """
    equal = np.full(agents, 1 / agents)
    if not weighed:
        return Pool(equal, FLOORS[0], np.nan)
    width = max(table.shape[1] for table, _ in weighed)
    tables = np.stack([np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table, _ in weighed])
    is_padding = np.arange(width) >= np.array([table.shape[1] for table, _ in weighed])[:, None]
    rows, logged = np.arange(len(weighed)), np.array([taken for _, taken in weighed])
    pools = []
    for floor in FLOORS:
        logs = np.log(np.maximum(tables, floor))

        def log_shares(weights: Floats, logs: Floats = logs) -> Floats:
            shares: Floats = log_softmax(np.where(is_padding, -np.inf, weights @ logs), axis=1)
            return shares

        def cost(weights: Floats, logs: Floats = logs) -> tuple[float, Floats]:
            shares, excess = log_shares(weights, logs), weights - equal
            expected = (logs * np.exp(shares)[:, None]).sum(axis=(0, 2))
            slope = 2 * PRIOR * excess + expected - logs[rows, :, logged].sum(axis=0)
            return PRIOR * (excess**2).sum() - shares[rows, logged].sum(), slope

        weights = minimize(cost, equal, method="L-BFGS-B", jac=True, bounds=[(0, None)] * agents).x
        pools.append(Pool(weights, floor, -float(log_shares(weights)[rows, logged].mean())))
    return min(pools, key=lambda pool: pool.nll)


def _parse_agents(agents: str | Sequence[str]) -> list[AgentSpec]:
    specs = [parse_spec(text) for text in (agents.split("+") if isinstance(agents, str) else agents) if text]
    for spec in specs:
        if not gives_probabilities(spec) or not is_own(spec) or spec.target == "mixture":
            raise BadConfig(
                f"A mixture cannot hold '{spec.label}': it takes agents of this project that give probabilities, and "
                "checkpoints."
            )
    if not specs:
        raise BadConfig("A mixture needs agents, as in mixture?agents=pointer+boosting")
    return specs


def _is_fitted(spec: AgentSpec) -> bool:
    """Returns whether the agent learns from the store that it is made for, and from nothing else."""
    entry = entry_of(spec)
    return entry is not None and entry.kind in LEARNT_FROM_STORE


def _weigh(agents: Sequence[Any], steps: Sequence[tuple[Observation, Action]]) -> Iterator[Weighed]:
    """Yields the steps at which no agent failed and an agent names the logged action."""
    pages = _unite_batch(agents, [observation for observation, _ in steps])
    for page, (_, logged) in zip(pages, steps, strict=True):
        if not isinstance(page, Exception):
            keys = list(map(action_key, page[0]))
            if (key := action_key(logged)) in keys:
                yield page[1], keys.index(key)


def _unite_batch(agents: Sequence[Any], observations: Sequence[Observation]) -> list[Distribution | Exception]:
    # Draws of rationales depend on the observation alone, as all of the mixture does.
    seeds = [int(observation_digest(observation)[:8], 16) for observation in observations]
    answers = [agent.probabilities(observations, seeds=seeds) for agent in agents]
    return list(map(unite, zip(*answers, strict=True)))


def unite(answers: Sequence[Probabilities | Exception | None]) -> Distribution | Exception:
    """Returns all actions that an agent names, and each agent's probabilities of them, (agents, actions).

    A missing probability is 0. An agent whose prompt is too long has no say, because all its probabilities are 0, which
    the pool's floor makes equal; unless that is so of all agents. Any other exception stands in place of the actions.
    """
    actions: dict[tuple[str, ...], Action] = {}
    rows = []
    is_readable = any(isinstance(answer, Mapping) for answer in answers)
    for answer in answers:
        if isinstance(answer, PromptTooLong) and is_readable:
            answer = {}
        if not isinstance(answer, Mapping):
            return answer or AgentFailed("an agent of the mixture gives no probabilities")
        row: dict[tuple[str, ...], float] = {}
        for action, probability in answer.items():
            key = action_key(action)
            actions.setdefault(key, action)
            row[key] = row.get(key, 0.0) + probability
        rows.append(row)
    return [*actions.values()], np.array([[row.get(key, 0.0) for key in actions] for row in rows])
