"""The options of `python -m agents.rationales` (__main__.py has the help); they need no client of a server."""

from pathlib import Path

from agents.prompting.options import ServerOptions
from replay_sessions.foundation.errors import check_at_least
from shop_env.evaluation.scored_steps import AnySplit


class RationaleOptions(ServerOptions, frozen=True, kw_only=True):
    """Writes the rationales that a store lacks.

    Attributes:
        store: `demo` or the path of a session store.
        out: The folder of the new version.
        split: The split whose rationales are written; the others are copied as they are.
        overwrite: Replace the store at OUT.
        partial: Write the store also where steps have no answer.
        prompt: A text file (UTF-8) with instructions in place of the built-in ones.
        page_characters: The length of the window of a page around the action.
        schema: Guided decoding (response_format json_schema).
        seed: Seeds the model's draws; greedy requests draw nothing.
        cache: The file of answers and of their cost; None: OUT.rationales.sqlite.
        request: Further fields of each request, as JSON, such as '{"top_p": 0.9}'.
    """

    store: str
    out: Path
    split: AnySplit = "all"
    overwrite: bool = False
    partial: bool = False
    prompt: Path | None = None
    page_characters: int = 30_000
    schema: bool = False
    seed: int = 0
    cache: str | None = None
    request: str = "{}"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, page_characters=self.page_characters)
