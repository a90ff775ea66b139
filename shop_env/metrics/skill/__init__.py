"""What an agent knows of the next choice, from the probabilities that it gives to all that can be done on a page.

type_rank_prior.py    what anybody knows: which types of action are frequent, and that first things are taken first
calibration.py        whether things happen as often as they are held likely; over-sharp agents
persona_use.py        whether a person is recognised by how likely its actions are as itself
products.py           which product is clicked, and who will buy

probabilities, logged actions ─► skill_figures ─► bits saved over the prior, calibration, sharpness, hit@k
"""

from shop_env.metrics.skill.calibration import Calibration, calibration_of, sharpness
from shop_env.metrics.skill.persona_use import PersonaPicks, persona_picks, session_log_likelihoods
from shop_env.metrics.skill.products import product_hits, product_of, will_buy
from shop_env.metrics.skill.type_rank_prior import TypeRankPrior, bits_saved

__all__ = [
    "Calibration",
    "PersonaPicks",
    "TypeRankPrior",
    "bits_saved",
    "calibration_of",
    "persona_picks",
    "product_hits",
    "product_of",
    "session_log_likelihoods",
    "sharpness",
    "will_buy",
]
