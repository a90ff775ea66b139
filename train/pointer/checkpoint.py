"""Writes and reads checkpoints of pointers: `pointer.json`, the vocabularies and counts, and the network's weights.

`shop_r1_checkpoint.json` marks the folder as a checkpoint, as for language models; only safetensors and JSON are read.
"""

from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from replay_sessions.foundation.durable_files import writing
from replay_sessions.foundation.errors import CheckpointMismatch, first_line
from replay_sessions.foundation.records import Config
from replay_sessions.store.work_folder import WorkFolder
from shop_env.choices.facts import OfferReader
from shop_env.choices.reader import ReaderState
from shop_env.observation import ContextConfig, drop_former_keys
from train.checkpoints import CHECKPOINT_FILE
from train.pointer.encoding import Encoder, Vocabulary
from train.pointer.fit import Pointer
from train.pointer.network import PointerNetwork, Sizes

POINTER_FILE = "pointer.json"
WEIGHTS_FILE = "pointer.safetensors"


class PointerInfo(Config):
    """A pointer without its network's weights.

    Attributes:
        context: The context that it was trained in.
        names, words, categories: The keys of the vocabularies by their numbers, from 1.
        mean, deviation: The scale of numbers, (NUMBERS,).
    """

    made_by: str
    store_fingerprint: str
    context: ContextConfig
    reader: ReaderState
    names: list[str]
    words: list[str]
    categories: list[Any]
    mean: list[float]
    deviation: list[float]
    idle_roles: list[int]
    other_share: float


def is_pointer(folder: Path) -> bool:
    """Returns whether a folder is the checkpoint of a pointer."""
    return (folder / POINTER_FILE).is_file()


def save_pointer(path: Path, pointer: Pointer, *, made_by: str, store_fingerprint: str, context: ContextConfig) -> None:
    """Writes a checkpoint folder; an older checkpoint in its place is replaced.

    Raises:
        BadConfig: The folder exists and is no checkpoint.
        WriteFailed: The system refused to write; the older checkpoint is unchanged.
    """
    encoder = pointer.encoder
    info = PointerInfo(
        made_by=made_by,
        store_fingerprint=store_fingerprint,
        context=context,
        reader=encoder.reader.state(),
        names=_keys(encoder.names),
        words=_keys(encoder.words),
        categories=_keys(encoder.categories.numbers),
        mean=encoder.mean.tolist(),
        deviation=encoder.deviation.tolist(),
        idle_roles=pointer.idle_roles.tolist(),
        other_share=pointer.other_share,
    )
    with WorkFolder(path, overwrite=True, marker=CHECKPOINT_FILE) as work:
        with writing(path):
            save_file(pointer.network.state_dict(), work.new / WEIGHTS_FILE)
            (work.new / POINTER_FILE).write_bytes(msgspec.json.encode(info))
            (work.new / CHECKPOINT_FILE).write_bytes(msgspec.json.encode({"made_by": made_by, "file": POINTER_FILE}))
        work.commit()


def load_pointer(folder: Path) -> tuple[Pointer, PointerInfo]:
    """Reads a checkpoint folder.

    Raises:
        CheckpointMismatch: The folder is no checkpoint of a pointer, or is damaged.
    """
    try:
        info = msgspec.json.decode(drop_former_keys((folder / POINTER_FILE).read_bytes()), type=PointerInfo)
        encoder = Encoder(OfferReader.restored(info.reader))
        encoder.names, encoder.words = _numbers(info.names), _numbers(info.words)
        encoder.categories = Vocabulary.fixed(_numbers(_hashable(key) for key in info.categories))
        encoder.mean = np.array(info.mean, dtype=np.float32)
        encoder.deviation = np.array(info.deviation, dtype=np.float32)
        network = PointerNetwork(Sizes.of(encoder))
        network.load_state_dict(load_file(folder / WEIGHTS_FILE))
    except (OSError, RuntimeError, SafetensorError, TypeError, msgspec.DecodeError) as error:
        raise CheckpointMismatch(f"'{folder}' is no checkpoint of a pointer: {first_line(error)}") from error
    network.eval().requires_grad_(False)
    return Pointer(encoder, network, np.array(info.idle_roles, dtype=np.int64), info.other_share), info


def _keys(numbers: Mapping[Any, int]) -> list[Any]:
    return sorted(numbers, key=numbers.__getitem__)


def _numbers(keys: Iterable[Any]) -> dict[Any, int]:
    return {key: number for number, key in enumerate(keys, start=1)}


def _hashable(key: Any) -> Hashable:
    return tuple(key) if isinstance(key, list) else key
