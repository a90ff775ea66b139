"""TRL gets our steps, in our order, our rewards and self-certainty; what needs TRL itself runs by `make test-trl`."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from agents.llm_grpo.train import main
from agents.policies import FOLDER
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch
from replay_sessions.store import SessionStore
from shop_env.replies import Reply, parse_reply
from shop_env.reward import RewardConfig, reward_preset
from shop_env.reward.score import EMPTY_RATIONALE
from shop_env.serving.tasks import StepTasks
from shop_env.versions import SCORING_VERSION
from tests.demo_stores import demo_store_at
from tests.json_files import read_json
from tests.train.adapters.test_verl import replies_to, rows_of
from tests.train.conftest import COMPACT
from tests.train.test_grpo import CONFIG
from train.adapters.steps import Scoring, order_file
from train.adapters.trl import TrlRun, action_reward, certainty_reward, planned_rows, trl_run
from train.config import LoraConfig, ModelConfig
from train.grpo.config import VLLM_IMPORTANCE_CAP
from train.loop import learning_rate
from train.tokens import rationale_tokens

GRPO = msgspec.structs.replace(CONFIG, steps_per_batch=6, steps=9)
STEPS, BATCH, REPLIES, REPLY_TOKENS = 2, 3, 4, 24


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    return demo_store_at(tmp_path_factory.mktemp("trl") / "store", 24, seed=3)


@pytest.fixture(scope="module")
def written(store, tiny, tmp_path_factory) -> Path:
    """What the command leaves for a small model on the demo shop."""
    folder = tmp_path_factory.mktemp("for") / "trl"
    model = folder.parent / "model"
    tiny.save(model)
    words = ["--preset", "tiny_cpu", "--store", str(store.path), "--model.path", str(model), "--out", str(folder)]
    words += ["--model.max-tokens", "700", "--grpo.max-new-tokens", str(REPLY_TOKENS)]
    words += ["--grpo.steps", str(STEPS), "--grpo.steps-per-batch", str(BATCH), "--grpo.num-generations", str(REPLIES)]
    assert main([*words, "--for-trl", "shop_r1"]) == 0
    return folder


def as_completions(replies: list[str]) -> list[list[dict[str, str]]]:
    return [[{"role": "assistant", "content": reply}] for reply in replies]


@pytest.mark.parametrize("reward", ["shop_r1", "binary", "customer_r1"])
def test_the_rewards_sum_to_those_of_the_env(store, reward):
    config = reward_preset(reward)
    tasks = StepTasks(store, reward=config)
    scoring = msgspec.json.encode(Scoring(reward=config, version=SCORING_VERSION)).decode()
    for index in range(0, tasks.count("all"), 7):
        replies = replies_to(tasks.score("all", index, "").logged_action)
        columns = {
            "completions": as_completions(replies),
            "ground_truth": [json.dumps(tasks.answer("all", index))] * len(replies),
            "scoring": [scoring] * len(replies),
        }
        logged: list[tuple[str, float]] = []
        of_texts = action_reward(**columns, log_metric=lambda name, value, to=logged: to.append((name, value)))
        ours = [tasks.score("all", index, reply) for reply in replies]
        assert of_texts == [each.reward for each in ours]
        for term, each in (("format", 0), ("text_similarity", 0), ("wrong_click", 1)):
            found = [value for name, value in logged if name == f"reward_{term}"]
            assert found[each] == ours[each].reward_breakdown[term]
        assert [value for name, value in logged if name == "exact_match"] == [
            float(bool(each.exact_match)) for each in ours
        ]
        measured = [None if parse_reply(reply).__class__ is not Reply else 21.5 for reply in replies]
        added = certainty_reward(**columns, self_certainty=measured)
        for gained, certainty in zip(added, measured, strict=True):
            assert gained == pytest.approx(0.0 if certainty is None else config.self_certainty_weight * 21.5)


def test_the_command_writes_the_phase_by_trls_names_and_its_rows_in_our_order(written):
    run = msgspec.json.decode((written / "trl.json").read_bytes(), type=TrlRun)
    assert (run.rows, run.arguments["max_steps"], run.arguments["num_generations"]) == (BATCH * REPLIES, STEPS, REPLIES)
    assert run.arguments["max_completion_length"] == REPLY_TOKENS
    assert run.arguments["learning_rate"] == run.optimizer.lr
    rows, order = rows_of(written / "train.parquet"), json.loads(order_file(written / "train.parquet").read_text())
    planned = planned_rows(written / "train.parquet")
    assert len(planned) == len(order) == STEPS * BATCH
    for place, row in zip(order, planned, strict=True):
        assert row["prompt"] == rows[place]["prompt"]
        assert (row["session_id"], row["step"]) == tuple(
            rows[place]["extra_info"][key] for key in ("session_id", "step")
        )
        assert row["ground_truth"] == rows[place]["reward_model"]["ground_truth"]
    assert not (written / "validation.parquet").exists()


@pytest.mark.parametrize("flag", ["--for-trl", "--for-verl"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sft"], "sft: there is no such phase of GRPO. Known: shop_r1."),
        (["shop_r1"], " needs a model that others can load"),
        (["shop_r1", "--model.path", str(FOLDER / "sft")], "other trainers take batches of single steps"),
    ],
)
def test_phases_that_other_trainers_cannot_run_are_refused(flag, words, message, store, tmp_path, capsys):
    assert main(["--store", str(store.path), "--out", str(tmp_path / "out"), flag, *words]) == 2
    assert message in capsys.readouterr().err


def test_a_cap_on_importance_is_asked_of_trl_too(tmp_path):
    model = ModelConfig(
        path="m",
        max_tokens=700,
        precision="bfloat16_autocast",
        gradient_checkpointing=True,
        lora=LoraConfig(rank=8),
    )
    changed = msgspec.structs.replace(GRPO, importance_sampling_cap=2.0, num_iterations=3)
    capped = trl_run(changed, model, tmp_path, seed=0).arguments
    assert capped["save_steps"] % 3 == 0  # TRL resumes with the first update on a batch
    assert capped["vllm_importance_sampling_correction"] and capped["vllm_importance_sampling_clip_max"] == 2.0
    run = trl_run(GRPO, model, tmp_path, seed=0)
    assert run.arguments["vllm_importance_sampling_clip_max"] == VLLM_IMPORTANCE_CAP
    assert run.lora is not None and run.lora.rank == 8
    assert run.arguments["bf16"] and run.arguments["gradient_checkpointing"]


def trainer_of(folder: Path, out: Path, words: list[str], **options: Any) -> Any:
    from train.adapters.trl_trainer import make_trainer  # noqa: PLC0415 - of the extra trl

    words = [*words, f"output_dir={out}", "use_cpu=true", "save_strategy=no", "per_device_train_batch_size=4"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_trainer(folder, words, **options)


def watched(trainer: Any) -> list[tuple[list[Any], Any]]:
    """What TRL asks and is told, batch after batch: (row, reply, tokens) of each, and the rewards."""
    seen: list[tuple[list[Any], Any]] = []
    calculate = trainer._calculate_rewards

    def watching(inputs: list[Any], prompts: Any, completions: list[Any], ids: Any) -> Any:
        rewards = calculate(inputs, prompts, completions, ids)
        seen.append((list(zip(inputs, completions, ids, strict=True)), rewards))
        return rewards

    trainer._calculate_rewards = watching
    return seen


def assert_the_envs(seen: list[tuple[list[Any], Any]], store: SessionStore) -> None:
    """The rewards of texts are those of the env on the same steps."""
    tasks = StepTasks(store, prompt=COMPACT)
    places = {tasks.step_of("train", index).task_id: index for index in range(tasks.count("train"))}
    for rows, rewards in seen:
        for (given, completion, _), earned in zip(rows, rewards, strict=True):
            place = places[f"{given['session_id']}#{given['step']}"]
            assert earned[0].item() == pytest.approx(tasks.score("train", place, completion[0]["content"]).reward)


@pytest.mark.trl
@pytest.mark.filterwarnings("ignore")
def test_trl_takes_two_steps_with_replies_of_its_own_in_our_order(written, store, tmp_path):
    trainer = trainer_of(written, tmp_path, [])
    seen = watched(trainer)
    trainer.train()
    assert trainer.state.global_step == STEPS
    assert_the_envs(seen, store)
    planned = planned_rows(written / "train.parquet")
    taken = [(given["session_id"], given["step"]) for rows, _ in seen for given, _, _ in rows]
    assert taken == [(row["session_id"], row["step"]) for row in planned for _ in range(REPLIES)]
    run = msgspec.json.decode((written / "trl.json").read_bytes(), type=TrlRun)
    of_steps = trainer.lr_scheduler.lr_lambdas[0]  # the same for all parameters
    wanted = [learning_rate(step, STEPS, run.optimizer) / run.optimizer.lr for step in range(STEPS)]
    assert [of_steps(step) for step in range(STEPS)] == wanted


@pytest.mark.trl
@pytest.mark.filterwarnings("ignore")
def test_trl_learns_from_the_envs_rewards_and_self_certainty(written, store, tiny, tmp_path):
    rows = {json.dumps(row["prompt"], sort_keys=True): row for row in planned_rows(written / "train.parquet")}

    def replies(prompts: list[Any], _trainer: Any) -> dict[str, Any]:
        """For each prompt, which comes once for each reply: the logged reply, a wrong one, and some without sense."""
        prompt_ids, reply_ids = [], []
        for number, prompt in enumerate(prompts):
            logged = (
                f'{{"rationale": "I like it", "action": {rows[json.dumps(prompt, sort_keys=True)]["ground_truth"]}}}'
            )
            wrong = '{"rationale": "enough", "action": {"type": "click", "name": "elsewhere"}}'
            text = {0: logged, 1: wrong}.get(number % REPLIES, "I leave.")
            prompt_ids.append(tiny.tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=False))
            reply_ids.append(tiny.tokenizer(text, add_special_tokens=False)["input_ids"])
        return {"prompt_ids": prompt_ids, "completion_ids": reply_ids, "logprobs": None}

    trainer = trainer_of(written, tmp_path, ["learning_rate=1e-2"], rollout_func=replies)
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    seen = watched(trainer)
    trainer.train()
    assert_the_envs(seen, store)
    for _, rewards in seen:
        of_group = rewards.view(-1, REPLIES, 2)
        assert (of_group[:, 0, 0] > of_group[:, 2, 0]).all()
        assert (of_group[:, :2, 1] > 0).all() and (of_group[:, 2:] == 0).all()
    assert any(not before[name].equal(value) for name, value in trainer.model.state_dict().items())


@pytest.mark.trl
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("definition", ["kl_uniform_policy", "kl_policy_uniform", "eq3"])
def test_self_certainty_is_that_of_plain_rows(written, tiny, tmp_path, definition):
    trainer = trainer_of(written, tmp_path, [])
    row = planned_rows(written / "train.parquet")[0]
    texts = [
        '{"rationale": "I like red ones", "action": {"type": "terminate"}}',
        "no reply",
        '{"rationale": "", "action": {"type": "terminate"}}',
    ]
    ids = [tiny.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    found = trainer.self_certainties([row["prompt"]] * 3, as_completions(texts), ids, definition)
    prompt = tiny.tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, return_dict=False)
    reply = parse_reply(texts[0])
    assert isinstance(reply, Reply)
    first, end = rationale_tokens(tiny.tokenizer, ids[0], reply.rationale_span)
    vocabulary = trainer.model.config.vocab_size
    with torch.no_grad():
        logits = tiny.plain_model()(torch.tensor([[*prompt, *ids[0]]])).logits[0, len(prompt) - 1 : -1].double()
    probabilities = torch.softmax(logits, dim=-1)[first:end]
    of_uniform = -torch.log(probabilities * vocabulary).mean(dim=-1)
    of_policy = (probabilities * torch.log(probabilities * vocabulary)).sum(dim=-1)
    wanted = {"kl_uniform_policy": of_uniform, "kl_policy_uniform": of_policy, "eq3": of_policy / vocabulary}
    assert found[0] == pytest.approx(wanted[definition].mean().item(), rel=1e-4)
    assert found[1:] == [None, EMPTY_RATIONALE]


@pytest.mark.trl
@pytest.mark.filterwarnings("ignore")
def test_groups_of_equal_rewards_get_no_advantage(written, tiny, tmp_path):
    rows = planned_rows(written / "train.parquet")[:2]
    inputs = [row for row in rows for _ in range(REPLIES)]
    action = '"action": {"type": "terminate"}'
    equal = [f'{{"rationale": "{why}", {action}}}' for why in ("a", "red", "is it", "because")]
    texts = [*equal, *equal[:3], "no reply"]
    ids = [tiny.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    trainer = trainer_of(written, tmp_path, [])
    trainer.model.train()
    prompts = [row["prompt"] for row in inputs]
    rewards = trainer._calculate_rewards(inputs, prompts, as_completions(texts), ids)
    assert (rewards[:REPLIES, 1] == 0).all()
    kept = rewards[REPLIES:]
    measured = trainer.self_certainties(
        prompts[REPLIES:], as_completions(texts[REPLIES:]), ids[REPLIES:], "kl_uniform_policy"
    )
    weight = RewardConfig().self_certainty_weight
    assert kept[:, 1].tolist() == pytest.approx([weight * (each or 0.0) for each in measured], rel=1e-4)
    trainer._filter_zero_variance = False
    assert (trainer._calculate_rewards(inputs, prompts, as_completions(texts), ids)[:REPLIES, 1] > 0).all()


@pytest.mark.trl
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["use_vllm"], "'use_vllm' is no KEY=VALUE"),
        (["learning_rat=1"], "trl.GRPOConfig: .*learning_rat"),
        (["per_device_train_batch_size=5"], "12 replies make a batch, which 1 processes with per_device"),
    ],
)
def test_wrong_words_are_told(written, words, message):
    from train.adapters.trl_trainer import make_trainer  # noqa: PLC0415 - of the extra trl

    with pytest.raises(BadConfig, match=message):
        make_trainer(written, words)
    with pytest.raises(CheckpointMismatch, match=r"holds no trl\.json; write it by shop-r1 train"):
        make_trainer(written.parent, words)


@pytest.mark.trl
@pytest.mark.filterwarnings("ignore")
def test_the_command_leaves_a_model_and_a_stopped_run_goes_on_from_its_last_checkpoint(written, tmp_path, capsys):
    from train.adapters.trl_train import main as train  # noqa: PLC0415 - beside what needs the extra trl

    folder = shutil.copytree(written, tmp_path / "run")
    words = ["use_cpu=true", "per_device_train_batch_size=4", "save_steps=1", f"output_dir={tmp_path / 'checkpoints'}"]
    assert train([str(folder), *words, "max_steps=1"]) == 0
    assert sorted(found.name for found in (tmp_path / "checkpoints").glob("checkpoint-*")) == ["checkpoint-1"]
    assert train([str(folder), *words]) == 0
    state = read_json(tmp_path / "checkpoints" / "checkpoint-2" / "trainer_state.json")
    assert state["global_step"] == STEPS and len([row for row in state["log_history"] if "reward" in row]) == STEPS
    assert (folder / "model" / "model.safetensors").exists()
    assert train([str(tmp_path), "use_cpu=true"]) == 2
    assert "holds no trl.json" in capsys.readouterr().err
