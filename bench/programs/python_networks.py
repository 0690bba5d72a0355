#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times training steps and inference of networks of networks.py, in one process, in turns: PyTorch's, and the same
after `partita.nn.replace_(model, x)`, which takes layers that are faster. A step is forward, backward and an update of
the weights (SGD). In the cases ...-last the tensors lie channels last; in ...-autocast PyTorch computes layers in
bfloat16. Prints rows as the other benchmarks do; an item is one call on the whole batch, and `check` is the relative L2
distance of the outputs, or of the gradients of all weights, from PyTorch's in float64.

    bench/programs/python_networks.py [--quick] [--case PATTERN]

With the package, PyTorch, torchvision and timm installed. Cases: network-NAME-KIND, and zoo-NAME-KIND with one thread."""
import argparse
import contextlib
import copy
import fnmatch
import os
import sys
import tempfile

import networks
import rows
import torch

import partita.nn

SECONDS = 2.0  # of each contender at least, and at least three calls
# Errors of float32 through some 20 layers are below 1e-4, and those of bfloat16 below 1e-1; a wrong tap or channel
# changes results by more than this. Gradients differ more: a sample whose sign is lost in rounding passes ReLU or does
# not, with any library. Of one image, one such sample in VGG-11 changes all gradients before it by 0.001 to 0.008.
LARGEST_ERROR, LARGEST_ERROR_OF_GRADIENTS, LARGEST_ERROR_IN_AUTOCAST = 1e-3, 0.03, 0.1
# Winograd's rounding errors are up to five times those of direct sums (docs/decisions/0014-winograd.md).
LARGEST_TIMES_TORCH = 10
KINDS = ("step", "infer", "step-last", "infer-last", "step-autocast", "infer-autocast")
ZOO_KINDS = ("step", "infer", "infer-autocast")
ZOO_INPUT = (1, 3, 224, 224)


def training_step(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step():
        optimizer.zero_grad()
        model(x).float().square().mean().backward()
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
        return inference(model, x)()
    model(x).float().square().mean().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def channels_last(t):
    """Signals have no such format of their own: theirs are views of memory in that order."""
    return t.to(memory_format=torch.channels_last) if t.dim() == 4 else t.mT.contiguous().mT


def measure(case, kind, make, shape, threads, quick):
    """Prints the rows of one network. Returns whether its results are right."""
    train, mode = kind.startswith("step"), kind.rpartition("-")[2]
    torch.manual_seed(1)
    x, theirs = torch.randn(shape), networks.without_dropout(make()).train(train)
    expected = result_of(copy.deepcopy(theirs).double(), x.double(), train)
    if mode == "last":
        x, theirs = channels_last(x), theirs.to(memory_format=torch.channels_last)
    autocast = mode == "autocast"
    for n in threads:
        torch.set_num_threads(n)
        models = {"partita": copy.deepcopy(theirs), "torch": copy.deepcopy(theirs)}  # the calls below train them
        with torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext():
            partita.nn.replace_(models["partita"], x, train=train)
            errors = {who: distance(result_of(model, x, train), expected) for who, model in models.items()}
            largest = (LARGEST_ERROR_IN_AUTOCAST if autocast else
                       LARGEST_ERROR_OF_GRADIENTS if train else LARGEST_ERROR)
            if not errors["partita"] <= max(largest, LARGEST_TIMES_TORCH * errors["torch"]):
                print(f"{case}: errors {errors}", file=sys.stderr)
                return False
            calls = {who: (training_step if train else inference)(model, x) for who, model in models.items()}
            for call in calls.values():
                call()
            seconds = 0 if quick else SECONDS * len(calls)
            for who, times in rows.interleaved(calls, seconds=seconds).items():
                rows.print_row(case, who, n, times, errors[who])
    return True


def cases():
    """The name, kind, network, shape and numbers of threads of each case."""
    for name, (make, shape) in networks.TABLE.items():
        for kind in KINDS:
            yield f"network-{name}-{kind}", kind, make, shape, (1, 2)
    for library, names in networks.ZOO.items():
        for name in names:
            for kind in ZOO_KINDS:
                yield f"zoo-{name}-{kind}", kind, networks.library_network(library, name), ZOO_INPUT, (1,)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three calls a row")
    parser.add_argument("--case", default="*")
    arguments = parser.parse_args()
    print(rows.HEADER)
    all_right = True
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # where replace_ remembers times: those of this run alone
        for case, *described in cases():
            if fnmatch.fnmatch(case, arguments.case):
                all_right &= measure(case, *described, arguments.quick)
    sys.exit(not all_right)


main()
