"""Whether a failure of torch means that memory ran out, of a GPU or of the machine.

Only GPUs have an exception of their own for it; the allocator of the CPU says so in the text of a `RuntimeError`, in
words that depend on the system. Whoever runs a pass asks here and names the setting that makes the pass smaller.
"""

from __future__ import annotations

import torch

_ALLOCATOR = "DefaultCPUAllocator"
_WORDS = ("can't allocate memory", "not enough memory", "out of memory")


def out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and (_ALLOCATOR in text or any(words in text for words in _WORDS))
