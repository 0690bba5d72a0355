# SPDX-License-Identifier: MIT
"""Runs the tests of the package causal-conv1d, which need a GPU, with Partita on the CPU:

    CAUSAL_CONV1D=FOLDER PYTHONPATH=python/tests pytest -p causal_conv1d_plugin FOLDER/tests/test_causal_conv1d.py

The package need not be installed: this is a module of its name, whose functions get the tests' arguments unchanged. Its
references, which the tests compare with, are read from the folder CAUSAL_CONV1D of its sources.
"""
import ast
import functools
import os
import pathlib
import sys
import types

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from partita.nn import causal_conv1d, causal_conv1d_update

_calls = 0


def _counted(function):
    @functools.wraps(function)
    def call(*arguments, **options):
        global _calls
        _calls += 1
        return function(*arguments, **options)
    return call


def _varlen_states(x, cu_seqlens, state_len):
    """The last frames of each sequence of x (frames, channels), as final states of filters of state_len + 1 taps."""
    states = x.new_zeros(len(cu_seqlens) - 1, state_len, x.shape[1]).transpose(1, 2)
    weight = x.new_zeros(x.shape[1], state_len + 1)
    causal_conv1d(x.T, weight, query_start_loc=cu_seqlens, conv_states=states)
    return states


def _references(path):
    """The functions ..._ref of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name.endswith("_ref")]
    names = {"torch": torch, "Tensor": torch.Tensor, "F": F}
    exec(compile(tree, str(path), "exec"), names)  # pylint: disable=exec-used
    return {name: f for name, f in names.items() if name.endswith("_ref")}


def _install():
    folder = pathlib.Path(os.environ["CAUSAL_CONV1D"]) / "causal_conv1d"
    ours = {"interface": {"causal_conv1d_fn": _counted(causal_conv1d),
                          "causal_conv1d_update": _counted(causal_conv1d_update)},
            "varlen": {"causal_conv1d_varlen_states": _counted(_varlen_states)}}
    sys.modules["causal_conv1d"] = types.ModuleType("causal_conv1d")
    for name, functions in ours.items():
        module = types.ModuleType(f"causal_conv1d.causal_conv1d_{name}")
        vars(module).update(_references(folder / f"causal_conv1d_{name}.py"), **functions)
        sys.modules[module.__name__] = module


class _OnCpu(TorchFunctionMode):
    """Tensors for a GPU are made on the CPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if kwargs.get("device") == "cuda":
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


def pytest_configure(config):
    _install()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    with _OnCpu():
        yield


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"partita: {_calls} calls")
