"""The agent `prompting`: a language model behind a server, without training.

    shop-r1 rank --out runs/zero --extraction lenient \\
        --agents "zero-shot=prompting?base_url=http://localhost:8000/v1&model=NAME"

The evaluation decides which parts of a session and which persona are in the prompt (--context.scope,
--context.persona). It stores the replies, so a stopped run only requests the missing ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agents.adapted import SeededAgent
from agents.prompting.chat import Chat, RequestTooLong
from agents.prompting.formats import reply_format
from agents.prompting.messages import examples_text, prompt_messages, without_earliest_page
from agents.prompting.options import deciding_options, parse_options
from replay_sessions.foundation.errors import BadConfig, PromptTooLong
from shop_env.observation import Observation
from shop_env.prompts import prompt_of
from shop_env.train_view import TrainView


class PromptingAgent(SeededAgent):
    """Asks a model behind an OpenAI-compatible server: zero-shot, few-shot or guided.

    If the server rejects a request as too long, the request is sent again without its earliest page, until it fits
    (Customer-R1, section 4.1). Models that are trained here get long sessions in the same way.

    Args:
        store: The store with the train split that few-shot examples are drawn from.
        arguments: The options (options.PromptingOptions).

    Attributes:
        concurrency: The maximum number of calls that an evaluation may make at the same time.
    """

    def __init__(self, store: TrainView | str | None = None, **arguments: Any) -> None:
        self.options = parse_options(arguments)
        view = None if store is None else TrainView.of(store)
        if view is not None:
            prompt = prompt_of(view, self.options.prompt)
            self.options = msgspec.structs.replace(self.options, typing=prompt.typing, scrolls=prompt.scrolls)
        self.concurrency = self.options.concurrency
        if self.options.shots and view is None:
            raise BadConfig(f"shots is {self.options.shots}, and there is no store to draw examples from: give one")
        self._examples = "" if view is None else examples_text(view, self.options)
        self._chat = Chat(self.options)

    @staticmethod
    def deciding_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments that decide replies, with digests of files, which identify a row of a leaderboard."""
        options = dict(arguments)
        store = options.pop("store", None)
        return deciding_options(parse_options(options)) | ({"store": store} if store else {})

    def act(self, observation: Observation) -> str:
        """Returns the model's reply."""
        return self._reply(observation, self._seed)

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str | Exception]:
        """Returns a reply to each observation, or the exception in its place; threads may call it at the same time."""
        replies: list[str | Exception] = []
        for observation, seed in zip(observations, seeds, strict=True):
            try:
                replies.append(self._reply(observation, seed))
            except Exception as error:  # so that paid replies to the others are not lost
                replies.append(error)
        return replies

    def remarks(self) -> list[str]:
        """Returns sentences about the replies so far: how many were cut, how many tokens they took."""
        shortened = self._chat.counts["shortened"]
        remarks = [f"without the earliest pages, since all were too long: {shortened:,} replies"] if shortened else []
        return [*remarks, *self._chat.remarks()]

    def close(self) -> None:
        """Closes the connections; requests in flight fail."""
        self._chat.close()

    stop = close

    def _reply(self, observation: Observation, seed: int | None) -> str:
        """Returns the reply to the observation with as many of its past pages as the server accepts."""
        shortened = observation
        while True:
            try:
                reply = self._reply_to(shortened, seed)
            except RequestTooLong as error:
                shorter = without_earliest_page(shortened)
                if shorter is None:
                    raise PromptTooLong(str(error)) from error
                shortened = shorter
            else:
                self._chat.count(shortened=shortened is not observation)
                return reply

    def _reply_to(self, observation: Observation, seed: int | None) -> str:
        messages = prompt_messages(observation, self.options, examples=self._examples)
        fields = {"response_format": reply_format(self.options.prompt)} if self.options.schema else {}
        return self._chat.ask(messages, seed=seed, **fields).text
