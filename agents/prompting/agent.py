"""The agent `prompting`: a language model behind a server, as it is, with no training.

    python -m benchmarks.leaderboard --out runs/zero --extraction lenient \\
        --agents "zero-shot=prompting?base_url=http://localhost:8000/v1&model=NAME"

The evaluation decides which parts of a session, and whose persona, are in the prompt (--context.scope,
--context.persona).
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from agents.prompting.answers import NoAnswer
from agents.prompting.chat import Chat
from agents.prompting.formats import choice_format, reply_format, reply_of_choice
from agents.prompting.messages import examples_text, prompt_messages, without_earliest_page
from agents.prompting.options import PromptingOptions, read_options
from agents.train_view import TrainView
from replay_sessions.foundation.errors import BadConfig
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation


class PromptingAgent:
    """Asks a model behind an OpenAI-compatible server: zero-shot, few-shot, guided or choosing.

    Args:
        store: Its train split provides the examples of few-shot.
        options: A TOML file of options.
        arguments: Options (options.PromptingOptions); they override those of the file.

    Attributes:
        concurrency: How many calls an evaluation may make at once.
    """

    def __init__(self, store: TrainView | str | None = None, *, options: str | None = None, **arguments: Any) -> None:
        self.options: PromptingOptions = read_options(options, arguments)
        self.concurrency = self.options.concurrency
        if self.options.shots and store is None:
            raise BadConfig(f"shots is {self.options.shots}, and there is no store to draw examples from: give one")
        self._examples = (
            ""
            if store is None
            else examples_text(
                TrainView.of(store),
                shots=self.options.shots,
                seed=self.options.shot_seed,
                page_characters=self.options.shot_page_characters,
                history=self.options.history_format,
            )
        )
        self._seed: int | None = None
        self._chat = Chat(self.options)

    @staticmethod
    def deciding_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in a spec that decide replies, with the content of files: the identity of a row."""
        options = dict(arguments)
        store = options.pop("store", None)
        return read_options(options.pop("options", None), options).deciding() | ({"store": store} if store else {})

    def reset(self, *, seed: int | None = None) -> None:
        """Seeds the model's draws, where it draws (temperature above 0)."""
        self._seed = seed

    def act(self, observation: Observation) -> str:
        """The model's reply."""
        return self._reply(observation, self._seed)

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str | Exception]:
        """A reply to each, or NoAnswer with its cause. Threads may call it at once."""
        answers: list[str | Exception] = []
        for observation, seed in zip(observations, seeds, strict=True):
            try:
                answers.append(self._reply(observation, seed))
            except Exception as error:  # the answers to the others are paid for
                answers.append(error)
        return answers

    def ask_anew(self) -> None:
        """From now on no stored answer is used."""
        self._chat.reuse = False

    def stop(self) -> None:
        """Sends nothing further; requests in flight are stored when they end."""
        self._chat.stop()

    def remarks(self) -> list[str]:
        """What users should know of its answers: how many were cut, what they cost."""
        shortened = self._chat.counts["shortened"]
        remarks = [f"without the earliest pages, since all were too long: {shortened:,} replies"] if shortened else []
        return [*remarks, *self._chat.remarks()]

    def close(self) -> None:
        """Closes the connections and the file of answers."""
        self._chat.close()

    def _reply(self, observation: Observation, seed: int | None) -> str:
        """The reply to the observation, or to as much of its past as the server takes."""
        seed = secrets.randbits(32) if seed is None else seed
        shortened = observation
        while True:
            try:
                reply = self._reply_to(shortened, seed)
            except NoAnswer as failure:
                shorter = without_earliest_page(shortened)
                if failure.cause != "too long" or not self.options.shorten or shorter is None:
                    raise
                shortened = shorter
            else:
                if shortened is not observation:
                    self._chat.count("shortened")
                return reply

    def _reply_to(self, observation: Observation, seed: int) -> str:
        options = self.options
        candidates = candidate_actions(observation) if options.choice else []
        fields: dict[str, Any] = {
            "messages": prompt_messages(observation, options, examples=self._examples, candidates=candidates)
        }
        if options.schema:
            fields["response_format"] = choice_format(len(candidates)) if options.choice else reply_format()
        text = self._chat.ask(fields, seed=seed).text
        return reply_of_choice(text, candidates) if options.choice else text
