# SPDX-License-Identifier: MIT
from typing import Any

import torch

import partita

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "forget"]

class Conv1d(torch.nn.Conv1d):
    def stream(self, **options: Any) -> partita.Stream: ...

class Conv2d(torch.nn.Conv2d): ...
class Conv3d(torch.nn.Conv3d): ...

class ConvTranspose1d(torch.nn.ConvTranspose1d):
    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor: ...

class ConvTranspose2d(torch.nn.ConvTranspose2d):
    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor: ...

class ConvTranspose3d(torch.nn.ConvTranspose3d):
    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor: ...

def forget(model: torch.nn.Module | torch.Tensor) -> None: ...
