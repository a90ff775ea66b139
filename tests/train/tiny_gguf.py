"""A Llama of a few thousand random weights as a GGUF file, with a byte-level tokenizer and a chat template."""

from pathlib import Path

import gguf
import numpy as np
from tokenizers.pre_tokenizers import ByteLevel

__all__ = ["END", "write_gguf"]

# transformers takes the first of them for the end too (its reader of GGUF tokenizers confuses the two), so that the
# tokenizer names another end than its template writes behind a message: as with SmolLM2.
START, END = "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WIDTH, INNER, HEADS, LAYERS = 32, 64, 4, 2


def write_gguf(path: Path) -> None:
    """Writes the file."""
    tokens = ["<|endoftext|>", START, END, *sorted(ByteLevel.alphabet()), "in", "on"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("A name that leads nowhere")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (len(tokens) - 3))
    writer.add_token_merges(["i n", "o n"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    draw = np.random.default_rng(0)
    for name, shape in tensors(len(tokens)).items():
        values = np.ones(shape) if len(shape) == 1 else draw.normal(0, 0.1, shape)
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors(vocabulary: int) -> dict[str, tuple[int, ...]]:
    """The names and shapes of llama.cpp's Llama."""
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocabulary, WIDTH), "output_norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_norm.weight": (WIDTH,),
            f"blk.{layer}.attn_q.weight": (WIDTH, WIDTH),
            f"blk.{layer}.attn_k.weight": (WIDTH // 2, WIDTH),
            f"blk.{layer}.attn_v.weight": (WIDTH // 2, WIDTH),
            f"blk.{layer}.attn_output.weight": (WIDTH, WIDTH),
            f"blk.{layer}.ffn_norm.weight": (WIDTH,),
            f"blk.{layer}.ffn_gate.weight": (INNER, WIDTH),
            f"blk.{layer}.ffn_up.weight": (INNER, WIDTH),
            f"blk.{layer}.ffn_down.weight": (WIDTH, INNER),
        }
    return shapes
