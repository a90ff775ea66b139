"""A page of half a megabyte and 3,000 style rules about tags: neither classes nor ids rule out most of its elements."""

RULES = {
    "unknown_tag": "div p{n} {{display:none}}",
    "missing_tags": "div section span b i{n} {{display:none}}",
    "not": "div:not(.x{n}) > p {{display:none}}",
    "nth_child": "p:nth-child({n}) {{display:none}}",
    "nested_tags": "{tags} {{display:none}}",
}
ELEMENTS = "<div><ul><li><p>Kettle of some length</p><a href=x>A</a></ul></div>"
PAGE = ELEMENTS * 8_000
_TAGS = ("div", "p", "span", "ul", "li", "b", "section", "i")


def write_rules(rule: str, first: int = 0) -> str:
    """A `<style>` with 3,000 rules, numbered from `first`: none of them is cached if others were read before."""
    numbers = range(first, first + 3_000)
    rules = [rule.format(n=n, tags=" ".join(_TAGS[n // 8**place % 8] for place in range(4))) for n in numbers]
    return f"<style>{' '.join(rules)}</style>"
