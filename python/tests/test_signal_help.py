# SPDX-License-Identifier: MIT
"""Help texts and signatures of partita.signal."""
import doctest
import inspect

import pytest

from partita import signal
from partita._signal import convolution, fallback, filters, pairs, peaks, planar, rebound, spectra, templates


@pytest.mark.parametrize("module", (convolution, fallback, filters, pairs, peaks, planar, rebound, spectra,
                                    templates), ids=lambda m: m.__name__)
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("name", fallback.NAMES + ("correlation_lags",))
def test_signatures_begin_as_scipys(name):
    """What SciPy's function takes stands first, with the same defaults; additions are keywords."""
    theirs = list(inspect.signature(getattr(pytest.importorskip("scipy.signal"), name)).parameters.values())
    ours = list(inspect.signature(getattr(signal, name)).parameters.values())
    assert [(p.name, p.default, p.kind) for p in ours[:len(theirs)]] == [(p.name, p.default, p.kind) for p in theirs]
    assert all(p.kind is p.KEYWORD_ONLY for p in ours[len(theirs):])


@pytest.mark.parametrize("name", signal.__all__)
def test_help(name):
    assert "Examples\n" in inspect.getdoc(getattr(signal, name))
