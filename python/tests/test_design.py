# SPDX-License-Identifier: MIT
"""Designed taps against SciPy, and messages that name the argument. (The library's own tests compare all kinds.)"""
import numpy as np
import pytest
import scipy.signal

import partita

LOW = {"kind": "lowpass", "cutoff": 0.15, "width": 0.04}


def test_kaiser_is_firwin():
    h = partita.design("bandpass", (100, 300), taps=101, width=40, attenuation=60, rate=1000)
    expected = scipy.signal.firwin(101, [100, 300], window=("kaiser", scipy.signal.kaiser_beta(60)), pass_zero=False,
                                   scale=False, fs=1000)
    assert h.dtype == np.float64
    np.testing.assert_allclose(h, expected, rtol=0, atol=1e-13)  # sines of arguments up to 100


def test_equiripple_is_remez():
    h = partita.design(**LOW, taps=51, ripple=0.5, attenuation=40, method="equiripple")
    weights = 1 / (1 - 10**(-0.5 / 20)), 100
    expected = scipy.signal.remez(51, [0, 0.13, 0.17, 0.5], [1, 0], weight=weights, grid_density=64, fs=1)
    np.testing.assert_allclose(h, expected, rtol=0, atol=1e-5)  # SciPy's grid: 5e-4 of deviations of 1e-2


@pytest.mark.parametrize("options", [
    LOW,
    {"kind": "highpass", "cutoff": [0.2], "width": 0.1},
    {"kind": "bandstop", "cutoff": np.array([0.1, 0.3]), "width": 0.05, "method": "equiripple"},
    {"kind": "hilbert", "width": 0.05},
    {"kind": "differentiator", "cutoff": 0.3, "width": 0.1},
    {**LOW, "minimum_phase": True},
])
def test_designs_reach_their_attenuation(options):
    design = partita.Design(**options, attenuation=70)
    h = design.make()
    achieved = design.measure(h)
    assert achieved.attenuation >= 70 - 1e-3  # where the exchange stops
    assert achieved.width == pytest.approx(options["width"])
    if not design.minimum_phase:
        assert achieved.delay == pytest.approx((len(h) - 1) / 2)


def test_rounded_taps_are_measured_as_they_are():
    design = partita.Design(**LOW, attenuation=120)
    h = design.make()
    assert design.measure(h).attenuation >= 120
    assert design.measure(h.astype("f2")).attenuation < 80
    assert design.measure(list(h)) == design.measure(h)


def test_table():
    points = [(100, 0), (1000, -6), (10000, 3)]
    h = partita.design("table", table=points, rate=48000, width=200)
    f, response = scipy.signal.freqz(h, worN=np.array([200, 3000, 15000]), fs=48000)
    wanted = np.interp(np.log(f), np.log([p[0] for p in points]), [p[1] for p in points])
    np.testing.assert_allclose(20 * np.log10(np.abs(response)), wanted, atol=0.2)
    assert partita.Design(kind="table", table=points, rate=48000, width=200).measure(h).attenuation == np.inf


def test_taps_are_used_by_streams():
    h = partita.design(**LOW).astype("f4")
    tone = np.sin(2 * np.pi * 0.3 * np.arange(2000)).astype("f4")
    assert np.abs(partita.Stream(h)(tone)[len(h):]).max() < 1.1e-4  # 80 dB


@pytest.mark.parametrize("arguments, options, error, text", [
    (("lopass", 0.1), {}, ValueError, "kind = 'lopass': one of 'lowpass', 'highpass'"),
    (("lowpass", 0.1), {}, ValueError, "width: must be set if taps is not"),
    (("lowpass", 0.7), {"width": 0.1}, ValueError, "cutoff[0] = 0.7: must be above 0 and below 0.5"),
    (("lowpass", "a"), {"width": 0.1}, TypeError, "cutoff = 'a': a number is needed"),
    (("lowpass", (1, 2, 3)), {"width": 0.1}, ValueError, "cutoff = (1, 2, 3): one frequency, or two for a band"),
    (("lowpass", 0.1), {"width": "b"}, TypeError, "width = 'b': a number is needed"),
    (("lowpass", 0.1), {"taps": 3.5}, TypeError, "taps = 3.5: an integer is needed"),
    (("lowpass", 0.1), {"taps": 51, "method": "remez"}, ValueError, "method = 'remez': one of 'kaiser', 'equiripple'"),
    (("highpass", 0.1), {"taps": 64}, ValueError, "taps = 64: must be odd for a high pass; try 65"),
    (("lowpass", 0.1), {"width": 1e-6}, NotImplementedError, "needs more than 262143 taps"),
    (("table",), {"table": [1, 2], "width": 0.1}, ValueError, "table has shape (2,), not (points, 2)"),
    (("table",), {"table": [(0.2, 0), (0.1, 0)], "width": 0.1}, ValueError, "table[1].frequency = 0.1: must be above"),
    (("table",), {"width": 0.1}, ValueError, "table: has no points"),
])
def test_messages(arguments, options, error, text):
    with pytest.raises(error) as raised:
        partita.design(*arguments, **options)
    assert text in str(raised.value)
    assert "design." not in str(raised.value)


def test_measure_needs_taps():
    design = partita.Design(**LOW)
    with pytest.raises(ValueError, match="taps has shape"):
        design.measure([])
    with pytest.raises(ValueError, match=r"taps\[1\] = nan: must be finite"):
        design.measure([1, np.nan])
