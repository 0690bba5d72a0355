# SPDX-License-Identifier: MIT
"""What SciPy's functions lack: windows, normalised correlation, out, threads; patched(), plans that are kept."""
import concurrent.futures
import threading

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import signal_oracle as oracle

import partita
from partita import signal
from partita._signal import native

scipy_signal = pytest.importorskip("scipy.signal")


@pytest.fixture
def rng():
    return np.random.default_rng(19)


def window(y, first, last):
    """Results [first, last) of a full convolution, which is zero outside its bounds."""
    around = max(0, -first, last - len(y))
    return np.pad(y, around)[first + around:last + around]


@pytest.mark.parametrize("dtype", ("float32", "complex128"))
@pytest.mark.parametrize("n, m", [(50, 9), (9, 50), (1500, 1200), (1200, 1500)])
@pytest.mark.parametrize("first, last", [(0, 1), (-5, 7), (3, 20), (-60, 60)])
def test_windows(n, m, first, last, dtype, rng):
    x, h = oracle.noise(rng, n, dtype), oracle.noise(rng, m, dtype)
    oracle.check(signal.convolve(x, h, slice(first, last)), window(oracle.full(x, h), first, last), x, h)
    expected = window(oracle.full(x, oracle.reverse(h)), first + m - 1, last + m - 1)
    oracle.check(signal.correlate(x, h, lags=(first, last)), expected, x, h)
    np.testing.assert_array_equal(signal.correlate(x, h, lags=range(first, last)), signal.correlate(x, h, lags=(first, last)))
    np.testing.assert_array_equal(signal.correlation_lags(n, m, lags=(first, last)), np.arange(first, last))


def test_windows_of_rows(rng):
    x, h = oracle.noise(rng, (3, 200), "float64"), oracle.noise(rng, (1, 30), "float64")
    whole = signal.correlate(x, h, axes=1)
    got = signal.correlate(x, h, axes=1, lags=(-4, 5))
    np.testing.assert_allclose(got, whole[:, 25:34], atol=1e-13)


def test_windows_of_integers(rng):
    x, h = rng.integers(-99, 99, 3000), rng.integers(-99, 99, 2000)
    np.testing.assert_array_equal(signal.correlate(x, h, lags=(-3, 4)), np.correlate(x, h, "full")[1996:2003])


def centred(x):
    """Samples without their mean; equal ones become 0."""
    x = x - x[0]
    return x - x.mean()


def normalised(x, h, lags, how=True):
    """Normalised correlation by its definition, for `normalise=how`."""
    y = []
    for lag in lags:
        under = np.array([x[i + lag] if 0 <= i + lag < len(x) else 0 for i in range(len(h))])
        under, template = (centred(under), centred(h)) if how == "zero-mean" else (under, h)
        norms = np.linalg.norm(under) * np.linalg.norm(template)
        y.append(np.sum(under * np.conj(template)) / norms if norms else 0)
    return np.array(y)


@pytest.mark.parametrize("how", (True, "zero-mean"))
@pytest.mark.parametrize("dtype", ("float32", "float64", "complex64", "int16", "float16"))
@pytest.mark.parametrize("n, m", [(60, 11), (11, 60)])
def test_normalised(n, m, dtype, how, rng):
    x, h = oracle.noise(rng, n, dtype), oracle.noise(rng, m, dtype)
    x[5:5 + m // 2] *= 0
    wide_x, wide_h = (v.astype(complex if v.dtype.kind == "c" else float) for v in (x, h))
    # A quotient errs by the bound of the numerator over the norms; here no window of the signal but silence has a norm
    # below a hundredth of the whole.
    near = 1e-12 if dtype in ("float64", "int16") else 1e-3
    for mode in ("full", "same", "valid"):
        lags = signal.correlation_lags(n, m, mode)
        if mode == "same":
            lags = np.arange(n) - (m - 1) + (m - 1) // 2
        expected = normalised(wide_x, wide_h, lags, how)
        np.testing.assert_allclose(signal.correlate(x, h, mode, normalise=how), expected, atol=near)
    got = signal.correlate(x, h, lags=(-3, 9), normalise=how)
    np.testing.assert_allclose(got, normalised(wide_x, wide_h, range(-3, 9), how), atol=near)
    assert got.dtype == {"int16": np.float64, "float16": np.float32}.get(dtype, np.dtype(dtype))


@pytest.mark.parametrize("how", (True, "zero-mean"))
@pytest.mark.parametrize("dtype", ("float32", "float64", "complex64", "complex128"))
def test_normalised_at_any_level(dtype, how, rng):
    """From the smallest normal numbers to the largest the peak is where the template is, and no magnitude exceeds 1."""
    limits = np.finfo(dtype)
    x, h = oracle.noise(rng, 3000, dtype), oracle.noise(rng, 100, dtype)
    x[1000:1100] += 3 * h
    expected = signal.correlate(x, h, normalise=how)
    assert abs(expected).argmax() == 1000 + 99 and abs(expected).max() <= 1 + 4 * limits.eps
    low, high = int(np.log2(float(limits.tiny))) + 30, int(np.log2(float(limits.max))) - 3
    for first, second in ((low, low), (high, high), (low, high), (0, low), (high, 0)):
        scaled = [v * limits.dtype.type(2.0**e) for v, e in ((x, first), (h, second))]
        np.testing.assert_array_equal(signal.correlate(*scaled, normalise=how), expected)  # powers of two change no bit


@pytest.mark.parametrize("how", (True, "zero-mean"))
@pytest.mark.parametrize("louder", (1e6, 1e8))
@pytest.mark.parametrize("dtype", ("float32", "complex64"))
def test_normalised_beside_a_loud_passage(dtype, louder, how, rng):
    """The true match is the only peak above 0.9."""
    x, h = oracle.noise(rng, 3000, dtype), oracle.noise(rng, 400, dtype)
    x[2000:2400] = h
    x[200:1200] *= louder
    y = signal.correlate(x, h, "valid", normalise=how)
    # A transform errs by 2 * 21 log2(N) u of double of the loud samples' norm: 1e8 times that of the window.
    assert abs(y).max() <= 1 + 4 * np.finfo(dtype).eps + 42 * 12 * 2**-53 * louder
    assert np.flatnonzero(abs(y) > 0.9).tolist() == [2000]


@pytest.mark.parametrize("dtype", ("float32", "float64", "complex64", "complex128", "int16"))
def test_zero_mean(dtype, rng):
    """An offset of 50 hides no template, and windows that are constant give 0."""
    n, m = 700, 60
    x, h = oracle.noise(rng, n, dtype), oracle.noise(rng, m, dtype)
    x[300:360] = h
    x += np.array(50, dtype)
    x[450:550] = x[450]
    wide = np.pad(x.astype(complex), m - 1)
    norms = np.array([np.linalg.norm(centred(wide[i:i + m])) for i in range(n + m - 1)])
    # A transform errs by 2 * 21 log2(N) u of the signal's norm, N <= 2048; the result is rounded.
    got = signal.correlate(x, h, normalise="zero-mean")
    bound = 42 * 11 * 2**-53 * np.linalg.norm(wide) / np.where(norms > 0, norms, 1) + 4 * np.finfo(got.dtype).eps
    expected = normalised(x.astype(wide.dtype), h.astype(wide.dtype), range(1 - m, n), "zero-mean")
    assert (abs(got - expected) <= bound).all()
    valid = signal.correlate(x, h, "valid", normalise="zero-mean")
    assert abs(valid).argmax() == 300 and (valid[450:491] == 0).all()
    peak, = signal.correlation_peaks(x, h, peaks=1, normalise="zero-mean").lag
    assert peak == 300
    rows = signal.correlate(np.stack([x, x[::-1]], 1), np.stack([h, h], 1), "valid", axes=0, normalise="zero-mean")
    np.testing.assert_array_equal(rows[:, 0], valid)
    assert (signal.correlate(x, np.full(m, h[0]), normalise="zero-mean") == 0).all()
    with pytest.raises(ValueError, match="normalise = 'mean': False, True or 'zero-mean'"):
        signal.correlate(x, h, normalise="mean")


def test_normalised_rows(rng):
    x, h = oracle.noise(rng, (40, 3), "float64"), oracle.noise(rng, (6, 1), "float64")
    got = signal.correlate(x, h, axes=0, normalise=True)
    for row in range(3):
        np.testing.assert_allclose(got[:, row], signal.correlate(x[:, row], h[:, 0], normalise=True))


@pytest.mark.parametrize("shape1, shape2, axes", [((40,), (9,), None), ((30000,), (500,), None), ((8, 300), (1, 20), 1),
                                                  ((300, 8), (20, 8), 0), ((20, 30), (5, 6), None)])
@pytest.mark.parametrize("dtype", ("float32", "complex64", "int32"))
def test_out(shape1, shape2, axes, dtype, rng):
    x, h = oracle.noise(rng, shape1, dtype), oracle.noise(rng, shape2, dtype)
    expected = signal.convolve(x, h, axes=axes)
    out = np.empty_like(expected)
    assert signal.convolve(x, h, axes=axes, out=out) is out
    np.testing.assert_array_equal(out, expected)
    strided = np.empty(expected.shape + (2,), expected.dtype)[..., 0]
    assert signal.convolve(x, h, axes=axes, out=strided) is strided
    np.testing.assert_array_equal(strided, expected)


def test_out_may_be_an_operand(rng):
    for n, m in ((40, 9), (30000, 500)):
        x, h = oracle.noise(rng, n, "float64"), oracle.noise(rng, m, "float64")
        expected = signal.convolve(x, h, "same")
        signal.convolve(x, h, "same", out=x)
        np.testing.assert_array_equal(x, expected)


def test_results_do_not_depend_on_threads(rng):
    x, h = oracle.noise(rng, 200000, "float32"), oracle.noise(rng, 3000, "float32")
    expected = signal.convolve(x, h)
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(signal.convolve(x, h, threads=threads), expected)


def test_engine(rng):
    x, h = oracle.noise(rng, 5000, "float64"), oracle.noise(rng, 300, "float64")
    for engine in ("cpu/direct", "cpu/overlap-save"):
        oracle.check(signal.convolve(x, h, engine=engine), oracle.full(x, h), x, h)


def test_method_direct_gives_exact_zeros(rng):
    x, h = np.zeros((200, 200)), oracle.noise(rng, (31, 31), "float64")
    x[100, 100] = 1
    got = signal.convolve(x, h, method="direct")
    np.testing.assert_array_equal(got[100:131, 100:131], h)
    assert np.count_nonzero(got) == np.count_nonzero(h)


def test_choose_conv_method(rng):
    x = oracle.noise(rng, (300, 300), "float64")
    assert signal.choose_conv_method(x[0, :20], x[0, :5]) == "direct"
    assert signal.choose_conv_method(x, x) == "fft"
    assert signal.choose_conv_method(np.array([2**51]), np.array([2**51])) == "direct"
    assert signal.choose_conv_method(x > 0, x > 0) == "direct"
    method, times = signal.choose_conv_method(x[0], x[1], measure=True)
    assert method == min(times, key=times.get) and set(times) == {"fft", "direct"}


def test_patched():
    scipy_signal = pytest.importorskip("scipy.signal")
    before = {name: getattr(scipy_signal, name) for name in ("convolve", "fftconvolve", "lfilter")}
    with pytest.raises(KeyError):
        with signal.patched():
            with signal.patched():
                assert scipy_signal.convolve is signal.convolve
            assert scipy_signal.fftconvolve is signal.fftconvolve
            # What the package cannot do still reaches SciPy's own function.
            assert scipy_signal.lfilter([1.0], [1.0, -0.5], [1.0, 0.0]).tolist() == [1.0, 0.5]
            raise KeyError
    assert all(getattr(scipy_signal, name) is function for name, function in before.items())


def test_few_plans_are_kept(rng):
    native.planned.cache_clear()
    h = oracle.noise(rng, 400, "float64")
    for n in range(2000, 2100):
        signal.convolve(oracle.noise(rng, n, "float64"), h)
    assert native.planned.cache_info().currsize == native.KEPT_PLANS
    long = oracle.noise(rng, native.KEPT_SAMPLES, "float32")
    native.planned.cache_clear()
    signal.convolve(long, long[:100])
    assert native.planned.cache_info().currsize == 0


def test_set_threads_is_followed(rng):
    x, h = oracle.noise(rng, 20000, "float64"), oracle.noise(rng, 400, "float64")
    native.planned.cache_clear()
    signal.convolve(x, h)
    partita.set_threads(1)
    try:
        signal.convolve(x, h)
    finally:
        partita.set_threads(None)
    assert native.planned.cache_info().misses == 2


def test_many_threads(rng):
    """Plans are shared and replaced by eight threads at once."""
    h = oracle.noise(rng, 300, "float64")
    signals = [oracle.noise(rng, n, "float64") for n in range(2000, 2000 + 2 * native.KEPT_PLANS)]
    expected = [signal.convolve(x, h, threads=1) for x in signals]
    start = threading.Barrier(8)

    def work(seed):
        start.wait()
        for i in np.random.default_rng(seed).permutation(len(signals)):
            np.testing.assert_array_equal(signal.convolve(signals[i], h, threads=1), expected[i])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def peaks_by_definition(y, lags, threshold, distance, most):
    size = abs(y)
    inner = np.pad(size, 1, constant_values=-1)
    maxima = np.flatnonzero((size > inner[:-2]) & (size > inner[2:]) & (size >= threshold))
    found = []
    for i in sorted(maxima, key=lambda i: -size[i]):
        if all(abs(j - i) >= distance for j in found):
            found.append(i)
    kept = sorted(found[:most])
    return lags[kept], size[kept], np.angle(y[kept])


@pytest.mark.parametrize("dtype", ("float32", "complex128"))
@pytest.mark.parametrize("normalise", (False, True))
@pytest.mark.parametrize("distance, most, lags", [(None, None, None), (1, 7, None), (100, 3, (50, 900)), (10**9, None, None)])
def test_peaks(distance, most, lags, normalise, dtype, rng):
    x, h = oracle.noise(rng, 1000, dtype), oracle.noise(rng, 30, dtype)
    y = signal.correlate(x, h, lags=lags, normalise=normalise)
    threshold = np.median(abs(y))
    found = signal.correlation_peaks(x, h, peaks=most, threshold=threshold, distance=distance, normalise=normalise, lags=lags)
    expected = peaks_by_definition(y, signal.correlation_lags(1000, 30, lags=lags), threshold, distance or 30, most)
    np.testing.assert_array_equal(found.lag, expected[0])
    np.testing.assert_array_equal(found.magnitude, expected[1])
    np.testing.assert_array_equal(found.phase, expected[2])


def test_peaks_beside_dropped_peaks():
    """A maximum that is dropped drops nothing: 26 is closer than 10 to 34 and to 20."""
    x = np.zeros(50)
    x[[20, 26, 34]] = 3, 4, 9
    assert signal.correlation_peaks(x, [1.0], distance=10).lag.tolist() == [20, 34]
    assert signal.correlation_peaks(x, [1.0], distance=10, peaks=1).lag.tolist() == [34]
    x = np.zeros(13)
    x[[0, 6, 12]] = 5  # of equal ones the first is taken first
    assert signal.correlation_peaks(x, [1.0], distance=10).lag.tolist() == [0, 12]


@hypothesis.given(st.lists(st.integers(0, 1000), unique=True, min_size=1, max_size=300), st.integers(1, 50))
def test_peaks_are_those_of_scipy(values, distance):
    """Of samples that are all different, between zeros, as SciPy finds no peaks at the ends."""
    x = np.concatenate([[0.0], values, [0.0]])
    found = signal.correlation_peaks(x, [1.0], distance=distance, threshold=1)
    assert found.lag.tolist() == scipy_signal.find_peaks(x, height=1, distance=distance)[0].tolist()


def test_peaks_of_equal_samples():
    y = signal.correlation_peaks([0, 2, 2, 1, 2, 0, 3, 3], [1.0], distance=4)
    assert y.lag.tolist() == [1, 6]
    assert signal.correlation_peaks(np.zeros(9), [1.0]).lag.size == 0
    # A step on the way up, of 8 and of 9 equal samples: the latter is a local maximum, as for `partita correlate`.
    for n, lags in ((8, [9]), (9, [1, 10])):
        assert signal.correlation_peaks([0] + n * [2] + [3, 0], [1.0], distance=2).lag.tolist() == lags


@pytest.mark.parametrize("delay", (-0.4, 0.25, 0.5))
def test_peaks_between_samples(delay, rng):
    """sinc(band (t - delay)) fills that part of the band; the limits are those of the help."""
    for band, limit in ((0.02, 0.001), (0.6, 0.001), (0.8, 0.01), (1, 0.06)):
        x = np.sinc(band * (np.arange(400) - 200 - delay)) * np.exp(2j)
        found = signal.correlation_peaks(x, [1.0], peaks=1)
        assert abs(found.position[0] - 200 - delay) < limit


def test_peaks_refuse():
    for arguments, said in ((dict(peaks=0), "peaks=0"), (dict(distance=0), "distance=0")):
        with pytest.raises(ValueError, match=said):
            signal.correlation_peaks([1.0, 2], [1.0], **arguments)
    with pytest.raises(ValueError, match="one dimension"):
        signal.correlation_peaks(np.ones((2, 3)), [1.0])
