# SPDX-License-Identifier: MIT
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, Parameter

from . import functional as functional
from . import testing as testing
from ._report import Report
from .modules import Conv1d as Conv1d
from .modules import Conv2d as Conv2d
from .modules import Conv3d as Conv3d
from .modules import ConvTranspose1d as ConvTranspose1d
from .modules import ConvTranspose2d as ConvTranspose2d
from .modules import ConvTranspose3d as ConvTranspose3d
from .modules import forget as forget

__all__ = ["CausalLongConv", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
           "DecodeState", "causal_conv1d", "causal_conv1d_update", "forget", "functional", "long_conv", "replace_",
           "restore_", "set_cache_limit", "set_saved_memory", "testing"]

class CausalLongConv(Module):
    taps: Parameter
    D: Parameter | None
    def __init__(
        self,
        channels: int,
        n_taps: int,
        groups: int | None = None,
        skip: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...
    def decode(self, sequences: int = 1, **options: Any) -> DecodeState: ...
    def extra_repr(self) -> str: ...

class DecodeState:
    channels: int
    dtype: torch.dtype
    nbytes: int
    def __init__(
        self,
        taps: Tensor,
        sequences: int = 1,
        *,
        max_frames: int | None = None,
        rewind: int = 0,
        dtype: torch.dtype | None = None,
        threads: int | None = None,
    ) -> None: ...
    @staticmethod
    def memory(
        channels: int,
        n_taps: int,
        sequences: int = 1,
        *,
        max_frames: int | None = None,
        rewind: int = 0,
        dtype: torch.dtype = ...,
    ) -> int: ...
    def join(self) -> int: ...
    def clone(self, slot: int) -> int: ...
    def drop(self, slot: int) -> None: ...
    def rewind(self, slot: int, n: int) -> None: ...
    def position(self, slot: int) -> int: ...
    def prefill(self, slot: int, x: Tensor) -> Tensor: ...
    def step(self, x: Tensor, slots: Iterable[int] | None = None) -> Tensor: ...

def causal_conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | bool | None = None,
    initial_states: Tensor | None = None,
    return_final_states: bool = False,
    seq_idx: Tensor | None = None,
    final_states_out: Tensor | None = None,
    *,
    query_start_loc: Tensor | None = None,
    cache_indices: Tensor | None = None,
    has_initial_state: Tensor | None = None,
    conv_states: Tensor | None = None,
    pad_slot_id: int = -1,
) -> Any: ...
def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | bool | None = None,
    cache_seqlens: Tensor | None = None,
    conv_state_indices: Tensor | None = None,
    *,
    cache_indices: Tensor | None = None,
    pad_slot_id: int = -1,
) -> Tensor: ...
def long_conv(x: Tensor, taps: Tensor, D: Tensor | None = None) -> Tensor: ...
def replace_(
    model: Module, example_input: Any = None, *, train: bool | None = None, where: Callable[[Any], bool] | None = None
) -> Report: ...
def restore_(model: Module, where: Callable[[Any], bool] = ...) -> list[str]: ...
def set_cache_limit(n_bytes: int | None) -> None: ...
def set_saved_memory(n_bytes: int) -> None: ...
