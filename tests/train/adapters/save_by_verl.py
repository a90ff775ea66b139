"""Saves a model as verl does, by its checkpoint manager for FSDP2, in the processes of torchrun.

torchrun --nproc-per-node 2 tests/train/adapters/save_by_verl.py MODEL FOLDER LORA_RANK CONTENTS…
"""

import sys
from collections.abc import Sequence

import torch
from peft import LoraConfig, get_peft_model
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM

from train.models import load_tokenizer


def save(path: str, folder: str, rank: int, contents: Sequence[str]) -> None:
    from omegaconf import OmegaConf  # noqa: PLC0415 - of the extra verl
    from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager  # noqa: PLC0415

    torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    if rank:
        lora = LoraConfig(r=rank, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
        model = get_peft_model(model, lora)
    fully_shard(model, mesh=init_device_mesh("cpu", (torch.distributed.get_world_size(),), mesh_dim_names=("fsdp",)))
    manager = FSDPCheckpointManager(
        model,
        optimizer=torch.optim.AdamW(model.parameters()),
        processing_class=load_tokenizer(path),
        checkpoint_config=OmegaConf.create({"save_contents": contents, "load_contents": contents}),
    )
    manager.save_checkpoint(folder)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    save(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
