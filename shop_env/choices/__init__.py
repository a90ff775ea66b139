"""What a shopper can do on a page: an observation as choices, which fitted agents learn from.

reader.py    TrainView ─► Reader; observation ─► ChoicePage of choices with roles and traits
offers.py    page ─► the offers of its elements: price, rating, stock
facts.py     choices and offers ─► each choice with its facts
"""
