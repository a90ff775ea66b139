"""Builds a tiny Qwen2 model and its tokenizer from a store, for training from scratch on two CPU cores.

The tokenizer is byte-level BPE behind Qwen2's own pre-tokenizer, so that any text survives encoding and decoding. Three
kinds of additional tokens come from the training split:

    words      the words of goals and typed texts. A word is one token in pages, queries and
               elements' names alike, so that a tiny model can copy it.
    names      the names of elements without such words. A name is one token in pages, past
               and wanted replies, so that a tiny model can find it on the page and copy it.
    scaffolds  the frequent text between words and names: markup, headings, the fixed parts
               of a reply. None holds the whole name of an element.

A page of the demo shop is then about 30 tokens, a listing of 34 elements some 70. Such a model can learn to copy words
and names of the prompt.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, set_seed

from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Session, TypeAndSubmit
from shop_env.observation import ContextConfig, observe_session
from shop_env.prompts import PromptConfig, render_prompt
from shop_env.replies import format_reply
from train.config import TinyModelConfig, TinyTokenizerConfig

# Qwen2's pre-tokenizer, as its released tokenizer.json states it.
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
END, PAD = "<|im_end|>", "<|endoftext|>"
SPECIAL = [PAD, "<|im_start|>", END, "<|system|>", "<|user|>", "<|assistant|>"]
# One token before each message and one after it; Qwen2's own template would cost four.
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# The fixed parts of a reply are tokens, so that no token crosses the end of the rationale or of a field. The last ones
# are those of rationales that restate a past action (shop_env/prompts.py).
REPLY_PARTS = [
    '{"rationale": "',
    '", "action": {"type": "click", "name": "',
    '", "action": {"type": "type_and_submit", "name": "',
    '", "action": {"type": "terminate"}}',
    '", "text": "',
    '"}}',
    "I click ",
    "I type '",
    "' into ",
    "I terminate.",
]
# Apart from the rest of an element, so that a mark is the same token at each (shop_env/marks.py). With the space before
# it, or the text before a distance would end with the space of others and leave the distance without its token.
_STATES = ("opened-before clicked-last", "opened-before", "clicked-last")
_DISTANCES = [f"{sign}{distance}" for sign in "+-" for distance in range(1, 51)]
MARKS = [*_STATES, *(f" {mark}" for mark in (*_STATES, *_DISTANCES))]
WORD = re.compile(r"[^\W_]+")
BETWEEN = "<between>"  # stands for a segment of text between other tokens
NAME = re.compile(r' name="([^"]+)"')  # in a page's markup
_DEFAULT_CONTEXT = ContextConfig()


def build_model(tokenizer: Any, config: TinyModelConfig, seed: int) -> Any:
    """Builds a Qwen2ForCausalLM with random weights for `tokenizer`."""
    set_seed(seed)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.key_value_heads,
            max_position_embeddings=config.max_position,
            initializer_range=config.initial_std,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def train_tokenizer(
    sessions: Iterable[Session],
    config: TinyTokenizerConfig,
    prompt: PromptConfig,
    context: ContextConfig = _DEFAULT_CONTEXT,
) -> Any:
    """Trains a tokenizer on a store's training sessions.

    Args:
        sessions: The training sessions.
        config: The size of the tokenizer.
        prompt: The form of prompts.
        context: The part of a session that prompts show.

    Raises:
        BadConfig: There are no sessions.
    """
    sessions = list(sessions)
    if not sessions:
        raise BadConfig("no training sessions to build a tokenizer from: is the store's train split empty?")
    words = _words(sessions, config)
    counts = _count_names(sessions)
    names = _names(counts, words, config)
    texts = [list(_texts(session, prompt, context)) for session in sessions]
    marks = MARKS if context.marks else _STATES
    scaffolds, bpe_texts = _scaffolds(texts, [*marks, *words], names, counts.keys(), config)
    bpe = Tokenizer(models.BPE(byte_fallback=False))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=config.bpe_size, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator(bpe_texts, trainer)
    bpe.add_special_tokens(SPECIAL)
    bpe.add_tokens([*_added([*REPLY_PARTS, *marks, *scaffolds, *words]), *_added(names, single_word=True)])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=END,
        pad_token=PAD,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def _words(sessions: list[Session], config: TinyTokenizerConfig) -> list[str]:
    """Returns the words of goals and typed texts, the most frequent first, ties in alphabetical order."""
    counts: Counter[str] = Counter()
    in_goals: Counter[str] = Counter()
    for session in sessions:
        typed = [step.action.text for step in session.steps if isinstance(step.action, TypeAndSubmit)]
        goal = session.goal or ""
        counts.update(set(WORD.findall(" ".join([goal, *typed]))))
        in_goals.update(set(WORD.findall(goal)))
    frequent = [
        word
        for word, count in counts.items()
        if len(word) > 1 and count >= config.min_count and in_goals[word] <= config.common_share * len(sessions)
    ]
    return sorted(frequent, key=lambda word: (-counts[word], word))[: config.max_words]


def _count_names(sessions: list[Session]) -> Counter[str]:
    """Counts for each name of an element the sessions with it."""
    names_on = lru_cache(maxsize=4096)(lambda page: [element.name for element in find_elements(page)])
    counts: Counter[str] = Counter()
    for session in sessions:
        counts.update({name for page in {step.page for step in session.steps} for name in names_on(page)})
    return counts


def _names(counts: Counter[str], words: list[str], config: TinyTokenizerConfig) -> list[str]:
    """Returns the names that contain none of `words`, the most frequent first, ties in alphabetical order.

    A name with words is no token, because a tiny model copies its words from goals and queries.
    """
    of_shoppers = set(words)
    frequent = [
        name
        for name, count in counts.items()
        if count >= config.min_count and of_shoppers.isdisjoint(WORD.findall(name))
    ]
    return sorted(frequent, key=lambda name: (-counts[name], name))[: config.max_names]


def _scaffolds(
    texts: list[list[str]], words: list[str], names: list[str], elements: Set[str], config: TinyTokenizerConfig
) -> tuple[list[str], list[str]]:
    """Returns the frequent segments of text between words, names and reply parts, and the others, which train BPE.

    A segment with the name of any of the `elements` is among the others, however frequent.
    """
    # Finds the longest of thousands of texts at each place, where alternatives of `re` would take hours.
    splitter = Tokenizer(models.WordLevel({BETWEEN: 0}, unk_token=BETWEEN))
    splitter.add_tokens([*_added(["\n", *SPECIAL, *REPLY_PARTS, *words]), *_added(names, single_word=True)])

    @lru_cache(maxsize=4096)
    def segments_of(text: str) -> list[str]:
        split = splitter.encode(text)
        return [text[slice(*span)] for id, span in zip(split.ids, split.offsets, strict=True) if id == 0]

    counts: Counter[str] = Counter()
    for of_session in texts:
        counts.update({segment for text in of_session for segment in segments_of(text)})
    frequent = [
        segment
        for segment, count in counts.items()
        if len(segment) > 1 and count >= config.min_count and elements.isdisjoint(NAME.findall(segment))
    ]
    frequent.sort(key=lambda segment: (-counts[segment] * len(segment), segment))
    scaffolds = frequent[: config.max_scaffolds]
    others = sorted(counts.keys() - set(scaffolds))
    bpe_texts = [segment for segment in others for _ in range(min(counts[segment], 50))]
    return scaffolds, bpe_texts or [" "]


def _added(texts: Iterable[str], *, single_word: bool = False) -> list[AddedToken]:
    """Returns added tokens; with `single_word` they are no tokens within longer words and names."""
    return [AddedToken(text, normalized=False, single_word=single_word) for text in dict.fromkeys(texts)]


def _texts(session: Session, prompt: PromptConfig, context: ContextConfig) -> Iterator[str]:
    observations = observe_session(session, context)
    for message in render_prompt(observations[-1], prompt):
        yield message["content"]
    if not context.grows_by_appending:  # the last prompt lacks earlier pages
        for observation in observations[:-1]:
            yield render_prompt(observation, prompt)[-1]["content"]
    yield format_reply(session.steps[-1].rationale or "", session.steps[-1].action)
