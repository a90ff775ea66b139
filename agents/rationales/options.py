"""The options of `python -m agents.rationales` (__main__.py has the help); no client of a server is loaded for them."""

from pathlib import Path

from agents.prompting.options import ServerOptions
from agents.scored_steps import AnySplit
from replay_sessions.errors import BadConfig

__all__ = ["RationaleOptions"]


class RationaleOptions(ServerOptions, frozen=True, kw_only=True):
    """Writes the rationales that a store lacks.

    Attributes:
        store: `demo` or the path of a session store.
        out: The folder of the new version.
        split: Which of its splits to ask about; the others are taken over as they are.
        overwrite: Replace the store at OUT.
        partial: Write the store also where steps were not answered.
        prompt: A text file (UTF-8) with instructions in place of the built-in ones.
        page_characters: How much of a page is shown, around what was done on it.
        schema: Guided decoding (response_format json_schema).
        seed: What is drawn follows from it; greedy requests draw nothing.
        cache: The file in which answers and what they cost are kept; None: OUT.rationales.sqlite.
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
        if self.page_characters < 1:
            raise BadConfig(f"--page-characters is {self.page_characters}; it must be 1 or more")
