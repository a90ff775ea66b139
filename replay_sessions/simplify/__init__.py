"""Simplifies raw pages: keeps what a shopper sees, and names every element that can be clicked or typed into.

This is the first step of the flow: it takes the raw pages of logs (`importers.raw`) and returns what the papers call
simplified HTML (Shop-R1, section 3.1; appendix A shows an example). Lexbor parses the page as a browser does, and one
walk writes the simplified page. Then private data is removed, and names are derived from titles and labels.

    shop-r1 show page.html --recipe amazon
"""

from replay_sessions.simplify.page import SimplifiedPage, simplify
from replay_sessions.simplify.recipes import Recipe, load_recipe

__all__ = ["Recipe", "SimplifiedPage", "load_recipe", "simplify"]
