"""Raw page -> simplified page: what a shopper sees of it, with a name on everything that can be clicked or typed into.

The first step of the flow: raw logs come in here (`importers.raw`), and what comes out is what the papers call
simplified HTML (Shop-R1, section 3.1; appendix A shows one). Lexbor parses the page as a browser does; one walk writes
it out; names are given when all titles are known; private data is taken out before names are made from it.

    shop-r1 show page.html --recipe amazon
"""

from replay_sessions.simplify.page import SimplifiedPage, simplify
from replay_sessions.simplify.recipes import Recipe, load_recipe

__all__ = ["Recipe", "SimplifiedPage", "load_recipe", "simplify"]
