"""Language models behind an OpenAI-compatible server (vLLM, llama.cpp, a cloud), without training.

    observation ─► messages.py ─► request ─► chat.py ─► reply text
                   (examples)                stored answer, or: budget ─► server.py, with retries ─► stored answer
                   formats.py (schemas)      account.py

    agent.py     the agent `prompting`           options.py   its options, and which of them decide a reply
    answers.py   an answer, and the causes of none

The key comes from the environment and goes into the request's header alone. docs/prompting.md explains how to
rank a model in five minutes.
"""
