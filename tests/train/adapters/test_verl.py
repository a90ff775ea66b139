"""verl gets our steps, in our order, and our rewards; what needs verl itself runs by `make test-verl`."""

import asyncio
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from agents.llm_grpo.train import main
from agents.registry import make_agent
from benchmarks.leaderboard.__main__ import main as rank
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch
from replay_sessions.schema import reply_action
from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig, observe_session
from shop_env.replies import format_reply
from shop_env.reward import reward_preset
from shop_env.reward.score import TERM_NAMES
from shop_env.serving.tasks import StepTasks
from shop_env.versions import SCORING_VERSION
from tests.demo_stores import demo_store_at
from tests.processes import run_python
from tests.train.conftest import COMPACT
from tests.train.test_grpo import CONFIG
from train.adapters.steps import Scoring, order_file, write_order
from train.adapters.verl import AGGREGATIONS, compute_score, overrides
from train.chat_template import encode, render
from train.config import LoraConfig, ModelConfig
from train.grpo.loss import DEVIATION_EPSILON, scaled_advantages, token_weights
from train.grpo.trainer import grpo_plan, scored_trunks
from train.models import load_tokenizer, load_weights

GRPO = msgspec.structs.replace(CONFIG, steps_per_batch=6, steps=9)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    return demo_store_at(tmp_path_factory.mktemp("verl") / "store", 60, seed=4)


@pytest.fixture(scope="module")
def written(store, tiny, tmp_path_factory) -> Path:
    """What the command leaves for a small model on the demo shop."""
    folder = tmp_path_factory.mktemp("for") / "verl"
    model = folder.parent / "model"
    tiny.save(model)
    words = ["--preset", "shop_r1_3b", "--store", str(store.path), "--model.path", str(model), "--out", folder.name]
    words += ["--model.max-tokens", "700", "--model.max-new-tokens", "40", "--grpo.max-new-tokens", "40"]
    words += ["--grpo.steps", "5", "--grpo.steps-per-batch", "6", "--prompt.style", "compact"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.parent)
        assert main([*words, "--for-verl", "shop_r1"]) == 0
    return folder


def rows_of(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return rows


def words_of(folder: Path) -> list[str]:
    """The words of the launch script."""
    (call,) = re.findall(r"exec python -m verl\.trainer\.main_ppo (.*)", (folder / "launch.sh").read_text(), re.DOTALL)
    return [word for word in shlex.split(call.replace("\\\n", " ")) if word != "$@"]


def replies_to(logged: dict[str, str]) -> list[str]:
    action = json.dumps(logged)
    return [
        f'{{"rationale": "because", "action": {action}}}',
        f'{{"rationale": "", "action": {json.dumps({**logged, "name": "elsewhere"})}}}',
        '{"rationale": "enough", "action": {"type": "terminate"}}',
        '{"rationale": "", "action": {"type": "input", "name": "search", "text": "kettle"}}',  # no action of this shop
        f"I would say {action}",
        "",
    ]


@pytest.mark.parametrize("reward", ["shop_r1", "binary", "customer_r1"])
def test_replies_earn_the_rewards_of_the_env(store, reward):
    config = reward_preset(reward)
    tasks = StepTasks(store, reward=config)
    numbers = {"scoring": msgspec.json.encode(Scoring(reward=config, version=SCORING_VERSION)).decode()}
    for index in range(0, tasks.count("all"), 7):
        answer = tasks.answer("all", index)
        for reply in replies_to(tasks.score("all", index, "").logged_action):
            ours = tasks.score("all", index, reply)
            theirs = compute_score("shop_r1", reply, json.dumps(answer), numbers)
            assert theirs["score"] == ours.reward
            assert theirs["exact_match"] == float(bool(ours.exact_match))
            assert theirs["readable"] == float(ours.problem is None)
            assert {term: theirs[term] for term in theirs if term in ours.reward_breakdown}.items() <= (
                ours.reward_breakdown.items()
            )


def test_on_a_store_without_validation_sessions_verl_does_not_validate(tmp_path, capsys, written):
    small = demo_store_at(tmp_path / "store", 4, seed=3)
    assert not small.session_ids("validation")
    words = ["--store", str(small.path), "--model.path", str(written.parent / "model"), "--grpo.steps-per-batch", "2"]
    assert main([*words, "--for-verl", "shop_r1", "--out", str(tmp_path / "out")]) == 0
    assert "No session is in validation" in capsys.readouterr().out
    assert {"trainer.test_freq=-1", "trainer.val_before_train=false"} <= set(words_of(tmp_path / "out"))
    assert rows_of(tmp_path / "out" / "validation.parquet")  # verl opens it in any case


def test_rows_of_something_else_are_not_scored():
    with pytest.raises(BadConfig, match="data_source is 'gsm8k'"):
        compute_score("gsm8k", "72", "72", {})


@pytest.mark.parametrize("balance", ["uniform", "balanced"])
def test_the_order_is_that_of_our_batches(tiny, balance, tmp_path):
    config = msgspec.structs.replace(GRPO, balance=balance)
    trunks = scored_trunks(tiny.trunks)
    write_order(tmp_path / "train.parquet", trunks, config, seed=5)
    order = json.loads(order_file(tmp_path / "train.parquet").read_text())
    steps = [(trunk.session_id, reply.step_index) for trunk in trunks for reply in trunk.replies]
    plan = grpo_plan(tiny.trunks, config, seed=5)
    assert len(order) == 6 * 9
    for number in range(9):
        ours = {(trunk.session_id, reply.step_index) for trunk, replies in plan.batch(number) for reply in replies}
        assert {steps[row] for row in order[6 * number : 6 * number + 6]} == ours


def test_the_command_writes_every_step_that_is_predicted_and_how_to_start(written, store):
    rows = rows_of(written / "train.parquet")
    asked = {(id, index) for id in store.session_ids("train") for index in range(1, store.step_count(id))}
    assert {(row["extra_info"]["session_id"], row["extra_info"]["step"]) for row in rows} == asked
    assert len(rows) == len(asked)
    for row in rows[::5]:
        logged = store.session(row["extra_info"]["session_id"]).steps[row["extra_info"]["step"]]
        best = compute_score(
            row["data_source"],
            format_reply("", logged.action),
            row["reward_model"]["ground_truth"],
            row["extra_info"],
        )
        assert best["exact_match"] == 1
        assert row["prompt"][-1] == {"role": "user", "content": logged.page}
        assert json.dumps(reply_action(logged.action)) not in row["prompt"][-1]["content"]
    assert max(json.loads(order_file(written / "train.parquet").read_text())) < len(rows)
    words = words_of(written)
    assert f"data.train_files={written / 'train.parquet'}" in words
    assert "data.train_batch_size=6" in words
    assert "trainer.total_training_steps=5" in words
    assert "actor_rollout_ref.actor.optim.lr=1e-07" in words
    assert ": Shop-R1 without self-certainty" in (written / "launch.sh").read_text()


@pytest.mark.verl
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["ppo_trainer", "ppo_megatron_trainer"])
def test_verl_knows_every_word_of_the_launch_line(written, engine):
    config = verl_config(words_of(written), engine)
    assert config.data.train_batch_size == 6
    assert config.actor_rollout_ref.actor.optim.betas == [0.9, 0.999]
    assert config.actor_rollout_ref.rollout.n == 8


# What main_ppo runs with FSDP and vLLM; trainers that it does not start read options that are dead here.
ON_THE_WAY = ["trainer/main_ppo.py", "trainer/ppo/v1", "trainer/ppo/utils.py", "trainer/ppo/reward.py"]
ON_THE_WAY += [
    "trainer/ppo/core_algos.py",
    "workers/engine_workers.py",
    "workers/engine/fsdp",
    "workers/utils/losses.py",
]
ON_THE_WAY += ["workers/rollout/vllm_rollout", "workers/config", "experimental/agent_loop", "experimental/reward_loop"]
ON_THE_WAY += ["utils/dataset/rl_dataset.py", "utils/checkpoint", "utils/config.py"]
ON_THE_WAY += ["utils/tracking.py", "trainer/config/rollout/rollout.yaml"]  # the second reads lengths of data


def is_read(option: str, sources: str) -> bool:
    """Returns whether verl reads the last word of an option: as an attribute that is not assigned, or by its name."""
    name = option.rpartition(".")[2]
    return bool(re.search(rf"""\.{name}\b(?!\s*=[^=])(?!\()|get\(\s*["']{name}["']|\[["']{name}["']\]""", sources))


@pytest.mark.verl
def test_each_option_that_is_written_is_read_on_the_way_of_main_ppo(written, tmp_path):
    import verl  # noqa: PLC0415 - of the extra verl

    paths = [Path(verl.__file__).parent / path for path in ON_THE_WAY]
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    sources = re.sub(r"(?m)^\s*#.*$", "", "\n".join(file.read_text("utf-8") for file in files))
    adapted = overrides(GRPO, ModelConfig(path="m", max_tokens=700, lora=LoraConfig(rank=8)), tmp_path, seed=0)
    options = {word.partition("=")[0] for word in words_of(written)} | adapted.keys()
    assert sorted(option for option in options if not is_read(option, sources)) == []
    assert not is_read("actor_rollout_ref.actor.use_prefix_grouper", sources)
    assert not is_read("trainer.balance_batch", sources)


@pytest.mark.verl
@pytest.mark.filterwarnings("ignore")
def test_the_extra_brings_the_imports_of_main_ppo(written):
    from verl.trainer.ppo.v1 import AgentLoopManagerTQ, get_trainer_cls  # noqa: PLC0415 - of the extra verl

    config = verl_config(words_of(written))
    assert config.trainer.use_v1
    assert get_trainer_cls(config.trainer.v1.trainer_mode) and AgentLoopManagerTQ


@pytest.mark.verl
@pytest.mark.filterwarnings("ignore")
def test_verl_accepts_the_configuration_on_any_number_of_gpus(written):
    from verl.trainer.ppo.utils import need_critic, need_reference_policy  # noqa: PLC0415 - of the extra verl
    from verl.utils.config import validate_config  # noqa: PLC0415

    for nodes, gpus in [(1, 1), (1, 8), (2, 8)]:
        config = verl_config([*words_of(written), f"trainer.nnodes={nodes}", f"trainer.n_gpus_per_node={gpus}"])
        assert need_reference_policy(config)
        validate_config(config, need_reference_policy(config), need_critic(config))
        assert config.actor_rollout_ref.ref.log_prob_use_dynamic_bsz
        assert config.actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu == 700


@pytest.mark.verl
@pytest.mark.filterwarnings("ignore")
def test_verl_s_agent_loop_renders_the_tokens_of_the_contract(written):
    from verl.utils.tokenizer.continuous_token_wiring import (  # noqa: PLC0415 - of the extra verl
        create_continuous_token_builder,
    )

    tokenizer = load_tokenizer(verl_config(words_of(written)).actor_rollout_ref.model.path)
    builder = create_continuous_token_builder(tokenizer=tokenizer, processor=None, chat_template_kwargs={})
    for row in rows_of(written / "train.parquet")[::7]:
        text = render(tokenizer, row["prompt"], generation_prompt=True)
        assert builder.build_initial_tokens(row["prompt"]) == encode(tokenizer, [text], special=True)[0]


@pytest.mark.verl
@pytest.mark.filterwarnings("ignore")
def test_verl_reads_our_rows_in_our_order(written):
    from verl.trainer.ppo.utils import create_rl_dataset, create_rl_sampler  # noqa: PLC0415 - of the extra verl

    config = verl_config(words_of(written))
    tokenizer = load_tokenizer(config.actor_rollout_ref.model.path)
    train = create_rl_dataset(config.data.train_files, config.data, tokenizer, None)
    rows, order = rows_of(written / "train.parquet"), json.loads(order_file(written / "train.parquet").read_text())
    assert list(create_rl_sampler(config.data, train)) == list(range(len(order)))
    assert [train[place]["extra_info"]["index"] for place in range(len(order))] == order
    assert train[3]["raw_prompt"] == rows[order[3]]["prompt"]
    validation = create_rl_dataset(config.data.val_files, config.data, tokenizer, None, is_train=False)
    assert len(validation) == len(rows_of(written / "validation.parquet"))
    limit = config.data.max_prompt_length
    for row in (train[place] for place in range(len(order))):
        text = tokenizer.apply_chat_template(row["raw_prompt"], tokenize=False, add_generation_prompt=True)
        assert len(tokenizer(text, add_special_tokens=False)["input_ids"]) <= limit


@pytest.mark.verl
@pytest.mark.filterwarnings("ignore")
def test_verl_s_reward_manager_gives_the_env_s_rewards_and_logs_their_terms(written, store):
    from verl import DataProto  # noqa: PLC0415 - of the extra verl
    from verl.trainer.ppo.metric_utils import process_validation_metrics  # noqa: PLC0415
    from verl.trainer.ppo.reward import load_reward_manager  # noqa: PLC0415

    config = verl_config(words_of(written))
    tokenizer = load_tokenizer(config.actor_rollout_ref.model.path)
    row = rows_of(written / "train.parquet")[4]
    logged = json.loads(row["reward_model"]["ground_truth"])
    tasks = StepTasks(store, prompt=COMPACT)
    (index,) = [
        index
        for index in range(tasks.count("train"))
        if tasks.step_of("train", index).task_id == f"{row['extra_info']['session_id']}#{row['extra_info']['step']}"
    ]

    async def score(reply: str) -> dict[str, Any]:
        manager = load_reward_manager(config, tokenizer)
        tokens = torch.tensor([tokenizer(reply, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]])
        data = DataProto.from_dict(
            tensors={"responses": tokens, "attention_mask": torch.ones_like(tokens)},
            non_tensors={name: np.array([row[name]], dtype=object) for name in row if name != "prompt"},
        )
        scored: dict[str, Any] = await manager.run_single(data)
        return scored

    logs = []
    for reply in replies_to({key: value for key, value in logged.items() if isinstance(value, str)}):
        seen = tokenizer.decode(tokenizer(reply, add_special_tokens=False)["input_ids"])
        ours, theirs = tasks.score("train", index, seen), asyncio.run(score(reply))
        assert theirs["reward_score"] == ours.reward
        logs.append(theirs["reward_extra_info"])
        assert {term: logs[-1][term] for term in TERM_NAMES} == {t: ours.reward_breakdown[t] for t in TERM_NAMES}
        assert sum(logs[-1][term] for term in TERM_NAMES) == pytest.approx(ours.reward)
    assert max(log["name_similarity"] for log in logs) == pytest.approx(1000)  # the term that DARS scales

    columns = {name: [log[name] for log in logs] for name in logs[0]}
    (metrics,) = process_validation_metrics(["shop_r1"] * len(logs), ["one"] * len(logs), columns).values()
    means = {name: metrics[name][f"mean@{len(logs)}"] for name in metrics}
    assert means == pytest.approx({name: float(np.mean(values)) for name, values in columns.items()})
    assert means.keys() == {"score", *TERM_NAMES, "exact_match", "readable"}


def save_by_verl(model: Path, run: Path, rank: int, contents: Sequence[str]) -> Path:
    """Saves the model, with an adapter of this rank if it is not 0, as verl would after step 50 of the run."""
    actor = run / "checkpoints" / "global_step_50" / "actor"
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = Path(__file__).with_name("save_by_verl.py")
    done = run_python(*torchrun, script, model, actor, str(rank), *contents)
    assert done.returncode == 0, done.stderr
    return actor


def merge_as_told(actor: Path) -> None:
    """Runs the command that the error for an unmerged checkpoint names."""
    with pytest.raises(CheckpointMismatch, match="verl saved it in shards") as told:
        make_agent(f"local?path={actor / 'huggingface'}")
    _, _, command = str(told.value).partition("python ")
    done = run_python(*shlex.split(command))
    assert done.returncode == 0, done.stderr


@pytest.mark.verl
@pytest.mark.filterwarnings("ignore")
def test_rank_reads_checkpoints_of_verl_s_manager(written, store, tiny, tmp_path):
    contents = verl_config(words_of(written)).actor_rollout_ref.actor.checkpoint.save_contents
    actor = save_by_verl(written.parent / "model", written, 0, contents)
    assert (actor / "model_world_size_2_rank_1.pt").exists()
    agent: Any = make_agent(f"local?path={actor / 'huggingface'}")
    assert (agent.info.max_tokens, agent.info.max_new_tokens, agent.info.prompt.style) == (700, 40, "compact")
    assert agent.info.context == ContextConfig(rationales=False, persona="none")
    spec = f"verl=local?path={actor / 'huggingface'}"
    words = ["--store", str(store.path), "--split", "test", "--sessions", "2", "--out", str(tmp_path / "board")]
    assert rank(["--agents", spec, *words]) == 0

    def weights() -> dict[str, torch.Tensor]:
        return load_weights(str(actor / "huggingface"), max_tokens=None, device="cpu").state_dict()

    trained = tiny.plain_model().state_dict()
    assert all(torch.equal(trained[name], weight) for name, weight in weights().items())
    (actor / "huggingface" / "model.safetensors").unlink()
    merge_as_told(actor)
    assert all(torch.equal(trained[name].bfloat16().float(), weight) for name, weight in weights().items())


@pytest.mark.verl
@pytest.mark.filterwarnings("ignore")
def test_rank_reads_an_adapter_that_verl_saved(written, store, tmp_path):
    adapted = overrides(GRPO, ModelConfig(path="m", max_tokens=700, lora=LoraConfig(rank=8)), tmp_path, seed=0)
    contents = adapted["actor_rollout_ref.actor.checkpoint.save_contents"].strip("[]").split(",")
    actor = save_by_verl(written.parent / "model", tmp_path, 4, contents)
    merge_as_told(actor)
    observations = observe_session(next(iter(store.sessions("test"))))

    def probabilities(path: Path) -> Any:
        agent: Any = make_agent(f"local?path={path}&rationales=0&style=compact")
        return agent.probabilities(observations)

    assert probabilities(actor / "huggingface") != probabilities(written.parent / "model")


@pytest.mark.verl
@pytest.mark.filterwarnings("ignore")
def test_verl_s_advantages_and_clipped_loss_are_ours():
    from verl import DataProto  # noqa: PLC0415 - of the extra verl
    from verl.trainer.ppo.core_algos import agg_loss  # noqa: PLC0415
    from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories  # noqa: PLC0415

    rewards = torch.tensor([[0.0, 1.0, 0.5, 0.25], [2.0, 2.0, 1.0, 0.0]])
    lengths = [3, 1, 4, 2, 2, 4, 1, 3]
    mask = torch.tensor([[float(place < length) for place in range(4)] for length in lengths])
    last = torch.tensor([[float(place == length - 1) for place in range(4)] for length in lengths])
    batch = DataProto.from_dict(
        tensors={"token_level_rewards": last * rewards.flatten()[:, None], "response_mask": mask},
        non_tensors={"uid": np.array(["a"] * 4 + ["b"] * 4, dtype=object)},
    )
    keys = [f"{uid}_{number}_0" for number, uid in enumerate(batch.non_tensor_batch["uid"])]
    theirs = compute_advantage_for_multi_trajectories(batch, keys, "grpo").batch["advantages"]
    ours = scaled_advantages(rewards, "group").flatten()
    torch.testing.assert_close(theirs, ours[:, None] * mask, rtol=0, atol=2 * DEVIATION_EPSILON)
    losses = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    of_tokens = torch.cat([losses[row, :length] for row, length in enumerate(lengths)])
    for loss_type, aggregation in AGGREGATIONS.items():
        weights = token_weights(lengths, loss_type, replies=8, tokens=sum(lengths), max_new_tokens=6)
        theirs = agg_loss(losses, mask, aggregation, loss_scale_factor=6)
        torch.testing.assert_close((weights * of_tokens).sum(), theirs)


def verl_config(words: list[str], name: str = "ppo_trainer") -> Any:
    """verl's own configuration under the launch line's words; unknown ones are refused."""
    import verl.trainer.config  # noqa: PLC0415 - of the extra verl
    from hydra import compose, initialize_config_dir  # noqa: PLC0415

    with initialize_config_dir(str(Path(verl.trainer.config.__file__).parent), version_base=None):
        if name == "ppo_megatron_trainer":
            words = [*words, "actor_rollout_ref.actor.strategy=megatron"]
        return compose(name, overrides=words)


def test_adapters_are_asked_of_verl_too(tmp_path):
    words = overrides(GRPO, ModelConfig(path="m", max_tokens=700, lora=LoraConfig(rank=8)), tmp_path, seed=0)
    assert words["actor_rollout_ref.model.lora_rank"] == 8
    assert words["actor_rollout_ref.model.target_modules"] == "all-linear"
