"""The shapes of Qwen2.5, without weights."""

from transformers import Qwen2Config

# hidden size, layers, heads, key-value heads, size in the MLP, whether embeddings are tied: config.json
SHAPES = {
    "0.5B": (896, 24, 14, 2, 4864, True),
    "1.5B": (1536, 28, 12, 2, 8960, True),
    "3B": (2048, 36, 16, 2, 11008, True),
    "7B": (3584, 28, 28, 4, 18944, False),
}


def qwen2_config(size: str, layers: int | None = None) -> Qwen2Config:
    """Of Qwen2.5; layers: None: as many as the model has."""
    hidden, depth, heads, kv_heads, inner, tied = SHAPES[size]
    return Qwen2Config(
        hidden_size=hidden, num_hidden_layers=layers or depth, num_attention_heads=heads, num_key_value_heads=kv_heads,
        intermediate_size=inner, vocab_size=151_936, tie_word_embeddings=tied, max_position_embeddings=131_072,
    )  # fmt: skip
