#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times training steps and inference of networks of networks.py, in one process, in turns: PyTorch's, and the same
after `partita.nn.replace_(model, x)`, which takes layers that are faster. A step is forward, backward and an update of
the weights (SGD). In the cases ...-last the tensors lie channels last; in ...-autocast PyTorch computes layers in
bfloat16; in those of ...-bf16 models and inputs are of this type, and `partita-f32` and `torch-f32` are the same in
float32. Prints rows as the other benchmarks do; an item is one call on the whole batch, and `check` is the relative L2
distance of the outputs, or of the gradients of all weights, from PyTorch's in float64.

    bench/programs/python_networks.py [--quick] [--case PATTERN]

With the package, PyTorch, torchvision and timm installed. Cases: network-NAME-KIND, and zoo-NAME-KIND with one thread."""
import contextlib
import copy
import os
import tempfile

import networks
import rows
import torch

import partita.nn

SECONDS = 2.0  # of each contender at least, and at least three calls
LARGEST_ERROR_IN_AUTOCAST = 0.1
KINDS = ("step", "infer", "step-last", "infer-last", "step-autocast", "infer-autocast")
BF16 = {"vgg-e": "vgg19", "resnet50": "resnet50", "convnext-t": "convnext_tiny"}  # names in torchvision
ZOO_KINDS = ("step", "infer", "infer-autocast")
IMAGE = (1, 3, 224, 224)


def channels_last(t):
    """Signals have no such format of their own: theirs are views of memory in that order."""
    return t.to(memory_format=torch.channels_last) if t.dim() == 4 else t.mT.contiguous().mT


def print_rows(case, calls, threads, errors, quick):
    """Times the calls of all contenders in turns."""
    for call in calls.values():
        call()
    for who, times in rows.interleaved(calls, seconds=0 if quick else SECONDS * len(calls)).items():
        rows.print_row(case, who, threads, times, errors[who])


def measure_bf16(case, theirs, x, train, threads, quick):
    """Prints the rows of a network in bfloat16, and in float32."""
    expected = networks.result_of(copy.deepcopy(theirs).double(), x.double(), train)
    for n in threads:
        torch.set_num_threads(n)
        calls, errors = {}, {}
        for suffix, dtype in (("", torch.bfloat16), ("-f32", torch.float32)):
            models = {who: copy.deepcopy(theirs).to(dtype) for who in ("partita", "torch")}
            inputs = x.to(dtype)
            partita.nn.replace_(models["partita"], inputs, train=train)
            found = networks.errors(case, models, inputs, train, expected, None if suffix else LARGEST_ERROR_IN_AUTOCAST)
            if found is None:
                return False
            errors |= {who + suffix: error for who, error in found.items()}
            calls |= {who + suffix: networks.call_of(model, inputs, train) for who, model in models.items()}
        print_rows(case, calls, n, errors, quick)
    return True


def measure(case, kind, make, shape, threads, quick):
    """Prints the rows of one network."""
    train, mode = kind.startswith("step"), kind.rpartition("-")[2]
    torch.manual_seed(1)
    x, theirs = torch.randn(shape), networks.without_dropout(make()).train(train)
    if mode == "bf16":
        return measure_bf16(case, theirs, x, train, threads, quick)
    expected = networks.result_of(copy.deepcopy(theirs).double(), x.double(), train)
    if mode == "last":
        x, theirs = channels_last(x), theirs.to(memory_format=torch.channels_last)
    autocast = mode == "autocast"
    for n in threads:
        torch.set_num_threads(n)
        models = {"partita": copy.deepcopy(theirs), "torch": copy.deepcopy(theirs)}  # the calls below train them
        with torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext():
            partita.nn.replace_(models["partita"], x, train=train)
            errors = networks.errors(case, models, x, train, expected,
                                     LARGEST_ERROR_IN_AUTOCAST if autocast else None)
            if errors is None:
                return False
            calls = {who: networks.call_of(model, x, train) for who, model in models.items()}
            print_rows(case, calls, n, errors, quick)
    return True
    return True


def cases():
    """The name, kind, network, shape and numbers of threads of each case."""
    for name, (make, shape) in networks.TABLE.items():
        for kind in KINDS:
            yield f"network-{name}-{kind}", kind, make, shape, (1, 2)
    for name, model in BF16.items():
        for kind in ("step-bf16", "infer-bf16"):
            yield f"network-{name}-{kind}", kind, networks.library_network("torchvision", model), IMAGE, (1, 2)
    for library, names in networks.ZOO.items():
        for name in names:
            for kind in ZOO_KINDS:
                yield f"zoo-{name}-{kind}", kind, networks.library_network(library, name), IMAGE, (1,)


with tempfile.TemporaryDirectory() as folder:
    os.environ["XDG_CACHE_HOME"] = folder  # where replace_ remembers times: those of this run alone
    rows.run(__doc__, cases(), measure)
