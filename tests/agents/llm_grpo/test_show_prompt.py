"""--show-prompt: what a policy is shown, without a model; persona and goal stand where the papers have them."""

import pytest

from agents.llm_grpo.presets import load_preset, preset_names, rows_names
from agents.llm_grpo.show_prompt import show_prompt
from agents.llm_grpo.train import main
from replay_sessions.store import SessionStore
from tests.processes import run_python

PAPERS = [name for name in preset_names() if name.startswith(("shop_r1", "customer_r1"))]


@pytest.mark.parametrize("preset", PAPERS)
def test_the_messages_of_the_first_scored_step_and_nothing_else(preset, capsys):
    assert main(["--preset", preset, "--store", "demo", "--show-prompt"]) == 0
    shown = capsys.readouterr().out
    session = next(iter(SessionStore.open("demo").sessions("train")))
    roles = [line for line in shown.splitlines() if line.startswith("=== ")]
    assert roles == ["=== system", "=== user", "=== assistant", "=== user"] and shown.startswith(roles[0])
    assert shown.endswith(f"=== user\n{session.steps[1].page}\n")
    assert session.persona is not None and session.goal is not None
    assert (session.persona.text in shown) == preset.startswith("customer_r1")
    assert session.goal not in shown


def test_the_prompt_of_rl_has_no_rationales_in_its_history():
    config = load_preset("shop_r1_3b")
    first, rl = ("".join(show_prompt(config, only)) for only in ((), ("shop_r1",)))
    rationale = next(iter(SessionStore.open(config.store).sessions("train"))).steps[0].rationale
    assert rationale and rationale in first and rationale not in rl


def test_it_loads_no_model_library():
    code = (
        "import sys; from agents.llm_grpo.train import main; main(['--show-prompt']); sys.exit('torch' in sys.modules)"
    )
    assert run_python("-c", code).returncode == 0


@pytest.mark.parametrize("preset", [name for name in preset_names() if name != "pointer_cpu"])  # it reads no prompt
@pytest.mark.parametrize("rows", [None, *rows_names()])
def test_paper_rows_have_their_context_and_instructions(preset, rows):
    config = load_preset(preset, rows)
    is_small = config.prompt.style == "compact"
    assert is_small == (config.model.path is None)
    paper = (rows if rows and "_r1_" in rows else preset).partition("_r1")[0]
    if paper in ("shop", "customer"):
        assert config.context.persona == {"shop": "none", "customer": "matched"}[paper]
        assert is_small or config.prompt.style == f"{paper}_r1"
    assert {config.context.goal, *(phase.context.goal for phase in config.phases.values())} == {"hidden"}


def test_a_pointer_has_no_prompt(capsys):
    assert main(["--preset", "pointer_cpu", "--show-prompt"]) == 2
    assert "reads the page's elements and no prompt" in capsys.readouterr().err.replace("\n", " ")
