# SPDX-License-Identifier: MIT
"""Runs tests of PyTorch with convolutions computed by Partita, and says how many were:

    pytest -p partita.testing.torch_plugin test_convolution.py
"""
import collections

import pytest

from partita.nn.testing import dispatch_mode

_counts: dict = {"native": collections.Counter(), "fallback": collections.Counter()}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    with dispatch_mode() as mode:
        yield
    for kind, counts in mode.counts().items():
        _counts[kind].update(counts)


def pytest_terminal_summary(terminalreporter):
    for kind, counts in _counts.items():
        terminalreporter.write_line(f"partita, {kind}: {sum(counts.values())} calls, {dict(counts)}")
