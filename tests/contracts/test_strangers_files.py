"""Files of strangers run no code, read no file and open no connection that the caller did not name."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agents.llm_grpo.named_code import named_code
from agents.llm_grpo.options import prepare, prepare_from
from agents.llm_grpo.presets import preset_names, read_tables, rows_names
from agents.llm_grpo.run_folder import begin_run
from benchmarks.leaderboard.__main__ import main
from benchmarks.report.__main__ import main as report
from replay_sessions.foundation.errors import BadConfig, BadSession, CheckpointMismatch, ImportFailed
from replay_sessions.foundation.guard import MOST_BYTES, Guard
from replay_sessions.importers.sources.record_files import read_records
from replay_sessions.store import SessionStore, StoreWriter
from tests.demo_stores import demo_store_at
from tests.json_files import edited_json
from tests.train.conftest import Tiny, checkpoint_info, make_tiny
from train.checkpoints import CHECKPOINT_FILE, PROMPT_FILE, load_checkpoint, save_checkpoint
from train.config import LoraConfig
from train.lora import ADAPTER_FILE, add_adapter
from train.models import load_model, load_tokenizer

CODE = "open({marker!r}, 'w').close()\ndef reward(reply, logged): return 1.0\nclass Method: pass\n"


@pytest.fixture
def store(tmp_path) -> SessionStore:
    demo_store_at(tmp_path / "store", 60, seed=1)
    return SessionStore.open(tmp_path / "store")


@pytest.fixture
def theirs(tmp_path) -> Path:
    """A file of code that leaves a mark where it is run."""
    file = tmp_path / "theirs.py"
    file.write_text(CODE.format(marker=str(tmp_path / "ran")), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def tiny() -> Tiny:
    return make_tiny()


def rank(store: SessionStore, out: Path, agents: str = "random") -> int:
    return main(["--agents", agents, "--store", str(store.path), "--out", str(out), "--sessions", "3"])


@pytest.mark.parametrize("name", [*preset_names(), *rows_names()])
def test_presets_of_the_package_name_no_code(name):
    tables = read_tables(name) if name in preset_names() else read_tables("tiny_cpu", name)
    assert named_code(tables) == []


@pytest.mark.parametrize(
    "text",
    [
        'reward = "{code}:reward"',
        '[phases.shop_r1]\nreward = "{code}:reward"',
        '[phases.shop_r1]\nmethod = "{code}:Method"',
        '[evaluation]\nagents = ["random", "{code}:Method"]',
        '[evaluation]\nagents = ["sft=runs/theirs/sft"]',
        '[evaluation]\nagents = ["ngram?store=/etc"]',
        '[prompt]\nsystem_file = "/etc/hostname"',
    ],
)
def test_a_preset_runs_and_reads_nothing_that_the_call_does_not_name(text, theirs, tmp_path):
    preset = tmp_path / "theirs.toml"
    preset.write_text(f'base = "base.toml"\n{text.format(code=theirs)}\n', encoding="utf-8")
    (tmp_path / "base.toml").write_text('base = "tiny_cpu"\n', encoding="utf-8")
    call = f"--preset {preset} --out {tmp_path}/out".split()
    with pytest.raises(BadConfig) as refused:
        prepare(call)
    [name] = named_code(read_tables(str(preset)))
    assert f"--trust {name}" in str(refused.value).replace("'", "") and not (tmp_path / "ran").exists()
    options, _, config = prepare([*call, "--trust", name])
    assert name in named_code(msgspec.to_builtins(config)) and options.trust == (name,)


def test_code_named_on_the_command_line_needs_no_trust(theirs, tmp_path):
    preset = tmp_path / "mine.toml"
    preset.write_text(f'base = "tiny_cpu"\nreward = "{theirs}:reward"\n', encoding="utf-8")
    call = f"--preset {preset} --out {tmp_path}/out".split()
    assert prepare([*call, "--reward", f"{theirs}:reward"])[2].reward_config.kind == f"{theirs}:reward"
    assert prepare([*call, "--reward", "binary"])[2].reward_config.kind == "binary"
    for refused in (lambda: prepare([*call, "--dry-run"]), lambda: prepare_from({"preset": str(preset)})):
        with pytest.raises(BadConfig):
            refused()
    given = {"preset": str(preset), "out": str(tmp_path / "out")}
    assert prepare_from({**given, "trust": [f"{theirs}:reward"]})[2].reward == f"{theirs}:reward"


def test_a_run_is_resumed_as_it_is_and_an_edited_one_only_with_consent(theirs, store, tmp_path):
    folder, name = tmp_path / "run", f"{theirs}:reward"
    words = ["--reward", name, "--store", str(store.path), "--out", str(folder)]
    begin_run(folder, prepare(words)[2], store)
    assert prepare(["--resume", str(folder)])[2].reward_config.kind == name
    with edited_json(folder / "run.json") as run:
        run["config"]["seed"] = 5
    for call in (["--resume", str(folder)], [*words, "--extend", "--seed", "5"]):
        with pytest.raises(BadConfig):
            prepare(call)
        assert prepare([*call, "--trust", name])[2].seed == 5


@pytest.mark.parametrize("place", ["config", "provenance"])
def test_results_name_no_function_that_is_called(place, theirs, store, tmp_path, capsys):
    out = tmp_path / "out"
    assert rank(store, out) == 0
    with edited_json(out / "results.json") as log:
        config = log["config"] if place == "config" else log["provenance"]["config"]
        config["reward"] = f"{theirs}:reward"
    for command in ("verify", "submit"):
        words = [command, str(out), *(["x"] if command == "submit" else []), "--store", str(store.path)]
        assert main(words) == 2
        assert "--trust" in capsys.readouterr().err
    assert place == "provenance" or report([str(out)]) == 2
    assert not (tmp_path / "ran").exists()


def test_a_session_that_was_rewritten_is_found_wherever_the_fingerprint_is_printed(store, tmp_path, capsys):
    """One of the train split, which this evaluation does not read."""
    out, forged = tmp_path / "out", tmp_path / "forged"
    assert rank(store, out) == 0
    changed = store.session_ids("train")[0]
    with StoreWriter(tmp_path / "other", source=store.manifest.source, splits=store.manifest.split_plan) as writer:
        for session in store.sessions():
            writer.write(msgspec.structs.replace(session, goal="x") if session.session_id == changed else session)
    shutil.copytree(store.path, forged)
    with edited_json(forged / "manifest.json") as manifest:
        for mine, other in zip(manifest["shards"], SessionStore.open(tmp_path / "other").manifest.shards, strict=True):
            shutil.copy(tmp_path / "other" / other.file, forged / f"shards/{mine['digest']}.parquet")
            mine["size_bytes"] = other.size_bytes
    assert SessionStore.open(forged).fingerprint == store.fingerprint
    with pytest.raises(BadSession):
        SessionStore.open(forged).session(changed)
    assert rank(SessionStore.open(forged), tmp_path / "again") == 2
    assert main(f"verify {out} --store {forged}".split()) == 1
    assert main(f"submit {out} x --store {forged} --results {tmp_path}/records".split()) == 1
    assert not (tmp_path / "records").exists() and changed in capsys.readouterr().out


def test_a_parquet_file_that_unpacks_to_gigabytes_is_not_read(store, tmp_path, monkeypatch):
    monkeypatch.setattr("replay_sessions.store.manifest.MOST_UNPACKED_BYTES", 40_000_000)
    pages = pa.table({"page": pa.array(["a" * 10_000_000] * 5)})
    pq.write_table(pages, tmp_path / "bomb.parquet", compression="zstd", use_dictionary=False)
    with pytest.raises(ImportFailed, match="unpacks to"):
        next(iter(read_records(tmp_path / "bomb.parquet")))
    [shard] = store.manifest.shards
    file = store.path / shard.file
    pq.write_table(pq.read_table(file), file, compression="zstd")  # with a dictionary, which hides what it unpacks to
    with edited_json(store.path / "manifest.json") as manifest:
        manifest["shards"][0]["size_bytes"] = file.stat().st_size
    with pytest.raises(BadSession, match="dictionary"):
        next(SessionStore.open(store.path).sessions())


def test_a_request_that_is_too_long_is_not_read():
    read = [0]

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "http.request":
            read[0] += len(message["body"])
        await send({"type": "end"})

    async def receive() -> Any:
        return {"type": "http.request", "body": b"x" * 1_000_000, "more_body": True}

    def ask(**headers: str) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        asyncio.run(Guard(application)({"type": "http", "path": "/", "headers": named}, receive, send))
        return sent

    assert ask(host="localhost", content_length=str(MOST_BYTES + 1))[0]["status"] == 413
    assert read == [0]
    assert ask(host="localhost") == [{"type": "end"}]
    assert read[0] <= MOST_BYTES


def test_an_adapter_has_nothing_beside_plain_lora(tiny, tmp_path):
    tiny.save(tmp_path / "base")
    model, _ = load_model(str(tmp_path / "base"), own_tokenizer=True)
    adapter = tmp_path / "adapter"
    save_checkpoint(adapter, add_adapter(model, LoraConfig(rank=2), seed=0), tiny.tokenizer, checkpoint_info())
    load_checkpoint(adapter)
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()", encoding="utf-8")
    original = (adapter / ADAPTER_FILE).read_text(encoding="utf-8")
    for hostile in (
        {"megatron_config": {"a": 1}, "megatron_core": "evil"},
        {"auto_mapping": {"base_model_class": "X", "parent_library": "evil"}},
        {"init_lora_weights": "pissa"},
        {"unheard_of": "evil"},
        {"peft_type": "IA3"},
    ):
        with edited_json(adapter / ADAPTER_FILE) as config:
            config.update(hostile)
        with pytest.raises(CheckpointMismatch, match="no plain LoRA"):
            load_checkpoint(adapter)
        (adapter / ADAPTER_FILE).write_text(original, encoding="utf-8")
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    with pytest.raises(CheckpointMismatch, match="safetensors"):
        load_checkpoint(adapter)
    assert not (tmp_path / "ran").exists()


def test_a_checkpoint_s_prompt_lies_in_it_and_nowhere_else(tiny, tmp_path):
    (tmp_path / "mine.txt").write_text("Say what comes next.", encoding="utf-8")
    info = checkpoint_info()
    prompt = msgspec.structs.replace(info.prompt, system_file=str(tmp_path / "mine.txt"))
    folder = tmp_path / "checkpoint"
    save_checkpoint(folder, tiny.plain_model(), tiny.tokenizer, msgspec.structs.replace(info, prompt=prompt))
    (tmp_path / "mine.txt").unlink()
    moved = folder.rename(tmp_path / "moved")
    found = load_checkpoint(moved)[2].prompt.system_file
    assert found is not None and Path(found).read_text(encoding="utf-8") == "Say what comes next."
    (moved / PROMPT_FILE).unlink()
    (moved / PROMPT_FILE).symlink_to("/etc/hostname")
    with pytest.raises(CheckpointMismatch):
        load_checkpoint(moved)
    for elsewhere in ("/etc/hostname", f"../{PROMPT_FILE}"):
        with edited_json(moved / CHECKPOINT_FILE) as content:
            content["prompt"]["system_file"] = elsewhere
        with pytest.raises(CheckpointMismatch):
            load_checkpoint(moved)


def test_a_chat_template_that_loops_ends(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("train.chat_template.TEMPLATE_LIMIT_S", 0.2)
    tiny.tokenizer.save_pretrained(tmp_path)
    loop = "{% for i in range(99999) %}{% for j in range(99999) %}{{ '' }}{% endfor %}{% endfor %}"
    (tmp_path / "chat_template.jinja").write_text(loop, encoding="utf-8")
    with pytest.raises(CheckpointMismatch, match="chat template"):
        load_tokenizer(str(tmp_path), own_tokenizer=True)
