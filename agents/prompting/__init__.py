"""Language models behind an OpenAI-compatible server (vLLM, llama.cpp, a cloud), asked without training them.

    observation ─► messages.py ─► request ─► chat.py ─► reply text
                   examples.py (shots)       kept answer, or: budget ─► server.py, tried again ─► kept answer
                   choice.py (numbered)      account.py                 failures.py

    agent.py     the agent `prompting`           options.py   all it can be told, and what of that decides a reply
    formats.py   schemas for guided decoding     prices.py    tokens and money, and the most that a request can cost

The key comes from the environment and goes into the request's header alone. docs/prompting.md says how to
rank a model in five minutes.
"""
