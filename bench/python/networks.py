#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times a training step and inference of four networks, their convolutions computed by Partita and by PyTorch in one
process, which take turns. A step is forward, backward and an update of the weights (SGD). Prints rows as the other
benchmarks do; an item is one call on the whole batch, and `check` is the relative L2 distance of the outputs, or of the
gradients of all weights, from PyTorch's in float64. Needs the package partita and PyTorch.
    bench/python/networks.py [--quick] [--threads N]     (N: 1 and 2 if it is left out)"""
import argparse
import copy
import os
import statistics
import sys
import time

sys.path = [p for p in sys.path if p != os.path.dirname(os.path.abspath(__file__))]  # its signal.py is not Python's
import torch  # noqa: E402
from torch import nn  # noqa: E402

import partita.nn  # noqa: E402

SECONDS = 4.0   # of each row at least, and at least three calls


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


NETWORKS = {
    "resnet18-32": (resnet18, (32, 3, 32, 32)),
    "convnext-block": (ConvNextBlock, (8, 192, 28, 28)),
    "depthwise-31": (large_kernels, (4, 64, 56, 56)),
    "conv1d-1024": (long_taps, (4, 16, 16384)),
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


def timed(calls, seconds):
    """Seconds of calls that take turns, so that other load on the machine meets all of them."""
    for call in calls.values():
        call()
    times = {name: [] for name in calls}
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end or len(times[next(iter(times))]) < 3:
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three calls a row")
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--network", choices=NETWORKS, action="append")
    arguments = parser.parse_args()
    print("case,contender,threads,ns_per_item,spread,p999_over_mean,bytes,check")
    for threads in arguments.threads or (1, 2):
        torch.set_num_threads(threads)
        for name in arguments.network or NETWORKS:
            run(name, threads, 0 if arguments.quick else SECONDS)


def run(name, threads, seconds):
    make, shape = NETWORKS[name]
    for case, make_call in (("train", training_step), ("infer", inference)):
        torch.manual_seed(1)
        x, theirs = torch.randn(shape), make().train(case == "train")
        ours = copy.deepcopy(theirs)
        partita.nn.replace_(ours, lambda layer: True)
        models = {"partita": ours, "torch": theirs}
        expected = result_of(copy.deepcopy(theirs).double(), x.double(), case == "train")
        checks = {who: distance(result_of(model, x, case == "train"), expected) for who, model in models.items()}
        times = timed({who: make_call(model, x) for who, model in models.items()}, seconds)
        for who, seconds_of in times.items():
            median = statistics.median(seconds_of)
            spread = (max(seconds_of) - min(seconds_of)) / median
            print(f"{name}-{case},{who},{threads},{median * 1e9:.5g},{spread:.3f},,,{checks[who]:.3g}", flush=True)


if __name__ == "__main__":
    main()
