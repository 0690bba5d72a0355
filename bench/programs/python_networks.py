#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times training steps and inference of networks whose convolutions Partita and PyTorch compute, in one process, in
turns. A step is forward, backward and an update of the weights (SGD). In the cases ...-last the tensors lie channels
last. Prints rows as the other benchmarks do; an item is one call on the whole batch, and `check` is the relative L2
distance of the outputs, or of the gradients of all weights, from PyTorch's in float64.

    bench/programs/python_networks.py [--quick] [--case PATTERN]      (with the package and PyTorch installed)"""
import argparse
import copy
import fnmatch
import sys

import rows
import torch
from torch import nn

import partita.nn

SECONDS = 4.0  # of each contender at least, and at least three calls
# Errors of float32 through some 20 layers are below 1e-4; a wrong tap or channel changes results by more than this.
LARGEST_ERROR = 1e-3
# Gradients of deep networks differ more: a sample whose sign is lost in rounding passes ReLU or does not, with any
# library. Winograd's rounding errors are up to five times those of direct sums (docs/decisions/0014-winograd.md).
LARGEST_TIMES_TORCH = 10


class Residual(nn.Module):
    """Two layers of ResNet-18 beside a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return (self.layers(x) + self.shortcut(x)).relu()


def resnet18():
    """ResNet-18 for images of 32 x 32: no stride in the first layer and no pooling after it."""
    blocks, inputs = [], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Residual(inputs, outputs, stride), Residual(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class ConvNextBlock(nn.Module):
    """A block of ConvNeXt-T's second stage; its products of channels are matrix products."""

    def __init__(self, channels=192):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.wide = nn.Linear(channels, 4 * channels)
        self.narrow = nn.Linear(4 * channels, channels)

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.narrow(nn.functional.gelu(self.wide(y))).permute(0, 3, 1, 2)


def large_kernels():
    return nn.Sequential(*(layer for _ in range(2) for layer in (
        nn.Conv2d(64, 64, 31, padding=15, groups=64), nn.GELU(), nn.Conv2d(64, 64, 1), nn.GELU())))


def long_taps():
    return nn.Sequential(nn.Conv1d(16, 16, 1024, padding="same", groups=16), nn.GELU(), nn.Conv1d(16, 16, 1),
                         nn.GELU(), nn.Conv1d(16, 16, 1024, padding="same", groups=16))


def vgg_like():
    """Six layers of 3 x 3 taps as those of VGG, for images of 64 x 64."""
    layers, inputs = [], 3
    for outputs in (64, 128, 256):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1),
                   nn.ReLU(), nn.MaxPool2d(2)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


def small_layer():
    """A layer that takes no longer than the call of its operator."""
    return nn.Conv2d(8, 8, 3, padding=1)


NETWORKS = {
    "vgg-like": (vgg_like, (8, 3, 64, 64)),
    "resnet18-32": (resnet18, (32, 3, 32, 32)),
    "convnext-block": (ConvNextBlock, (8, 192, 28, 28)),
    "depthwise-31": (large_kernels, (4, 64, 56, 56)),
    "conv1d-1024": (long_taps, (4, 16, 16384)),
    "small-layer": (small_layer, (1, 8, 16, 16)),
}


def training_step(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return step


def inference(model, x):
    def run():
        with torch.no_grad():
            return model(x)
    return run


KINDS = {"train": training_step, "infer": inference, "infer-last": inference}


def distance(result, expected):
    return float(torch.linalg.vector_norm(result.double() - expected) / torch.linalg.vector_norm(expected))


def result_of(model, x, train):
    """What is compared: outputs, or the gradients of all weights in one vector."""
    model = copy.deepcopy(model)
    if not train:
        with torch.no_grad():
            return model(x)
    model(x).square().mean().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def channels_last(t):
    """Signals have no such format of their own: theirs are views of memory in that order."""
    return t.to(memory_format=torch.channels_last) if t.dim() == 4 else t.mT.contiguous().mT


def measure(case, kind, make, shape, quick):
    """Prints the rows of one network."""
    train = kind == "train"
    torch.manual_seed(1)
    x, theirs = torch.randn(shape), make().train(train)
    expected = result_of(copy.deepcopy(theirs).double(), x.double(), train)
    if kind == "infer-last":
        x, theirs = channels_last(x), theirs.to(memory_format=torch.channels_last)
    ours = copy.deepcopy(theirs)
    partita.nn.replace_(ours, where=lambda layer: True)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        models = {"partita": copy.deepcopy(ours), "torch": copy.deepcopy(theirs)}  # the calls below train them
        errors = {who: distance(result_of(model, x, train), expected) for who, model in models.items()}
        if not errors["partita"] <= max(LARGEST_ERROR, LARGEST_TIMES_TORCH * errors["torch"]):
            sys.exit(f"{case}: errors {errors}")
        calls = {who: KINDS[kind](model, x) for who, model in models.items()}
        for call in calls.values():
            call()
        for who, times in rows.interleaved(calls, seconds=0 if quick else SECONDS * len(calls)).items():
            rows.print_row(case, who, threads, times, errors[who])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three calls a row")
    parser.add_argument("--case", default="*")
    arguments = parser.parse_args()
    print(rows.HEADER)
    for name, (make, shape) in NETWORKS.items():
        for kind in KINDS:
            case = f"network-{name}-{kind}"
            if fnmatch.fnmatch(case, arguments.case):
                measure(case, kind, make, shape, arguments.quick)


main()
