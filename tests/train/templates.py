"""Small chat templates in our own words, one for each way in which public ones differ."""

_END = "<|im_end|>"
_ASK = "{% if add_generation_prompt %}<|assistant|>"
_FOR = "{% for m in messages %}<|{{ m.role }}|>"

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    # Qwen3: an empty think block before the last reply only; without thinking in the generation prompt too.
    "qwen3": (
        _FOR
        + "{% if m.role == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}{{ m.content }}"
        + _END
        + "{% endfor %}"
        + _ASK
        + "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
        "{% endif %}{% endif %}"
    ),
    # DeepSeek: the generation prompt opens a think block, and past replies have none.
    "opens_think": _FOR + "{{ m.content }}" + _END + "{% endfor %}" + _ASK + "<think>\n{% endif %}",
    # Nemotron: past replies have a closed block.
    "closes_think": (
        _FOR
        + "{% if m.role == 'assistant' %}<think></think>{% endif %}{{ m.content | trim }}"
        + _END
        + "{% endfor %}"
        + _ASK
        + "<think>\n{% endif %}"
    ),
    # Llama 3.2: today's date before everything, contents trimmed.
    "date": (
        "Today: {{ strftime_now('%d %b %Y') }}."
        + _FOR
        + "{{ m.content | trim }}"
        + _END
        + "{% endfor %}"
        + _ASK
        + "{% endif %}"
    ),
    # Gemma, Mistral: no system message, and strict alternation.
    "refuses_system": (
        "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant/…') }}{% endif %}"
        "<|{{ m.role }}|>\n{{ m.content }}" + _END + "{% endfor %}" + _ASK + "\n{% endif %}"
    ),
}
"""By name; each writes one special token behind a reply."""

REFUSED = {
    "drops messages": "{{ messages[-1].content }}",
    "changes replies": _FOR
    + "{{ m.content | replace('action', 'deed') }}"
    + _END
    + "{% endfor %}"
    + _ASK
    + "{% endif %}",
    "writes a header": (
        _FOR
        + "{% if m.role == 'assistant' %}to=user<|im_start|>{% endif %}{{ m.content }}"
        + _END
        + "{% endfor %}"
        + _ASK
        + "{% endif %}"
    ),
    "fails": "{{ messages[0].content.text.text }}",
}
"""Templates that cannot be right."""
