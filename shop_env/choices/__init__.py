"""Reads an observation as the choices that a shopper has on its page, which fitted agents learn from.

reader.py    TrainView ─► Reader; observation ─► ChoicePage of choices with roles and traits
offers.py    page ─► the offers of its elements: price, rating, stock
facts.py     choices and offers ─► each choice with its facts
"""
