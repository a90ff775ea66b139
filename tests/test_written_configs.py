"""A misspelt key in whatever people write by hand is told with its place and with the key that was meant."""

import re

import pytest

from agents.llm_grpo.presets import load_preset
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.importers.mapped.field_mapping import load_mapping
from replay_sessions.simplify import load_recipe

STAGE = "[sft]\n[[sft.stages]]\nsteps = 3\n"
MAPPING = 'description = "x"\nsource = "y"\ntypes = {}\n'


@pytest.mark.parametrize(
    ("load", "written", "told"),
    [
        (load_preset, "sed = 3", "preset '{}': unknown key 'sed'. Did you mean 'seed'?"),
        (load_preset, "[grpo]\nstep = 3", "preset '{}': unknown key 'grpo.step'. Did you mean 'steps'?"),
        (load_preset, "[grpo.optimizer]\nlrr = 3", "key 'grpo.optimizer.lrr'. Did you mean 'lr'?"),
        (load_preset, STAGE + "stps = 3", "unknown key 'sft.stages[0].stps'. Did you mean 'steps'?"),
        (load_preset, "[reward]\ndarz = 3", "unknown key 'reward.darz'. Did you mean 'dars'?"),
        (load_mapping, MAPPING + "[page]\nqqqq = 3", "unknown key 'page.qqqq'."),
        (load_preset, "lr = 3", "unknown key 'lr'. It belongs to 'optimizer'."),
        (load_mapping, MAPPING + "[type]\na = 'click'", "'{}': unknown key 'type'. Did you mean 'types'?"),
        (load_preset, 'seed = "three"', "preset '{}': Expected `int`, got `str` - at `$.seed`"),
        (load_mapping, MAPPING + "[step]\nnmae = 'a'", "'{}': unknown key 'step.nmae'. Did you mean 'name'?"),
        (load_recipe, "[[rule]]\nselct = 'a'", "'{}': unknown key 'rule[0].selct'. Did you mean 'select'?"),
    ],
)  # fmt: skip
def test_a_misspelt_key_is_told_with_its_place_and_the_near_one(tmp_path, load, written, told):
    file = tmp_path / "x.toml"
    file.write_text(written)
    with pytest.raises(BadConfig, match=re.escape(told.format(file))):
        load(str(file))
