"""Language models of one's own as agents: folders, GGUF files, adapters, and what cannot be loaded."""

from pathlib import Path
from typing import Any

import pytest

from agents.agent_identity import code_digest
from agents.conformance import check_agent
from agents.local.policy_agent import PolicyAgent
from agents.registry import make_agent, parse_spec
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch, PromptTooLong
from shop_env.evaluation.evaluate import evaluate
from shop_env.metrics import checked_distribution
from shop_env.observation import observe_session
from tests.agents.conftest import demo_store as demo_store
from tests.train.conftest import checkpoint_info
from tests.train.conftest import tiny as tiny
from tests.train.test_lora import LORA, moved
from tests.train.tiny_gguf import write_gguf
from train.checkpoints import save_checkpoint
from train.lora import add_adapter, save_adapter
from train.models import load_model

ASKED = "max_new_tokens=6&own_tokenizer=true&style=compact"


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory) -> Path:
    """The tiny model as anybody would save it: no checkpoint of ours."""
    path = tmp_path_factory.mktemp("models") / "tiny"
    tiny.save(path)
    return path


@pytest.fixture(scope="module")
def adapter(folder, tmp_path_factory) -> Path:
    """An adapter of it, as after some training."""
    path = tmp_path_factory.mktemp("adapters") / "moved"
    model, _ = load_model(str(folder), own_tokenizer=True)
    save_adapter(moved(add_adapter(model, LORA, seed=0)), path)
    return path


def test_a_folder_answers_as_the_same_weights_in_a_checkpoint(folder, tiny, demo_store, tmp_path):
    info = checkpoint_info(max_new_tokens=6, temperature=0.7)
    save_checkpoint(tmp_path / "checkpoint", tiny.plain_model(), tiny.tokenizer, info)
    checkpoint, as_trained = tmp_path / "checkpoint", "temperature=0.7&max_new_tokens=6"
    specs = (str(checkpoint), f"local?path={folder}&temperature=0.7&{ASKED}", f"local?path={checkpoint}&{as_trained}")
    expected, *others = [
        [record.reply for record in evaluate(make_agent(spec), demo_store, "test", sessions=2)] for spec in specs
    ]
    assert others == [expected, expected]
    assert len(set(expected)) > 1


def test_an_adapter_changes_the_replies_and_names_its_base(folder, adapter, tiny):
    def replies(arguments: str) -> Any:
        agent: Any = make_agent(f"local?{arguments}&temperature=1&{ASKED}")
        observations = observe_session(tiny.sessions[0])
        return agent.act_batch(observations, seeds=range(len(observations)))

    adapted = replies(f"path={folder}&adapter={adapter}")
    assert adapted != replies(f"path={folder}")
    assert replies(f"adapter={adapter}") == adapted


def test_an_adapter_that_training_wrote_is_asked_as_it_was_trained(folder, tiny, tmp_path):
    model, tokenizer = load_model(str(folder), own_tokenizer=True)
    info = checkpoint_info(long_pages="skip")
    save_checkpoint(tmp_path / "trained", moved(add_adapter(model, LORA, seed=0)), tokenizer, info)
    agent = make_agent(f"local?adapter={tmp_path / 'trained'}&max_new_tokens=6&max_tokens=2000")
    plain = make_agent(f"local?adapter={tmp_path / 'trained'}&max_tokens=2000&{ASKED}")
    observations = observe_session(tiny.sessions[0])
    assert [agent.act(observation) for observation in observations] == [plain.act(each) for each in observations]
    longest = max(observations, key=lambda observation: len(observation["page"]))
    with pytest.raises(PromptTooLong):
        agent.act({**longest, "page": longest["page"].replace("</a>", "</a>" + "<a name='x'>x</a>" * 2000)})


def test_a_gguf_file_is_asked_in_the_full_prompt_and_gives_probabilities(tmp_path, tiny):
    write_gguf(tmp_path / "tiny.gguf")
    seen = [{**observation, "page": "<a name='x'>x</a>"} for observation in observe_session(tiny.sessions[0])[:1]]
    agent = make_agent(f"local?path={tmp_path / 'tiny.gguf'}&max_tokens=8192&max_new_tokens=4&rationales=2")
    assert isinstance(agent, PolicyAgent)
    assert isinstance(agent.act(seen[0]), str)
    (found,) = agent.probabilities(seen, seeds=[0])
    assert not isinstance(found, Exception)
    checked_distribution(found)


def test_a_model_keeps_the_contract_of_agents(folder):
    report = check_agent(f"local?path={folder}&temperature=0.8&rationales=1&{ASKED}", sessions=1)
    assert report.passed, str(report)


def test_bfloat16_answers(folder, tiny):
    agent = make_agent(f"local?path={folder}&precision=bfloat16_autocast&{ASKED}")
    assert isinstance(agent.act(observe_session(tiny.sessions[0])[1]), str)


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ("", BadConfig, "path="),
        ("path=nowhere/at/all", CheckpointMismatch, "nowhere/at/all"),
        ("path={folder}&magic=0.5", BadConfig, "magic"),
        ("path={folder}&template_variables=1", BadConfig, "template_variables is 1"),
        ("path={folder}&max_tokens=100&max_new_tokens=100", BadConfig, "100"),
        ("path={folder}&max_new_tokens=0", BadConfig, "max_new_tokens is 0"),
        ("path={folder}&temperature=-1", BadConfig, "temperature is -1"),
        ("path={folder}&temperature=NaN", BadConfig, "temperature is nan"),
        ("path={folder}&precision=bfloat16", BadConfig, "bfloat16_autocast"),
        ("path={folder}&adapter={folder}", CheckpointMismatch, "LoRA"),
    ],
)
def test_an_error_names_the_missing_module(folder, arguments, error, name):
    with pytest.raises(error, match=name):
        make_agent(f"local?{arguments.format(folder=folder)}")


def test_an_adapter_of_another_model_is_an_error(adapter, tmp_path):
    write_gguf(tmp_path / "other.gguf")
    with pytest.raises(CheckpointMismatch):
        make_agent(f"local?path={tmp_path / 'other.gguf'}&adapter={adapter}")


def test_another_model_file_asks_a_leaderboard_anew(tmp_path):
    file = tmp_path / "model.gguf"
    spec = parse_spec(f"local?path={file}")
    digests = []
    for content in (b"one", b"other"):
        file.write_bytes(content)
        digests.append(code_digest(spec))
    assert digests[0] != digests[1]
