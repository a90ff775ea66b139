"""What looks like a person's name: by its shape where something announces one, else by what people are called.

Brands and books are named like people ("Tom Ford", "Jane Eyre"). So where nothing but a weak word such as "Name" or
"for" stands before it, a name counts only if part of it is a given name of the gazetteer or ends as surnames do,
and it is none of the brands, authors and characters of words.toml.
"""

import functools
import re

from replay_sessions.private_data.gazetteer import fold, read_gazetteer
from replay_sessions.private_data.spans import EAST_ASIAN, VOWEL_SIGNS, word_list, word_set

_MAX_NAME_WORDS = 6
_SHORTEST_PART = 3
_WORD = re.compile(rf"[^\W\d_][\w’'.{VOWEL_SIGNS}-]*")
_THAI_TITLE = re.compile("คุณ|นางสาว|นาง|นาย")
PARTICLES = frozenset({
    "af", "al", "av", "bin", "da", "dal", "das", "de", "degli", "dei", "del", "della", "den", "der", "di", "do", "dos",
    "du", "e", "el", "ibn", "la", "las", "le", "los", "op", "san", "ten", "ter", "van", "vom", "von", "y", "zu", "zum",
    "zur",
})  # fmt: skip
_SURE_PARTICLES = ("van", "von", "bin", "ibn", "vom")  # the others stand in names of dishes and shops too
_TELLING = 6
_BETWEEN_WORDS = (" ", "·", "・", "　")
# Endings that hardly any word but a surname has, and those that other words have too.
_SURE_SURNAME = re.compile(
    r"(?:Mc|O['’])[A-Z]\w+|\w{2,}(?:mann|meier|meyer|maier|huber|sson|quist|qvist|lund|ström|wicz|czyk"
    r"|ová|ovič|ić|vić|enko|chuk|oğlu|ínez|érez|ández|ález|ínguez|íguez|opoulos|akis|shvili)"
)
_SURNAME = re.compile(
    r"(?:Mac|D['’]|Fitz)[A-Z]\w+|\w{2,}(?:bauer|hoff|stein|berger|schmidt|son|sen|gren|strand|berg|ski|ska|cki|cka|ov|ova|ev|eva|yan|ini"
    r"|elli|etti|ella|ucci|ardi|ez|ães|eira|eiro|alho|eau|ault|ins|kins|worth|ley|ford|stra|sma|inga|huis|veld|wala|ani)"
)
_JAPANESE_NAME = re.compile(r"[一-鿿々]{1,4}[ 　][一-鿿々぀-ヿ]{1,5}|[ァ-ヿ]{2,8}[ 　][ァ-ヿ]{2,8}")
_CHINESE_NAME = re.compile(
    r"(?:欧阳|司马|上官|诸葛|[王李张張刘劉陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何高林罗羅郑鄭梁谢謝宋唐许許邓鄧韩韓冯馮曹彭曾萧田董潘袁蔡蒋"
    r"蔣余于杜叶葉程魏苏蘇吕呂丁任卢盧姚沈钟鍾姜崔谭譚陆陸范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔])"
    r"[一-鿿]{1,2}"
)
_KOREAN_NAME = re.compile(
    "(?:남궁|황보|선우|[김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우구민진지엄채원천방공현함변염여추도소석선설마길연위표명기반왕금옥육인맹제모])"
    "[가-힣]{2}"
)
_SMALL_NAME = re.compile(r"([^\W\d_]{2,20})(?:( [^\W\d_]{2,20}(?![\w’']))( ?\S*))?")
_PATRONYM = re.compile(r"\w+(?:вич|вна|ична|овна)")


@functools.cache
def _brands() -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(brand.lower().split()) for brand in word_list("brands_and_books"))


def leading_name(piece: str) -> str:
    """What a piece of text begins with that has the shape of a name, with its title; "" if nothing has."""
    taken: list[str] = []
    end = 0
    for match in _WORD.finditer(piece):
        word = match[0]
        bare = word.lower().rstrip(".")
        if (taken and piece[end : match.start()] not in _BETWEEN_WORDS) or (not taken and match.start()):
            break
        if bare in word_set("not_private", "after_names"):
            break
        if word[0].islower() and bare not in (PARTICLES if taken else word_set("titles")):
            break
        taken.append(word)
        end = match.end()
        ends_sentence = word[-1] == "." and len(bare) >= _SHORTEST_PART and bare not in word_set("titles")
        if len(taken) == _MAX_NAME_WORDS or ends_sentence:
            break
    while taken and (taken[-1].lower() in PARTICLES or taken[-1].lower().rstrip(".") in word_set("titles")):
        last = taken.pop()
        end = len(piece[: end - len(last)].rstrip())
    return piece[:end].rstrip(".-'’")


def small_name(piece: str, *, is_sure: bool = False) -> str:
    """A name in small letters that a piece of text begins with: a given name, and what follows up to a small word.

    Args:
        is_sure: Any two words are one that end with their text, or before "and".
    """
    match = _SMALL_NAME.match(piece)
    small_words = PARTICLES | word_set("and_words", "told_before_people")
    if not match or match[1] in small_words | word_set("not_private"):
        return ""
    is_full = match[2] is not None and match[2].strip() not in small_words
    if is_given(match[1].capitalize()) or (
        is_sure and is_full and (match[3] or "").strip(" ,.;!") in (*small_words, "")
    ):
        return match[1] + (match[2] if is_full else "")
    return ""


def is_brand(name: str) -> bool:
    """Whether a brand, an author or a character is in a name that is called like people."""
    words = tuple(word.strip(".,'’").lower() for word in name.split())
    return any(words[start:end] in _brands() for start in range(len(words)) for end in range(start + 1, len(words) + 1))


def name_parts(name: str) -> list[str]:
    """What of a full name means its bearer on other pages too: each word but titles, initials and everyday words."""
    if _KOREAN_NAME.fullmatch(name):
        return [name[1:]]
    name = _THAI_TITLE.sub("", name)
    words = [word.strip(".,;'’") for word in re.split("[ ·・\u3000]", name)]
    idle = PARTICLES | word_set("titles", "not_private", "menu_words", "surnames_and_words")
    return [
        word
        for word in words
        if len(word) >= (_SHORTEST_PART if word < EAST_ASIAN else 2)
        and word.lower() not in idle
        and word.capitalize() not in word_set("words_and_names")
    ]


@functools.lru_cache(1 << 15)
def is_person(name: str) -> bool:
    """Whether a name is one of a person, as far as can be told from it alone."""
    if name >= EAST_ASIAN:
        patterns = (_JAPANESE_NAME, _CHINESE_NAME, _KOREAN_NAME)
        return any(pattern.fullmatch(name) for pattern in patterns)
    if _THAI_TITLE.match(name):
        return True
    words = [word.strip(".,'’") for word in name.split()]
    lowered = [word.lower() for word in words]
    if not words or is_brand(name) or not read_gazetteer().words.isdisjoint(map(fold, lowered)):
        return False
    if lowered[0] in word_set("titles"):
        return len(words) > 1
    parts = [part for word in (words[0], words[-1]) for part in (word, word.split("-")[0])]
    if any(map(is_given, parts)):
        return True
    if len(words) > 1 and any(part in word_set("words_and_names") for part in parts[:2]):
        return _SURE_SURNAME.fullmatch(words[-1]) is not None or _SURNAME.fullmatch(words[-1]) is not None
    return len(words) > 1 and (
        any(particle in lowered[1:-1] for particle in _SURE_PARTICLES)
        or _SURE_SURNAME.fullmatch(words[-1].split("-")[-1]) is not None
        or any(map(_PATRONYM.fullmatch, lowered))
    )


def is_given(word: str) -> bool:
    """Whether a word is a given name, or the form for the other sex of one that is long enough to tell."""
    names, bare = read_gazetteer().given, fold(word)
    return bare in names or (
        len(bare) > _TELLING and bare[-1] in "ao" and bare[:-1] + ("o" if bare[-1] == "a" else "a") in names
    )
