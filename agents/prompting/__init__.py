"""Language models behind an OpenAI-compatible server (vLLM, llama.cpp, a cloud), without training.

    observation ─► agent.py ─► request ─► chat.py ─► reply text
                   formats.py            stored answer, or: budget ─► server.py, with retries ─► stored answer
                                         account.py

    options.py   the agent's options, and which of them decide a reply
    answers.py   an answer, and the causes of none

The key comes from the environment and goes into the request's header alone. docs/prompting.md explains how to
rank a model in five minutes.
"""
