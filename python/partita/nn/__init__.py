# SPDX-License-Identifier: MIT
"""Layers of PyTorch that Partita computes: `partita.nn.replace_(model)`, or the layers and functions by name."""
from . import functional, testing
from ._cache import set_cache_limit
from ._decode import DecodeState
from ._long_conv import CausalLongConv, long_conv
from ._replace import replace_, restore_
from ._sequence import causal_conv1d, causal_conv1d_update
from ._steps import set_saved_memory
from .modules import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, forget

__all__ = ["CausalLongConv", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
           "DecodeState", "causal_conv1d", "causal_conv1d_update", "forget", "functional", "long_conv", "replace_",
           "restore_", "set_cache_limit", "set_saved_memory", "testing"]
