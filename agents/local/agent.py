"""`local`: a language model in this process, zero-shot, with or without a LoRA adapter.

    path ─► train.models (folder, hub id, GGUF file, package:NAME/FILE.gguf) ─► agents.local.policy_agent.PolicyAgent

shop-r1 rank --agents "local?path=models/mine&temperature=0" --out runs/zero_shot
shop-r1 rank --agents "local?path=org/name&adapter=adapters/mine" --out runs/zero_shot

The model reads the prompt that training uses (shop_env/prompts.py); a checkpoint of a training run reads its own
prompt. Prompts of a session share the computation of their pages. For a model behind a server use the agent
`prompting`.
"""

import logging
from pathlib import Path
from typing import Any

import msgspec

from agents.local.pointer import PointerPolicy
from agents.local.policy_agent import Decode, PolicyAgent, usual_device
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch, check_choice, first_line
from shop_env.observation import ContextConfig
from shop_env.prompts import PromptConfig, Style, prompt_of
from shop_env.train_view import TrainView
from train.chat_template import template_remarks, today
from train.checkpoints import CHECKPOINT_FILE, CheckpointInfo, read_info
from train.contract import EXAMPLE, check_contract
from train.lora import ADAPTER_FILE, adapter_base, load_adapter
from train.machine import Precision
from train.models import load_model
from train.pointer.checkpoint import is_pointer

logger = logging.getLogger(__name__)

UNTRAINED = CheckpointInfo(
    made_by="",
    store_fingerprint="",
    context=ContextConfig(),
    prompt=PromptConfig(),
    temperature=0.0,
    max_new_tokens=160,
    max_tokens=4096,
    own_tokenizer=False,
)
VERL_FOLDER = "checkpoints/global_step_*/actor/huggingface"  # of a model, in a folder that --for-verl wrote
VERL_ADAPTER = "lora_adapter"  # where verl's merger puts the adapter beside its base


def local(
    path: str | None = None,
    *,
    store: TrainView | str | None = None,
    adapter: str | None = None,
    temperature: float = 0.0,
    max_new_tokens: int | None = None,
    max_tokens: int | None = None,
    precision: Precision | None = None,
    device: str | None = None,
    style: Style | None = None,
    system_file: str | None = None,
    own_tokenizer: bool = False,
    template_variables: dict[str, Any] | None = None,
    template_date: str | None = None,
    decode: Decode = "tokens",
    rationales: int | None = None,
) -> PolicyAgent | PointerPolicy:
    """Runs your language model, zero-shot: a folder, hub id or GGUF file, with or without a LoRA adapter.

    Args:
        path: The model, as train/models.py reads it, or the checkpoint of a `pointer`, which takes a temperature alone;
            None means the base model that the adapter names.
        store: The store that the agent will be evaluated on; the prompt uses its log's word for typing.
        adapter: The folder of a LoRA adapter (peft's adapter_config.json).
        temperature: The sampling temperature; 0 is greedy.
        max_new_tokens: The maximum number of tokens of a reply; None means that of a checkpoint, or else 160.
        max_tokens: The maximum number of tokens of prompt and reply together; None means that of a checkpoint, or else
            4,096. The earliest pages of a longer prompt are left out.
        precision: The precision of computation, `float32` or `bfloat16_autocast`; None means bfloat16 on a GPU, and
            float32 elsewhere.
        device: The device of the model; None means a GPU if the machine has one.
        style, system_file: The format of prompts (shop_env.prompts.PromptConfig); None means the format that the
            adapter or the model was trained with, if it is a checkpoint of a training run, or else the default.
        own_tokenizer: Whether the tokenizer was trained with the model (train/tiny.py).
        template_variables: Variables of the model's chat template, such as {"enable_thinking": false}, in place of
            those that a checkpoint was trained with.
        template_date: The day that a chat template writes which asks for the date; None means that of a checkpoint, or
            else today.
        decode, rationales: The way to choose a reply, and the number of draws for it (agents.local.policy_agent).

    Raises:
        BadConfig: The options do not fit together, or no model is named.
        CheckpointMismatch: The model or the adapter cannot be loaded.
        MissingExtra: The package that reads GGUF files or adapters is not installed.
    """
    device = device or usual_device()
    precision = precision or ("float32" if device == "cpu" else "bfloat16_autocast")
    check_choice("precision", precision, Precision)
    if path is not None and is_pointer(Path(path)):
        return PointerPolicy(path, temperature=temperature)
    if path is not None and adapter is None and (merged := Path(path) / VERL_ADAPTER / ADAPTER_FILE).exists():
        adapter = str(merged.parent)
    model_path = _base(path, adapter)
    trained = _read_trained(adapter, model_path) or UNTRAINED
    if not isinstance(template_variables, dict | None):
        raise BadConfig(
            f'template_variables is {template_variables!r}; give a JSON object, {{"enable_thinking": false}}.'
        )
    prompt = msgspec.structs.replace(trained.prompt, **_given(style=style, system_file=system_file))
    info = msgspec.structs.replace(
        trained,
        made_by=f"{model_path} as it is",
        prompt=prompt_of(store and TrainView.of(store), prompt),
        temperature=temperature,
        own_tokenizer=own_tokenizer or trained.own_tokenizer,
        precision=precision,
        template_variables=trained.template_variables | (template_variables or {}),
        template_date=template_date or trained.template_date or today(),
        **_given(max_new_tokens=max_new_tokens, max_tokens=max_tokens),
    )
    policy = _load(model_path, adapter, info, device)
    return PolicyAgent(policy=policy, temperature=temperature, decode=decode, rationales=rationales)


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _load(path: str, adapter: str | None, info: CheckpointInfo, device: str) -> tuple[Any, Any, CheckpointInfo]:
    model, tokenizer = load_model(
        path,
        max_tokens=info.max_tokens,
        own_tokenizer=info.own_tokenizer,
        device=device,
        template_variables=info.template_variables,
        template_date=info.template_date,
    )
    check_contract(tokenizer, [EXAMPLE], info.context, info.prompt, long_pages=info.long_pages)
    for remark in template_remarks(tokenizer, info.template_date):
        logger.warning("%s: %s", path, remark)
    if adapter is not None:
        model = _with_adapter(model, Path(adapter), path)
    model.requires_grad_(False)  # so that weights are held in the precision of computation
    return model, tokenizer, info


def _base(path: str | None, adapter: str | None) -> str:
    if adapter is not None and not (Path(adapter) / ADAPTER_FILE).exists():
        raise CheckpointMismatch(f"'{adapter}' holds no LoRA adapter: there is no {ADAPTER_FILE} in it.")
    model_path = path or (adapter and adapter_base(Path(adapter)))
    if not model_path:
        raise BadConfig("Agent 'local' needs a model: local?path=FOLDER, a hub id, FILE.gguf or package:NAME/FILE.gguf")
    return model_path


def _read_trained(adapter: str | None, model_path: str) -> CheckpointInfo | None:
    """Returns the info of the adapter, or else of the model, if that is a checkpoint of our trainer or verl."""
    folders = [Path(folder) for folder in (adapter, model_path) if folder is not None]
    model = Path(model_path).resolve()
    if model.match(VERL_FOLDER):
        folders.append(model.parents[3])
    return next((read_info(folder)[0] for folder in folders if (folder / CHECKPOINT_FILE).exists()), None)


def _with_adapter(model: Any, adapter: Path, path: str) -> Any:
    try:
        return load_adapter(model, adapter).merge_and_unload()
    except (RuntimeError, ValueError, KeyError) as error:
        raise CheckpointMismatch(
            f"the adapter '{adapter}' does not fit the model '{path}': {first_line(error)}"
        ) from error
