"""The text of `--help`: prose that is wrapped, and tyro's flags on one screen."""

import re
from textwrap import fill, shorten

HELP_ALL = "--help-all"
HELP_WIDTH = 80  # tyro's own
# In tyro's help without boxes: the head of a group; and a flag, its values, and what it means, beside it or below.
_GROUP = re.compile(r"^ (?=\S.*\n -{9})", re.MULTILINE)
_FLAG = re.compile(r"^  (--[\w-]+|[^\s-]\S*)(?: .*?)?(?: {2,}(\S.*?))? *$((?:\n {4}.*$)*)", re.MULTILINE)


def wrap(text: str | None) -> str:
    """Prose is wrapped; a paragraph with indented lines, such as examples, stays as it is."""
    paragraphs = (text or "").strip("\n").split("\n\n")
    wrapped = (each if "\n " in f"\n{each}" else fill(each, HELP_WIDTH) for each in paragraphs)
    return "".join(f"{each}\n\n" for each in wrapped)


def get_head(text: str) -> str:
    """The first paragraph, and the first examples."""
    first, *others = text.strip("\n").split("\n\n")
    return "\n\n".join([first, *[other for other in others if other.startswith("  ")][:1]])


def shorten_flags(flags: str) -> str:
    """Of tyro's help the usage, the command's own flags in a line each, and the tables whose keys are flags too."""
    usage, *groups = _GROUP.split(flags)
    lines = [f"{usage.strip()}\n\n"]
    own = "\n".join(group for group in groups if group.startswith(("positional ", "options ")))
    for flag, beside, below in _FLAG.findall(own):
        text = " ".join([beside, *below.split()]).strip()
        meaning, _, default = text.removesuffix(")").rpartition(" (")
        default = "" if default in ("default: None", "default: False", "default: ") else f" ({default})"
        sentence = re.split(r"[.;](?: |$)", meaning)[0]
        line = f"  {flag:<18} "
        if len(line) + len(default) > HELP_WIDTH // 2:  # a long default, which --help-all has
            default = ""
        room = HELP_WIDTH - len(line) - len(default)
        lines.append(line + shorten(sentence, room, placeholder=" …") + default + "\n")
    tables = ", ".join(f"--{table}.*" for table in dict.fromkeys(re.findall(r"^  --([\w-]+)\.", flags, re.M)))
    further = f"Further flags: {tables}. " if tables else ""
    return "".join([*lines, "\n", fill(f"{further}{HELP_ALL} explains every flag.", HELP_WIDTH), "\n"])
