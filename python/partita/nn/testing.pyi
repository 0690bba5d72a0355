# SPDX-License-Identifier: MIT
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["dispatch_mode"]

class dispatch_mode(TorchDispatchMode):
    def __init__(self) -> None: ...
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any: ...
    def counts(self) -> dict[str, dict[str, int] | dict[tuple[str, str], int]]: ...
