"""A shop's own address and phone numbers, which are nobody's: its name or its customer service is near them."""

import functools
import re

from replay_sessions.private_data.spans import SEPARATOR, PageText, Span, word_list

_NEAR = 2  # texts before it
_LONGEST_MARK = 3  # characters around a number that is all that a text says
_LONGEST_FORM = 12
_LONGEST = 300  # characters of a text that may say whose number it is
# Legal forms of companies, copyright, and the number of a company.
_COMPANY = re.compile(
    r"©|®|(?<!\w)(?:Ltd|Limited|Inc|LLC|L\.L\.C|PLC|GmbH|AG|KG|OHG|SAS|SARL|S\.A\.S|S\.A\.R\.L|S\.A|SpA|S\.p\.A|S\.?r\.?l"
    r"|B\.V|BV|N\.V|A/S|ApS|AS|ASA|AB|Oy|Oyj|a\.s|s\.r\.o|Sp\. z o\.o|sp\. k|S\.L|S\.L\.U|Lda|Ltda|Kft|Zrt|Nyrt|d\.o\.o"
    r"|S\.R\.L|A\.Ş|Ltd\. Şti|Pty|Pte|Co|Corp|EOOD|ЕООД|ООО|ОАО|ТОВ|ΑΕ|Α\.Ε|CNPJ|HRB|SIREN|RCS|USt-IdNr)(?![\w])"
    r"|株式会社|有限会社|有限公司|股份|주식회사|\(주\)|㈜|บริษัท"
)


def is_company(text: str, end: int) -> bool:
    """Whether a name that ends at a place has a company's legal form at its end or behind it."""
    form = _COMPANY.search(text, max(0, end - _LONGEST_FORM), end + _LONGEST_FORM)
    return form is not None and form.start() <= end + 1 and SEPARATOR not in text[end : form.start()]


def is_shops(page: PageText, span: Span) -> bool:
    """Whether an address or a number is the shop's by what stands around it."""
    position = page.text_at(span.start)
    own, before = page.texts[position], page.texts[max(0, position - _NEAR) : position]
    if span.kind == "address":
        return any(_COMPANY.search(text) for text in (own, *before) if len(text) <= _LONGEST)
    is_alone = len(own) <= span.end - span.start + _LONGEST_MARK
    return span.kind == "phone" and any(map(_speaks_of_service, (own, *(before[-1:] if is_alone else ()))))


@functools.lru_cache(64)  # a text of many phone numbers is asked about for each
def _speaks_of_service(text: str) -> bool:
    lowered = text.lower()
    return any(words in lowered for words in word_list("services"))
