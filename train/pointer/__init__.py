"""`pointer`: a network that scores the page's own elements, without tokens.

encoding.py    sessions ─► words, categories and numbers of choices, steps and past actions
arrays.py      these as arrays, and batches of sessions as tensors
network.py     past actions ─► GRU ─► query; query and each choice ─► score
fit.py         cross-entropy over the choices of a page
"""
