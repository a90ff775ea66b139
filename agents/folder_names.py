"""What a user called something, as the name of a file or folder."""

import hashlib
import re

__all__ = ["folder_name"]


def folder_name(label: str) -> str:
    """A folder name that says the label; where characters had to go, a digest keeps labels apart.

    >>> folder_name("copy_match"), folder_name("runs/sft?temperature=0")
    ('copy_match', 'runs_sft_temperature_0-5eb66b')
    """
    cleaned = re.sub(r"[^\w.-]+", "_", label).strip(".") or "agent"
    if cleaned == label and len(label) <= 80:
        return cleaned
    return f"{cleaned[:80]}-{hashlib.blake2b(label.encode(), digest_size=3).hexdigest()}"
