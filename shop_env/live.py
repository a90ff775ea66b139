"""ShopLive-v0: runs the demo shop itself, so each page follows from the agent's own action (free running).

    env = gymnasium.make("ShopLive-v0")
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(reply)

Observations and replies are those of ShopR1-v0, but no logged action exists to compare with. The metrics say how an
agent's visits resemble those of the shop's own shoppers as a population (shop_env.metrics.populations). They are never
shown beside teacher-forced metrics.

After `reset(seed=s)` the visits 0, 1, 2 … of population s follow in order: the shoppers, their goals and the shop's
products are those of `demo_shop.generate_sessions(…, seed=s)`. A reply does nothing if it is malformed or names an
element that is not on the page: page and history stay as they are, and the reply is counted. `gymnasium.make` truncates
visits after 20 replies (`max_episode_steps`); LiveEnv itself has no limit.

Values of `reward`:
    none        always 0: nothing to maximise (the default)
    shopper     the probability that this shopper, with a known policy, would have taken this action here; 0 for a reply
                that does nothing. It is largest for the shopper's likeliest action

`info` after a step:
    session_id, user_id     the visit and its shopper
    step_index              the number of actions taken before this reply
    action                  the action taken, as a reply contains it; absent if the reply did nothing
    problem, problem_detail why the reply did nothing: a code of shop_env.replies, `no_such_element`, or `not_an_input`
    idle_replies            the number of replies of this visit that did nothing
    outcome                 `purchase` or `terminate` after the visit has ended
    revenue_cents           the price of the products bought, without shipping; after the end, in shops with prices
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, assert_never, get_args

from gymnasium.error import ResetNeeded

from replay_sessions.demo_shop import ShopVariant, ShopVisit, action_probabilities
from replay_sessions.demo_shop.shop import PageSize
from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Scroll, Session, Step, Terminate, TypeAndSubmit, reply_action
from shop_env.env import TextEnv, convert_option, named_session
from shop_env.observation import ContextConfig, Observation, observe
from shop_env.rendering import StepView
from shop_env.replies import Extraction, MalformedReply, Reply, parse_reply

LiveReward = Literal["none", "shopper"]
VISIT_CONTEXT = ContextConfig(goal="shown")

_VISIT_ID = re.compile(r"live-(\d+)-(\d{6,})")


class LiveEnv(TextEnv):
    """Visits to the demo shop as episodes, replies as actions. All options are JSON values.

    Args:
        page_size: `small` is a shop that a tiny model can learn; `compact` has fixed prices, search and shoppers who
            compare; `realistic` is the same shop on pages of about 100 kB.
        variant: Fields of replay_sessions.demo_shop.ShopVariant: one change to the pages of `compact` or `realistic`.
        context: A ContextConfig or fields of one: how much of the visit so far is shown, and which persona. None means
            everything, the goal included, because a visitor needs it (VISIT_CONTEXT).
        reward: The reward of a reply; see the head of this module.
        extraction: `strict` accepts only the format; `lenient` finds the one JSON object in a reply (replies.py).
        render_mode: "ansi", or None for no rendering.
    """

    def __init__(
        self,
        page_size: PageSize = "small",
        *,
        variant: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | ContextConfig | None = None,
        reward: LiveReward = "none",
        extraction: Extraction = "strict",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            VISIT_CONTEXT if context is None else context,
            extraction,
            render_mode,
            page_size=(page_size, get_args(PageSize)),
            reward=(reward, get_args(LiveReward)),
        )
        self._page_size: PageSize = page_size
        if self.context.persona == "shuffled":
            raise BadConfig("context.persona is 'shuffled'; a visit to the demo shop has no other users' personas.")
        self._variant = convert_option("variant", variant or {}, ShopVariant)
        self._reward = reward
        self._population: int | None = None
        self._next_visit = 0
        self._visit: _VisitedShop | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts the next visit of the population, or the visit that `options={"session_id": …}` names.

        The named visit may be of any population.
        A seed chooses the population and starts its visit 0; without a seed, each reset starts the next visit.
        """
        super().reset(seed=seed)
        if seed is not None or self._population is None:
            self._population = int(self.np_random.integers(2**31)) if seed is None else seed
            self._next_visit = 0
        if (session_id := named_session(options)) is None:
            population, number = self._population, self._next_visit
            self._next_visit += 1
        else:
            population, number = _parse_visit_id(session_id)
        self._visit = _VisitedShop(population, number, self._page_size, self._variant)
        self._answered = None
        info = {"session_id": self._visit.session_id, "user_id": self._visit.user_id, "step_index": 0}
        return self._visit.observation(self.context), info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Takes the action of a reply in the shop and returns the next observation.

        Args:
            action: The reply. If it is malformed or its action impossible, it changes nothing and raises nothing.

        Returns:
            The next observation (its page is empty after the end of the visit), the reward, whether the visit has ended
            in a purchase or by terminate, False (the env itself never truncates a visit), and the info described at the
            head of this module.
        """
        self._check_reply(action)
        visit = self._visit
        if visit is None or visit.is_over:
            raise ResetNeeded("The visit is over (or none was started): call env.reset() before env.step().")
        info: dict[str, Any] = {
            "session_id": visit.session_id,
            "user_id": visit.user_id,
            "step_index": len(visit.steps),
        }
        reply = parse_reply(action, self._extraction)
        problem = visit.problem_of(reply)
        reward = 0.0
        if problem is not None:
            info["problem"], info["problem_detail"] = problem.problem, problem.detail
        else:
            assert isinstance(reply, Reply)
            if self._reward == "shopper":
                reward = action_probabilities(visit.observation(VISIT_CONTEXT)).get(reply.action, 0.0)
            visit.act(reply)
            info["action"] = reply_action(reply.action)
        visit.replies += 1
        info["idle_replies"] = visit.replies - len(visit.steps)
        if visit.shop.outcome is not None:
            info["outcome"] = visit.shop.outcome
            if visit.shop.revenue_cents is not None:
                info["revenue_cents"] = visit.shop.revenue_cents
        self._answered = action, reward, None if self._reward == "none" else 1.0
        return visit.observation(self.context), reward, visit.is_over, False, info

    def _step_view(self) -> StepView | None:
        if self._visit is None:
            return None
        return StepView(
            session_id=self._visit.session_id,
            observation=self._visit.observation(self.context),
            steps=len(self._visit.steps) if self._visit.is_over else None,
            answered=self._answered,
        )


def visit_id(population: int, number: int) -> str:
    """Formats the session_id of visit number `number` of a population of shoppers."""
    return f"live-{population}-{number:06}"


def _parse_visit_id(session_id: str) -> tuple[int, int]:
    """Parses a session_id of `visit_id` into the population and the number of the visit."""
    if (match := _VISIT_ID.fullmatch(session_id)) is None:
        raise BadConfig(f"session_id is {session_id!r}; a visit is called live-POPULATION-NUMBER: live-0-000012.")
    return int(match[1]), int(match[2])


class _VisitedShop:
    """The shop during one visit: the shopper, the goal, the current page and the steps taken.

    Shopper, goal and shop are those of `demo_shop.generate_sessions`.
    """

    def __init__(self, population: int, number: int, page_size: PageSize, variant: ShopVariant) -> None:
        visit = ShopVisit(population, number, page_size, variant)
        self.session_id = visit_id(population, number)
        self.user_id, self.persona, self.goal, self.shop = visit.user_id, visit.persona, visit.goal, visit.shop
        self.steps: list[Step] = []
        self.replies = 0

    @property
    def is_over(self) -> bool:
        return self.shop.outcome is not None

    def problem_of(self, reply: Reply | MalformedReply) -> MalformedReply | None:
        """Returns why a reply does nothing, or None if its action is possible."""
        if isinstance(reply, MalformedReply):
            return reply
        action = reply.action
        accepts = {element.name: element.accepts for element in find_elements(self.shop.page)}
        match action:
            case Terminate() | Scroll():
                return None
            case Click(name=name) | TypeAndSubmit(name=name) if name not in accepts:
                return MalformedReply("no_such_element", f"the page has no element called {name[:80]!r}")
            case TypeAndSubmit(name=name) if accepts[name] != "type":
                return MalformedReply("not_an_input", f"the element {name[:80]!r} takes no text")
            case Click() | TypeAndSubmit():
                return None
            case _:
                assert_never(action)

    def act(self, reply: Reply) -> None:
        self.steps.append(Step(page=self.shop.page, action=reply.action, rationale=reply.rationale))
        self.shop.respond(reply.action)

    def observation(self, context: ContextConfig) -> Observation:
        """Returns the observation of the visit so far."""
        page = "" if self.is_over else self.shop.page
        session = Session(
            session_id=self.session_id,
            user_id=self.user_id,
            steps=(*self.steps, Step(page=page, action=Terminate())),  # no observation shows the last step's action
            source="live",
            persona=self.persona,
            goal=self.goal,
        )
        return observe(session, len(self.steps), context)
