"""What the walk does with each HTML tag.

Lexbor numbers the tags that it knows; comparing numbers spares the walk a string per node, so the table is keyed by
them. Tags that HTML does not know (a site's own elements) are treated as `div`.
"""

from selectolax.lexbor import LexborHTMLParser

# How an element is written out. Plain numbers, since they are compared for every element; from ACTED_ON on an element
# always needs a closer look.
SKIPPED = 0  # not at all, nor what is inside
BREAK = 1  # as a blank
MERGED = 2  # only its content, which belongs to the word around it
INLINE = 3  # only its content, which is a word of its own
BLOCK = 4  # as it is, unless it is empty or only wraps one other element
ITEM = 5  # as it is, unless it is empty
ACTED_ON = 6  # as it is, with a name
LABEL = 7  # only its content, which labels an input
STRUCK = 8  # as it is, unless it is empty: a price that no longer holds
IMAGE = 9  # if it has an alternative text

_KINDS = {
    # Tags that hold nothing to read.
    SKIPPED: "audio base basefont bgsound canvas col colgroup datalist embed frame frameset hr iframe link "
    "math meta noembed noframes noscript object param progress script source style svg template track video",
    MERGED: "b bdi bdo big em font ins mark nobr small strong sub tt u var wbr",
    INLINE: "abbr acronym address cite code data dfn i kbd map optgroup output picture q rp rt ruby samp slot span sup "
    "tbody tfoot thead time",
    BLOCK: "article aside body center details dialog div dl fieldset figure footer form header hgroup html main menu "
    "nav ol search section table tr ul",
    ITEM: "blockquote caption dd dt figcaption h1 h2 h3 h4 h5 h6 legend li p pre td th",
    ACTED_ON: "a area button input option select summary textarea",
    LABEL: "label",
    STRUCK: "del s strike",
    BREAK: "br",
    IMAGE: "img",
}


def _table() -> dict[int, tuple[str, int]]:
    """Tag number -> tag and kind, as lexbor numbers them."""
    document = LexborHTMLParser("")
    table = {document.create_node(tag).tag_id: (tag, kind) for kind, tags in _KINDS.items() for tag in tags.split()}
    for node in LexborHTMLParser("<p><!-- comment --><?instruction?>").css("p")[0].iter(include_text=True):
        table[node.tag_id] = ("", SKIPPED)
    return table


TAGS = _table()
UNKNOWN = ("div", BLOCK)
TEXT = next(node.tag_id for node in LexborHTMLParser("<p>text").css("p")[0].iter(include_text=True))
TITLE = LexborHTMLParser("").create_node("title").tag_id
