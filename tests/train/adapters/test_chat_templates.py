"""Every chat template that TRL carries trains on the prompts that it asks with, or is refused by one line."""

import copy
import re
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest

from replay_sessions.foundation.errors import BadConfig
from shop_env.observation import ContextConfig, observe_session
from shop_env.prompts import PromptConfig, merge_system, render_prompt
from tests.train.conftest import tiny as tiny
from train.chat_template import bind_template, check_template
from train.contract import check_contract
from train.tokens import fit_prompt, tokenize_session

pytestmark = pytest.mark.trl

# Without a space, so that markup of pages and tools is none.
SPECIAL = re.compile(
    r"<\|[^|>'\s]+\|>|<｜[^｜>]+｜>|<(?:start_of_turn|end_of_turn|bos|eos|turn\||\|turn|end_of_utterance)>|</?s>"
)
# Messages as lists of parts (models that read pictures); no token of their own behind a reply; a header before a reply.
REFUSED = {"idefics3", "llava_next", "smolvlm", "glm4moe", "gptoss", "muse_glimmer"}
VARIABLES: list[dict[str, Any]] = [{}, {"enable_thinking": False}, {"enable_thinking": True}]


def test_every_template_of_trl_trains_as_it_asks_or_is_refused(tiny):
    counts: Counter[str] = Counter()
    prompt, session = PromptConfig(), tiny.sessions[0]
    for file in (files("trl") / "chat_templates").iterdir():
        if not file.name.endswith(".jinja"):
            continue
        name = file.name.removesuffix(".jinja").removesuffix("_training")
        text = file.read_text(encoding="utf-8")
        for variables in VARIABLES if "enable_thinking" in text else VARIABLES[:1]:
            tokenizer = copy.deepcopy(tiny.tokenizer)
            tokenizer.add_special_tokens({"additional_special_tokens": sorted(set(SPECIAL.findall(text)))})
            tokenizer.bos_token, tokenizer.chat_template = "<|im_start|>", text
            bind_template(tokenizer, variables, "2026-11-29")
            try:
                check_template(tokenizer)
                check_contract(tokenizer, [session], ContextConfig(), prompt)
            except BadConfig as error:
                assert name in REFUSED, f"{file.name}: {error}"
                assert "chat template" in str(error) and "\n" not in str(error)
                counts["refused"] += not variables
                continue
            counts["accepted"] += not variables
            trunks = tokenize_session(tokenizer, session, ContextConfig(), prompt, 10**6)
            trained = {reply.step_index: trunk.tokens[: reply.start] for trunk in trunks for reply in trunk.replies}
            for step, observation in enumerate(observe_session(session)):
                fitted = fit_prompt(tokenizer, observation, prompt, 10**6)
                assert fitted is not None and trained[step] == fitted.tokens
                messages = render_prompt(observation, prompt)
                if name == "gemma":
                    messages = merge_system(messages)
                asked = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
                assert tokenizer.decode(fitted.tokens) == asked, (file.name, variables)
    assert counts == {"accepted": 61, "refused": 11}  # of TRL 1.16.0
