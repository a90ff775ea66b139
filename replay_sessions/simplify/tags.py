"""Defines how the walk treats each HTML tag.

The table is keyed by lexbor's numbers of tags, because comparing numbers saves a string per node. Custom elements and
other unknown tags are treated as `div`.
"""

from selectolax.lexbor import LexborHTMLParser

# How an element is written. Plain integers, because they are compared for every element. Elements of kind ACTED_ON and
# above always need a closer look.
SKIPPED = 0  # not written, content included
BREAK = 1  # as a blank
MERGED = 2  # only its content, which may be a part of a word
INLINE = 3  # only its content, as separate words
BLOCK = 4  # with its tags, unless it is empty or only wraps another element
ITEM = 5  # with its tags, unless it is empty
ACTED_ON = 6  # with its tags and a name
LABEL = 7  # only its content, which labels a field
STRUCK = 8  # with its tags, unless it is empty: a former price
IMAGE = 9  # only if it has an alternative text

_KINDS = {
    # Tags without readable content.
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
    """Returns the tag and kind of each of lexbor's numbers of tags."""
    document = LexborHTMLParser("")
    table = {document.create_node(tag).tag_id: (tag, kind) for kind, tags in _KINDS.items() for tag in tags.split()}
    for node in LexborHTMLParser("<p><!-- comment --><?instruction?>").css("p")[0].iter(include_text=True):
        table[node.tag_id] = ("", SKIPPED)
    return table


TAGS = _table()
UNKNOWN = ("div", BLOCK)
TEXT = next(node.tag_id for node in LexborHTMLParser("<p>text").css("p")[0].iter(include_text=True))
TITLE = LexborHTMLParser("").create_node("title").tag_id
