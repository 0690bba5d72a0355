#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The process of torch.c: loads layers and samples and answers each line on stdin with one number on stdout.

    torch_server.py FOLDER THREADS first|last GY      GY: bytes in front of gy in the file x

load: reads the operands, answers 0; run: seconds of one step; write: writes the results of the last step into the
folder, answers 0. A step is forward of all layers and, if there are gradients, both of all layers in reverse order, in
one call of each layer as autograd makes it. With "last" the arrays lie channels last."""
import ctypes
import sys
import time

import numpy as np
import torch

FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT = 1, 2, 4  # enum partita_direction
M_MMAP_THRESHOLD, M_TRIM_THRESHOLD = -3, -1        # of mallopt


class Layer:
    """The parts of one row of the network."""

    def __init__(self, words, samples):
        self.depth, rank, batch, channels_in, channels_out, groups, kernel, stride, size, pad = words
        self.rest = [stride] * rank, [pad] * rank, [1] * rank, groups
        self.convolve = torch.nn.functional.conv1d if rank == 1 else torch.nn.functional.conv2d
        self.x = samples("x", 0, batch, channels_in, *[size] * rank)
        self.w = samples("h", 0, channels_out, channels_in // groups, *[kernel] * rank)
        self.gy_shape = [batch, channels_out] + [(size + 2 * pad - kernel) // stride + 1] * rank
        self.gy, self.wanted, self.results = None, [False, False, False], {}

    def add_gradient(self, direction, samples, at):
        self.gy = samples("x", at, *self.gy_shape)
        self.wanted[direction == BACKWARD_WEIGHT] = True

    def forward(self):
        stride, pad, dilation, groups = self.rest
        for _ in range(self.depth):
            self.results[FORWARD] = self.convolve(self.x, self.w, None, stride, pad, dilation, groups)

    def backward(self):
        stride, pad, dilation, groups = self.rest
        for _ in range(self.depth):
            gx, gw, _ = torch.ops.aten.convolution_backward(
                self.gy, self.x, self.w, None, stride, pad, dilation, False, [0] * len(stride), groups, self.wanted)
            self.results[BACKWARD_DATA], self.results[BACKWARD_WEIGHT] = gx, gw


def load(folder, last, gy):
    """The layers, and (layer, direction) of each part."""
    files = {name: torch.from_numpy(np.fromfile(f"{folder}/{name}", np.float32)) for name in ("x", "h")}

    def samples(name, at, *shape):
        count = 1
        for extent in shape:
            count *= extent
        t = files[name][at:at + count].view(shape)
        return t.contiguous(memory_format=torch.channels_last) if last else t

    layers, parts = [], []
    for line in open(folder + "/parts"):
        direction, *words = (int(word) for word in line.split())
        if direction == FORWARD:
            layers.append(Layer(words, samples))
        else:
            layers[-1].add_gradient(direction, samples, gy // 4)
        parts.append((layers[-1], direction))
    return layers, parts


def step(layers):
    for layer in layers:
        layer.forward()
    for layer in reversed(layers):
        if layer.gy is not None:
            layer.backward()


def main():
    folder, threads, layout, gy = sys.argv[1:]
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
    libc.mallopt(M_TRIM_THRESHOLD, 1 << 30)
    torch.set_num_threads(int(threads))
    layers = parts = None
    for line in sys.stdin:
        command, answer = line.strip(), 0
        with torch.no_grad():
            if command == "load":
                layers, parts = load(folder, layout == "last", int(gy))
                step(layers)
            elif command == "run":
                start = time.perf_counter()
                step(layers)
                answer = time.perf_counter() - start
            elif command == "write":
                with open(folder + "/y", "wb") as file:
                    for layer, direction in parts:
                        file.write(layer.results[direction].contiguous().numpy().tobytes())
        print(answer, flush=True)


main()
