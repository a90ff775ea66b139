"""Language models behind an OpenAI-compatible server (vLLM, llama.cpp, a cloud), without training.

    observation ─► messages.py ─► agent.py ─► chat.py (the openai client) ─► reply text
                   formats.py

    options.py   the agent's options, and the options that decide a reply

The key comes from the environment and is only written into the request's header. docs/prompting.md explains how to rank
a model in five minutes.
"""
