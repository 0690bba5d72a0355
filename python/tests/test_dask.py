# SPDX-License-Identifier: MIT
"""partita.dask: results against sums in long double, bit for bit whatever the chunks and workers; graphs; Zarr."""
import doctest
import importlib
import itertools
import os
import pathlib
import pickle
import re
import subprocess
import sys
import time
import tracemalloc
import urllib.request

import numpy as np
import pytest
import signal_oracle as oracle

from partita import StateError, UnsupportedError, library_version, signal

da = pytest.importorskip("dask.array", exc_type=ImportError)
import dask  # noqa: E402

from partita import dask as parallel  # noqa: E402
from partita._dask import arrays, layout, made_by, memory, storage, tasks  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = (37, 100)  # sizes that divide nothing


@pytest.fixture
def rng():
    return np.random.default_rng(21)


def random_chunks(rng, shape):
    """Sizes of chunks, at least one sample each and at most four along an axis."""
    def along(n):
        cuts = np.unique(rng.integers(1, n, min(n - 1, 3))) if n > 1 else []
        return tuple(int(b - a) for a, b in itertools.pairwise([0, *cuts, n]))
    return tuple(map(along, shape))


def chunked(rng, x):
    return da.from_array(x, chunks=random_chunks(rng, x.shape))


def same_bits(y, z):
    return y.shape == z.shape and y.dtype == z.dtype and y.tobytes() == z.tobytes()


TYPES = [("f4", "f4"), ("f8", "f8"), ("c8", "f4"), ("c16", "c16"), ("f4", "c8"), ("i4", "i2"), ("?", "?"), ("f2", "f2")]


@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("mode", ["full", "same", "valid", slice(-3, 500)])
def test_convolve(rng, types, mode):
    x, h = oracle.noise(rng, 731, types[0]), oracle.noise(rng, 150, types[1])
    y = parallel.convolve(chunked(rng, x), chunked(rng, h), mode, parts=PARTS).compute()
    full = oracle.full(x, h)
    wanted = np.concatenate([np.zeros(3), full[:500]]) if isinstance(mode, slice) else oracle.moded(x, h, mode)
    assert y.dtype == signal.convolve(x[:2], h[:2]).dtype
    if y.dtype.kind in "bi":
        np.testing.assert_array_equal(y, wanted.astype(y.dtype))
    else:
        # Parts add a rounding each of results no larger than the norms' product; there are 5, the tolerance has 2 * 150.
        oracle.check(y, wanted, x, h)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(731, 150), (150, 731), (90, 90), (90, 1)])
def test_correlate(rng, sizes, mode):
    x, h = oracle.noise(rng, sizes[0], "c16"), oracle.noise(rng, sizes[1], "c16")
    y = parallel.correlate(chunked(rng, x), chunked(rng, h), mode, parts=PARTS).compute()
    wanted = signal.correlate(x, h, mode)
    assert y.shape == wanted.shape
    assert np.abs(y - wanted).max() <= 2 * oracle.tolerance(x, h, y.dtype)  # both err


def test_lags_are_those_of_the_full_result(rng):
    x, h = oracle.noise(rng, 731, "f8"), oracle.noise(rng, 400, "f8")
    lags = range(-20, 31)
    y = parallel.correlate(chunked(rng, x), chunked(rng, h), lags=lags, parts=PARTS).compute()
    wanted = oracle.full(x, h[::-1])[399 - 20:399 + 31]
    oracle.check(y, wanted, x, h)


@pytest.mark.parametrize("types", [("f4", "f4"), ("c16", "f8"), ("i2", "i2")], ids="-".join)
def test_normalised(rng, types):
    """A loud passage before the quiet one must not leave its rounding errors there."""
    x, h = oracle.noise(rng, (2, 700), types[0]), oracle.noise(rng, (1, 90), types[1])
    if types[0] != "i2":
        x[:, :200] *= 1e3
        x[:, 400:500] = 0
    y = parallel.correlate(chunked(rng, x), chunked(rng, h), axes=1, normalise=True, parts=PARTS).compute()
    wide = x.astype(np.clongdouble)
    under = oracle.full((np.abs(wide)**2).real, np.ones((1, 90)), axes=[1])
    norm = np.sqrt(under * (np.abs(h.astype(np.clongdouble))**2).real.sum())
    wanted = oracle.full(x, oracle.reverse(h, [1]), axes=[1])
    scale = np.where(norm > 0, 1 / np.where(norm > 0, norm, 1), 0)
    # The correlation errs by the tolerance of a block of results, whose norm is that of the signal under it.
    unit = oracle.UNIT[y.dtype.char]
    loudest = np.array([[np.linalg.norm(row[max(0, r // 100 * 100 - 89):r // 100 * 100 + 100].astype(complex))
                         for r in range(789)] for row in x])
    bound = (2 * (90 + 21 * np.log2(200)) * unit * loudest * np.linalg.norm(h.astype(complex)) + 1e-300) * scale + 8 * unit
    assert y.shape == wanted.shape and (np.abs(y - wanted * scale) <= bound).all()
    assert (y[:, 489:500] == 0).all() or types[0] == "i2"


@pytest.mark.parametrize("count, width", [(1, 1), (1, 9), (9, 1), (5, 9), (9, 9), (10, 9), (100, 9), (9, 100)])
def test_sums_of_neighbours_are_exact_for_integers(rng, count, width):
    x = rng.integers(0, 2**40, count + width - 1).astype(float)  # sums below 2^53
    wanted = np.lib.stride_tricks.sliding_window_view(x, width).sum(axis=1)
    np.testing.assert_array_equal(tasks._sliding_sums(x, width), wanted)


@pytest.mark.parametrize("stride", [2, 3, 250])
def test_stride(rng, stride):
    x, h = oracle.noise(rng, 731, "f8"), oracle.noise(rng, 150, "f8")
    y = parallel.convolve(chunked(rng, x), h, "same", stride=stride, parts=(37, 20)).compute()
    oracle.check(y, oracle.moded(x, h, "same")[::stride], x, h)


@pytest.mark.parametrize("op", ["convolve", "correlate"])
@pytest.mark.parametrize("shapes", [((40, 50), (7, 9)), ((20, 23, 30), (5, 3, 4)), ((3, 50, 41), (1, 9, 7)), ((7, 9), (40, 50))])
def test_more_axes(rng, op, shapes):
    x, h = (oracle.noise(rng, shape, "f8") for shape in shapes)
    parts = ((3, 4, 3), (11, 9, 10)) if x.shape[0] == 20 else (3, 11)
    for mode in ("full", "same"):
        y = getattr(parallel, op)(chunked(rng, x), chunked(rng, h), mode, parts=parts).compute()
        oracle.check(y, oracle.moded(x, oracle.reverse(h) if op == "correlate" else h, mode), x, h)


@pytest.mark.parametrize("op", ["convolve", "correlate"])
@pytest.mark.parametrize("shapes", [((1, 1, 2), (5, 1, 9)), ((2, 5, 1), (2, 9, 9)), ((2, 1), (9, 5)), ((5, 9, 9), (1, 9, 2))])
def test_axes_of_one_item(rng, op, shapes):
    """The longer operand may be either, and an axis of one item may be that of the shorter one."""
    x, h = (oracle.noise(rng, shape, "c16") for shape in shapes)
    for mode in ("full", "same", "valid"):
        y = getattr(parallel, op)(da.from_array(x, chunks=3), da.from_array(h, chunks=2), mode).compute()
        wanted = getattr(signal, op)(x, h, mode)
        assert y.shape == wanted.shape and np.abs(y - wanted).max() <= 2 * oracle.tolerance(x, h, y.dtype)  # both err


@pytest.mark.parametrize("op", ["convolve", "correlate"])
def test_valid_compares_axes_of_one_item(op):
    """Neither operand is the larger one along both axes: refused, as by SciPy, unless the axes are named."""
    x, h = np.ones((1, 20), np.float32), np.ones((4, 3), np.float32)
    for module in (signal, parallel):
        with pytest.raises(ValueError, match="at least as large"):
            getattr(module, op)(x, h, "valid")
    assert parallel.convolve(x, h, "valid", axes=1).shape == signal.convolve(x, h, "valid", axes=1).shape == (4, 18)


def test_axes_that_are_broadcast(rng):
    """Channels with a filter each, channels with one filter, a bank of filters for one signal."""
    x, one, each, bank = (oracle.noise(rng, shape, "f4") for shape in ((4, 600), (1, 60), (4, 60), (20, 60)))
    for signals, taps in ((x, one), (x, each), (x[:1], bank)):
        y = parallel.convolve(chunked(rng, signals), chunked(rng, taps), axes=1, parts=PARTS).compute()
        oracle.check(y, oracle.full(signals, taps, [1]), signals[:1], taps[:1] * 2)
        z = parallel.oaconvolve(chunked(rng, signals), chunked(rng, taps), "same", axes=1).compute()
        assert z.shape == signal.oaconvolve(signals, taps, "same", axes=1).shape
    same = parallel.correlate(x[:1], bank, "same", axes=1).compute()
    oracle.check(same, signal.correlate(x[:1], bank, "same", axes=1), x[:1], bank[:1])
    y = parallel.convolve(x, each[:, :1], axes=1).compute()
    np.testing.assert_array_equal(y, x * each[:, :1])
    np.testing.assert_array_equal(parallel.correlate(x, 2 * each[:, :1], axes=1).compute(), x * (2 * each[:, :1]))


@pytest.mark.parametrize("level", (1e-22, 1.0, 1e19))
@pytest.mark.parametrize("dtype", ("float32", "complex64"))
def test_normalised_beside_a_loud_passage(rng, dtype, level):
    """A template 1e8 times quieter than a passage beside it, and levels whose squares f32 does not hold."""
    x, h = oracle.noise(rng, 6000, dtype), oracle.noise(rng, 100, dtype)
    x[1000:1100] += 5 * h
    x[3000:4000] *= 1e8 if level == 1 else 1
    y = parallel.correlate(da.from_array(x * np.float32(level), chunks=1500), h * np.float32(level), lags=(0, 3100),
                           normalise=True, parts=PARTS).compute()
    expected = signal.correlate(x.astype(complex), h.astype(complex), lags=(0, 3100), normalise=True)
    # Both operands are rounded to f32 once more, 2 u of a quotient, and so is the result.
    assert y.dtype == dtype and np.abs(y).max() <= 1 + 2**-23
    assert np.abs(y - expected).max() <= 8 * 2**-24 and np.abs(y).argmax() == 1000


@pytest.mark.parametrize("dtype", ("float32", "float64", "complex128", "int16"))
def test_zero_mean(rng, dtype):
    """The values of NumPy's means; zeros where the template or the signal under it is constant."""
    x, h = oracle.noise(rng, (2, 700), dtype), oracle.noise(rng, (1, 90), dtype)
    x += np.array(50, dtype)
    x[:, 400:500] = x[:, 400:401]
    y = parallel.correlate(chunked(rng, x), chunked(rng, h), axes=1, normalise="zero-mean", parts=PARTS).compute()
    wide = np.pad(x.astype(np.clongdouble), ((0, 0), (89, 89)))
    under = np.lib.stride_tricks.sliding_window_view(wide, 90, axis=1)
    energy = (np.abs(under)**2).sum(-1)
    under, template = (v - v.mean(-1, keepdims=True) for v in (under, h.astype(np.clongdouble)))
    norm = np.sqrt((np.abs(under)**2).sum(-1) * (np.abs(template)**2).sum(-1))
    constant = norm < 1e-9
    wanted = np.where(constant, 0, (under * template.conj()).sum(-1) / np.where(constant, 1, norm))
    assert y.dtype == np.result_type(dtype, np.float32 if dtype == "float32" else np.float64) and constant.any()
    # Sums of 90 terms err by 90 u of an energy, which is divided by the variation that is left of it.
    bound = 2 * 90 * 2**-53 * energy / np.where(constant, 1, (np.abs(under)**2).sum(-1)) + 2 * oracle.UNIT[y.dtype.char]
    assert (np.abs(y - wanted)[~constant] <= bound[~constant]).all()
    assert (y[constant] == 0).all()
    assert (parallel.correlate(x, np.full((1, 90), 0.1), axes=1, normalise="zero-mean").compute() == 0).all()
    with pytest.raises(ValueError, match="normalise = 'mean': False, True or 'zero-mean'"):
        parallel.correlate(x, h, axes=1, normalise="mean")


def test_oaconvolve_makes_floats_of_integers():
    y = parallel.oaconvolve(da.asarray([1, 2, 3]), [0, 1, 2]).compute()
    assert y.dtype == np.float64 and np.allclose(y, [0, 1, 4, 7, 6], atol=1e-14)


# One call of each kind with several blocks of results and several parts of taps.
CALLS = {
    "long taps": lambda x, h: parallel.convolve(x, h, parts=PARTS),
    "one part": lambda x, h: parallel.convolve(x, h, "same", parts=(400, 100)),
    "many parts": lambda x, h: parallel.convolve(x, h, "valid", parts=(5, 90)),
    "stride": lambda x, h: parallel.convolve(x, h, stride=3, parts=(100, 50)),
    "lags": lambda x, h: parallel.correlate(x, h, lags=(-50, 60), parts=(60, 40)),
    "normalised": lambda x, h: parallel.correlate(x, h, normalise=True, parts=(100, 150)),
    "channels": lambda x, h: parallel.convolve(x.reshape(5, -1), h.reshape(5, -1), axes=1, parts=(33, 64)),
    "plane": lambda x, h: parallel.convolve(x.reshape(40, 50), h.reshape(20, 20), parts=((9, 8), (13, 17))),
}


@pytest.mark.parametrize("call", CALLS)
def test_bits_do_not_depend_on_chunks_and_workers(rng, call):
    x, h = oracle.noise(rng, 2000, "f4"), oracle.noise(rng, 400, "f4")
    wanted = CALLS[call](da.from_array(x, chunks=-1), da.from_array(h, chunks=-1)).compute(scheduler="synchronous")
    for workers in (1, 2, 3, 7):
        y = CALLS[call](chunked(rng, x), chunked(rng, h)).compute(scheduler="threads", num_workers=workers)
        assert same_bits(y, wanted)


def test_bits_are_those_of_calls_for_each_part_and_block(rng):
    """The same parts, imposed on one machine in a loop."""
    x, h = oracle.noise(rng, 2000, "f4"), oracle.noise(rng, 400, "f4")
    wanted = np.zeros(2399, np.float32)
    for begin in range(0, 2399, 500):
        for k in range(0, 400, 150):
            taps = h[k:k + 150]
            first, last = max(begin - k, 0), min(begin + 500 - k, 2000 + len(taps) - 1)
            low = max(first - len(taps) + 1, 0)
            block = signal.convolve(x[low:last], taps, slice(first - low, last - low), threads=1)
            wanted[first + k:last + k] += block
    assert same_bits(parallel.convolve(chunked(rng, x), h, parts=(150, 500)).compute(), wanted)


def test_slices_of_whole_blocks_have_the_bits_of_the_whole(rng):
    x, h = oracle.noise(rng, 2000, "f4"), oracle.noise(rng, 400, "f4")
    whole = parallel.convolve(chunked(rng, x), h, parts=(150, 100)).compute()
    part = parallel.convolve(chunked(rng, x), h, slice(300, 1900), parts=(150, 100)).compute()
    assert same_bits(part, whole[300:1900])


def test_default_parts_depend_on_shapes_alone(rng):
    """In one default block the result is that of one call."""
    x, h = oracle.noise(rng, 50_000, "f4"), oracle.noise(rng, 400, "f4")
    wanted = signal.convolve(x, h, slice(0, 50_399), threads=1)
    assert same_bits(parallel.convolve(chunked(rng, x), h).compute(), wanted)
    assert layout.default_parts(1, 1000) == (1000, 2**16)
    assert layout.default_parts(1, 2**30) == (2**22, 2**24)
    assert layout.default_parts(2, 100) == (100, 2**9)


@pytest.mark.parametrize("module", (arrays, memory, storage), ids=lambda m: m.__name__)
def test_examples_of_help_texts(module):
    if module is storage:
        pytest.importorskip("zarr")
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_nonfinite_samples_reach_what_depends_on_them(rng, bad):
    x, h = oracle.noise(rng, 1000, "f8"), oracle.noise(rng, 120, "f8")
    x[400] = bad
    y = parallel.convolve(chunked(rng, x), h, parts=PARTS).compute()
    np.testing.assert_array_equal(np.flatnonzero(~np.isfinite(y)), np.arange(400, 520))


def counted(array, compute):
    """How often a function of tasks.py stands in the optimised graph of an array."""
    return sum(getattr(t, "func", None) is compute for t in array.__dask_graph__().values())


def test_halos_alone_are_moved():
    """Chunks that are whole blocks: each task reads its own chunk and as many samples of the one before as taps need."""
    x = da.zeros(1000, chunks=100)
    y = parallel.convolve(x, np.ones(11), slice(0, 1000), parts=(11, 50))
    assert y.chunks == ((100,) * 10,)
    assert counted(y, tasks.multiply) == 10 and counted(y, tasks.cut) == 9 and counted(y, tasks.total) == 0
    cuts = [t for t in y.__dask_graph__().values() if getattr(t, "func", None) is tasks.cut]
    assert all(t.args[1] == (slice(90, 100),) for t in cuts)


def test_tasks_of_long_taps_follow_the_formula():
    """One task for each chunk of results and part of taps that overlap, one sum for every eight of them and their sums."""
    y = parallel.convolve(da.zeros(1000, chunks=100), np.ones(1000), slice(0, 1000), parts=(100, 100))
    assert counted(y, tasks.multiply) == 10 * 11 // 2
    assert counted(y, tasks.total) == 10 + 8 + 2 * 2  # a sum of sums each; sums of parts 0 to 7; 8 and 9 for two chunks


def test_memory_of_a_task():
    """What the formula of docs/many-machines.md says, and one block of results, which is computed before it is stored."""
    x, taps = 2**20, 2**16
    f4 = np.dtype("f4")
    product = layout.Product("convolve", f4, (layout.Axis(True, 2 * x, taps, 0, 2 * x, 1, taps, 2**18),), f4,
                             made_by.own())
    pieces, h = (np.ones(taps - 1, np.float32), np.ones(x, np.float32)), np.ones(taps, np.float32)
    tracemalloc.start()
    tasks.multiply(product, (0,), ((x, 2 * x),), ("x", (((0, taps - 1), (1, x)),)), h, *pieces)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The pieces, which are in memory before, are counted in the formula once more than here.
    assert peak < 4 * ((x + taps) + x + 2**18) + 2**16


TASK = """
import pathlib, pickle, re, sys

def memory(name):
    return int(re.search(name + r":\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024

task, values = pickle.load(open(sys.argv[1], "rb"))
from partita import signal
import numpy as np
signal.convolve(np.ones(9000, "f4"), np.ones(900, "f4"))  # what is made once
pathlib.Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins here
before = memory("VmRSS")
task({key: np.full(shape, 1, dtype) for key, (shape, dtype) in values.items()})
print(memory("VmHWM") - before)
"""


def used_bytes(y, folder):
    """What a process uses for the task of an array that needs most, by its resident memory."""
    graph = y.__dask_graph__()
    products = [task for task in graph.values() if getattr(task, "func", None) is tasks.multiply]
    largest = max(products, key=lambda task: sum(e - b for r in (task.args[0].reads(*task.args[1:3]), task.args[2])
                                                 for b, e in r))
    product, part, where, (_, grid) = largest.args[:4]
    shapes = itertools.product(*([n for _, n in pieces] for pieces in grid))
    taps = tuple(axis.taps(k) if axis.convolved else e - b if axis.m > 1 else 1
                 for axis, k, (b, e) in zip(product.axes, part, where))
    values = {reference.key: (shape, product.signal) for reference, shape in zip(largest.args[5:], shapes)}
    values[largest.args[4].key] = taps, product.dtype
    path = folder / "task"
    path.write_bytes(pickle.dumps((largest, values)))
    said = subprocess.run([sys.executable, "-c", TASK, str(path)], capture_output=True, text=True, check=True).stdout
    return int(said)


@pytest.mark.parametrize("shape, chunk, kernel, dtype, parts", [
    ((2**24,), 2**22, (2**16,), "f4", None), ((2**24,), 2**22, (50,), "f4", None), ((2**23,), 2**21, (2**17,), "c8", None),
    ((2**24,), 2**22, (2**14,), "f8", None), ((2**24,), 2**22, (2**16,), "i2", None),
    ((2**22,), 2**20, (2**19,), "f4", (2**17, 2**19)), ((4000012,), 1000003, (5000,), "f4", None),
    ((4096, 4096), 2048, (33, 33), "f4", None), ((4096, 3000), 1500, (3, 5), "f4", None),
    ((200, 300, 400), 200, (9, 9, 9), "f4", None)])
def test_bytes_of_tasks(shape, chunk, kernel, dtype, parts, tmp_path):
    """Not below what a process needs, but for 4 MB of pages that it had before. The upper limit is a hint that no factor is
    wrong: workspaces are reserved, but not all of them is used."""
    y = parallel.convolve(da.zeros(shape, chunks=chunk, dtype=dtype), np.zeros(kernel, dtype), parts=parts)
    used = used_bytes(y, tmp_path)
    assert used - 2**22 <= parallel.task_bytes(y) <= 4 * used + 2**22


def test_bytes_of_what_has_no_tasks():
    assert parallel.task_bytes(da.ones(3)) == 0
    with pytest.raises(TypeError, match="not an array of dask"):
        parallel.task_bytes(np.ones(3))


def test_graphs_of_100_000_tasks():
    """Built in seconds: the limit allows for a machine ten times slower than those of the documentation."""
    x = da.zeros(50_001 * 2**16, chunks=2**16)
    begin = time.perf_counter()
    y = parallel.convolve(x, np.ones(11, np.float32), "same")
    seconds = time.perf_counter() - begin
    assert counted(y, tasks.multiply) + counted(y, tasks.cut) >= 100_000
    assert seconds < 30


@pytest.mark.parametrize("call, error, text", [
    (lambda x: parallel.convolve(x, np.ones((2, 2))), ValueError, "dimensionality"),
    (lambda x: parallel.convolve(x, []), ValueError, "in2 has no samples"),
    (lambda x: parallel.convolve(x[x > 0], [1.0]), ValueError, "compute_chunk_sizes"),
    (lambda x: parallel.convolve(x, np.array(["a"])), TypeError, "in2: samples of str"),
    (lambda x: parallel.convolve(x, [1.0], "half"), ValueError, "mode = 'half'"),
    (lambda x: parallel.convolve(x, [1.0, 2.0], stride=0), ValueError, "stride = 0"),
    (lambda x: parallel.convolve(x, [1.0, 2.0], stride=(1, 2)), ValueError, "stride"),
    (lambda x: parallel.convolve(x, [1.0, 2.0], parts=5), ValueError, "parts = 5"),
    (lambda x: parallel.convolve(x, [1.0, 2.0], parts=(0, 5)), ValueError, "parts = 0"),
    (lambda x: parallel.convolve(x, [1.0, 2.0], axes=1), ValueError, "axes exceeds"),
    (lambda x: parallel.convolve(x, [1.0, 2.0], slice(5, 5)), ValueError, "no results"),
    (lambda x: parallel.correlate(x, [1.0, 2.0], lags=(3, 1)), ValueError, "lags"),
    (lambda x: parallel.correlate(x[None], [[1.0, 2.0]], normalise=True), ValueError, "one axis"),
    (lambda x: parallel.correlate(x, [1.0, 2.0], "half"), ValueError, "mode = 'half'"),
    (lambda x: parallel.convolve(da.zeros((2,) * 4), np.ones((2,) * 4)), UnsupportedError, "4 axes"),
    (lambda x: parallel.convolve(x.astype(np.int64) + 2**52, np.full(300, 2**52)).compute(), UnsupportedError, "2^53"),
])
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call(da.ones(1000, chunks=300))
    assert text in str(caught.value) and "\n" not in str(caught.value)


class Interrupted(Exception):
    pass


@pytest.fixture
def stored(rng, tmp_path):
    """A signal in a Zarr array."""
    zarr = pytest.importorskip("zarr")
    x = oracle.noise(rng, 3000, "f4")
    x[600:2000] = 0  # the results [700, 1400), a chunk, are 0
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=700)
    return tmp_path


def filtered(folder, taps=60):
    x = da.from_zarr(str(folder / "x.zarr"))
    return parallel.convolve(x, np.arange(taps, dtype=np.float32), parts=(40, 100))


def test_zarr_goes_on_where_it_was(stored):
    """Another process finds the same result: names of arrays depend on what they are made of. Chunks of zeros are there,
    too."""
    check_resumed(stored, stored / "y.zarr", lambda place: da.from_zarr(str(place)))


def run_program(mark, changes=None, names=None, **given):
    """The program of docs/many-machines.md in which `mark` occurs first. names: gets its names."""
    page = (ROOT / "docs/many-machines.md").read_text(encoding="utf-8")
    program = next(text for text in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if mark in text)
    for old, new in (changes or {}).items():
        assert old in program
        program = program.replace(old, new)
    names = {} if names is None else names
    names.update(given)
    exec(compile(program, "many-machines.md", "exec"), names)  # noqa: S102


def test_the_program_of_the_page(stored, monkeypatch):
    """docs/many-machines.md; run twice, as after a crash."""
    (stored / "x.zarr").rename(stored / "year.zarr")
    monkeypatch.chdir(stored)
    for _ in range(2):
        run_program("filtered.zarr", taps=np.ones(100, np.float32))
    assert da.from_zarr("filtered.zarr").shape == (3099,)


def test_the_object_store_of_the_page(stored, bucket, monkeypatch):
    """Run twice; the address is that of a store on this machine."""
    x = da.from_zarr(str(stored / "x.zarr"))
    importlib.import_module("s3fs").S3FileSystem(**bucket).mkdir("recordings")
    x.to_zarr("s3://recordings/year.zarr", storage_options=bucket)
    for _ in range(2):
        run_program("10.0.0.5", {"http://10.0.0.5:9000": bucket["endpoint_url"]}, taps=np.ones(100, np.float32))
    y = da.from_zarr("s3://recordings/filtered.zarr", storage_options=bucket)
    assert same_bits(y.compute(), parallel.convolve(x, np.ones(100, np.float32)).compute())


def test_ray_of_the_page(stored, monkeypatch):
    ray = pytest.importorskip("ray", exc_type=ImportError)
    pytest.importorskip("pandas", exc_type=ImportError)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.chdir(stored)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        y = parallel.convolve(da.ones(3000, chunks=700), np.ones(60), parts=(40, 100))
        run_program("ray_dask_get", y=y)
        assert same_bits(da.from_zarr("filtered.zarr").compute(scheduler="synchronous"), y.compute(scheduler="synchronous"))
    finally:
        ray.shutdown()


def test_jobs_of_the_page(tmp_path, monkeypatch):
    """What is submitted, to a program that keeps it."""
    pytest.importorskip("dask_jobqueue", exc_type=ImportError)
    submit = tmp_path / "sbatch"
    submit.write_text(f"#!/bin/sh\ncp \"$1\" {tmp_path}/job.$$\nmv {tmp_path}/job.$$ {tmp_path}/submitted.$$\n"
                      "echo Submitted batch job $$\n")
    submit.chmod(0o755)
    tmp_path.joinpath("scancel").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(tmp_path))
    names = {}
    options = {"scheduler_options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}}
    with dask.config.set({"jobqueue.slurm." + key.replace("_", "-"): value for key, value in options.items()}):
        run_program("SLURMCluster", names=names)
        try:
            end = time.monotonic() + 60
            while len(list(tmp_path.glob("submitted.*"))) < 4:
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            names["client"].close()
            names["cluster"].close()
    script = next(tmp_path.glob("submitted.*")).read_text()
    for line in ("export PARTITA_CPU=avx2", "#SBATCH -p main", "#SBATCH --cpus-per-task=8", "--nthreads 1", "--nworkers 8"):
        assert line in script


def test_zarr_of_another_result_is_refused(stored):
    parallel.to_zarr(filtered(stored), stored / "y.zarr")
    for other in (filtered(stored, 61), filtered(stored)[:100], filtered(stored).rechunk(50)):
        with pytest.raises(StateError, match=r"y\.zarr: holds another result"):
            parallel.to_zarr(other, stored / "y.zarr")
    with pytest.raises(ValueError, match="chunks along axis 0 differ in size"):
        parallel.to_zarr(filtered(stored).rechunk(((59, 3000),)), stored / "z.zarr")
    assert not pathlib.Path(stored / "z.zarr").exists()


def test_zarr_that_was_not_completely_created(stored):
    """What a run leaves that is killed within the creation of the array: nothing, or a part of its description."""
    for name, files in (("empty.zarr", []), ("part.zarr", ["zarr.0123.partial"])):
        stored.joinpath(name).mkdir()
        for file in files:
            stored.joinpath(name, file).write_text("{")
        y = filtered(stored)
        assert parallel.to_zarr(y, stored / name) == y.npartitions
        assert same_bits(da.from_zarr(str(stored / name)).compute(), y.compute())


def test_what_is_no_zarr_array_is_refused_and_kept(stored):
    folder, file, described = stored / "folder", stored / "file", stored / "described"
    folder.mkdir()
    described.mkdir()
    for path in (folder / "notes.txt", file, described / "zarr.json"):
        path.write_text("mine")
    for path in (folder, file, described):
        with pytest.raises(StateError, match=f"{path.name}: is no Zarr array; remove it"):
            parallel.to_zarr(filtered(stored), path)
    assert folder.joinpath("notes.txt").read_text() == file.read_text() == "mine"


@pytest.mark.parametrize("other", ["partita 0.0.9 with avx2", None])
def test_zarr_of_another_version_or_instruction_set_is_refused(stored, other):
    zarr = pytest.importorskip("zarr")
    parallel.to_zarr(filtered(stored), stored / "y.zarr")
    made = zarr.open_array(stored / "y.zarr", mode="r+")
    attributes = dict(made.attrs)
    del attributes["partita_made_by"]
    made.attrs.put(attributes | ({"partita_made_by": other} if other else {}))
    with pytest.raises(StateError, match=f"y.zarr: was made by {other or 'another version'}, this is partita [0-9.]+ with"):
        parallel.to_zarr(filtered(stored), stored / "y.zarr")


def lower(program):
    """The last line of a program that runs with the plain instruction set."""
    environment = os.environ | {"PARTITA_CPU": "c"}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env=environment).stdout.splitlines()[-1]


def test_the_instruction_set_is_known():
    assert lower("from partita._dask import made_by; print(made_by.own())") == f"partita {library_version()} with c"


def test_workers_of_another_instruction_set_are_refused(stored, monkeypatch):
    """The graph of this process in one whose instruction set is another, as in a worker; and the setting that allows it."""
    if made_by.own().endswith(" c"):
        pytest.skip("one processor level")
    program = f"""
import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import pathlib, pickle, dask, test_dask as here
dask.config.set(scheduler="synchronous")
try:
    pickle.loads(pathlib.Path({str(stored / 'graph')!r}).read_bytes()).compute()
    print(here.parallel.to_zarr(here.filtered(pathlib.Path({str(stored)!r})), {str(stored / 'y.zarr')!r}))
except here.StateError as error:
    print(error)
"""
    stored.joinpath("graph").write_bytes(pickle.dumps(filtered(stored)))
    said = lower(program)
    assert "with c, but the array was made for " + made_by.own() in said
    assert "PARTITA_CPU" in said and "dask.config.set({'partita.instruction-set': 'c'})" in said
    with dask.config.set({made_by.SETTING: "c"}):
        y = filtered(stored)
        assert y.name != dask.array.from_array(np.zeros(1)).name
        stored.joinpath("graph").write_bytes(pickle.dumps(y))
        with pytest.raises(StateError, match="but the array was made for .* with c"):
            y.compute(scheduler="synchronous")
        with pytest.raises(StateError, match="but the array was made for .* with c"):
            parallel.to_zarr(da.zeros(5, chunks=2), stored / "zeros.zarr")
    assert lower(program) == str(y.npartitions)
    with pytest.raises(StateError, match=r"was made by partita [0-9.]+ with c, this is"):
        parallel.to_zarr(filtered(stored), stored / "y.zarr")


def short(x):
    return x.map_blocks(lambda a: a[..., :-1], dtype=x.dtype)


def long(x):
    return x.map_blocks(lambda a: np.concatenate([a, a], -1), dtype=x.dtype)


def deep(x):
    return x.map_blocks(lambda a: a[None], dtype=x.dtype)


def wide(x):
    return x.map_blocks(lambda a: a.astype("f8"), dtype=x.dtype)


@pytest.mark.parametrize("change", [short, long, deep, wide])
@pytest.mark.parametrize("call", [
    lambda x, h: parallel.convolve(x, h),
    lambda x, h: parallel.convolve(x, h, parts=(2, 8)),
    lambda x, h: parallel.convolve(x, h, slice(0, 30), parts=(5, 10)),
    lambda x, h: parallel.correlate(x, h, normalise=True),
    lambda x, h: parallel.convolve(x[None], da.stack([h, h]), axes=1),
])
def test_chunks_that_are_not_what_they_are_said_to_be(call, change):
    """Of the signal and of the taps; whole chunks and those that are cut."""
    x, h = da.ones(30, chunks=10, dtype="f4"), da.ones(6, chunks=6, dtype="f4")
    for operands in ((change(x), h), (x, change(h))):
        with pytest.raises(ValueError, match=r"^chunk .*, its array says "):
            call(*operands).compute(scheduler="synchronous")
    with pytest.raises(ValueError, match=r"chunk \('lambda-\w+', 0\) has shape \(9,\) and type float32, its array says "
                                         r"\(10,\) and float32"):
        parallel.convolve(short(x), np.ones(2, "f4")).compute(scheduler="synchronous")


def test_wrong_chunks_are_not_stored(tmp_path):
    """One sample would fill its chunk."""
    pytest.importorskip("zarr")
    x = da.ones(30, chunks=10).map_blocks(lambda a: a[:1], dtype="f8")
    with pytest.raises(ValueError, match=r"^chunk .*\(1,\).*\(10,\)"):
        parallel.to_zarr(x, tmp_path / "y.zarr")


@pytest.fixture
def bucket(monkeypatch):
    """An object store on this machine: what a URL's file system takes."""
    server = pytest.importorskip("moto.server", exc_type=ImportError)
    pytest.importorskip("s3fs", exc_type=ImportError)
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    served = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    served.start()
    host, port = served.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}"}
    # Servers of one process share what they store.
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    importlib.import_module("s3fs").S3FileSystem(**options).mkdir("bucket")
    yield options
    served.stop()


def places(folder):
    """A target of each kind that needs no server, and what reads it again."""
    zarr = pytest.importorskip("zarr")
    stores = zarr.storage.MemoryStore(), zarr.storage.LocalStore(folder / "store.zarr")
    yield f"memory://{folder.name}/y.zarr", da.from_zarr
    yield f"file://{folder}/file.zarr", lambda _: da.from_zarr(str(folder / "file.zarr"))
    yield from ((store, da.from_zarr) for store in stores)
    yield zarr.storage.StorePath(zarr.storage.MemoryStore(), "deep/y"), lambda place: da.from_zarr(zarr.open_array(place))
    group = zarr.create_group(folder / "group.zarr")
    yield group.store_path / "y", lambda place: da.from_zarr(zarr.open_array(place))
    yield group.create_array("made", shape=(3059,), chunks=(700,), dtype="f4"), da.from_zarr


def check_resumed(folder, target, read, **options):
    """Interrupted after three chunks, whose samples are then not written again."""
    y, left = filtered(folder), [3]

    def failing(*arguments):
        if left[0] == 0:
            raise Interrupted
        left[0] -= 1
        return write(*arguments)

    write = tasks.write
    with dask.config.set(scheduler="synchronous"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tasks, "write", failing)
            with pytest.raises(Interrupted):
                parallel.to_zarr(y, target, **options)
        assert parallel.to_zarr(filtered(folder), target, **options) == y.npartitions - 3
        assert parallel.to_zarr(filtered(folder), target, **options) == 0
        with pytest.raises(StateError, match="holds another result"):
            parallel.to_zarr(filtered(folder, 59), target, **options)
        assert same_bits(read(target).compute(), y.compute())


def test_stores_and_urls(stored, monkeypatch):
    monkeypatch.chdir(stored)
    before = set(stored.iterdir())
    for target, read in places(stored):
        check_resumed(stored, target, read)
    assert {path.name for path in set(stored.iterdir()) - before} == {"file.zarr", "store.zarr", "group.zarr"}


def test_an_object_store(stored, bucket, monkeypatch):
    monkeypatch.chdir(stored)
    url = "s3://bucket/y.zarr"
    check_resumed(stored, url, lambda _: da.from_zarr(url, storage_options=bucket), storage_options=bucket)
    assert [path.name for path in stored.iterdir()] == ["x.zarr"]
    # Two processes, and a chunk that somebody has removed since this one listed the store.
    importlib.import_module("s3fs").S3FileSystem(**bucket, use_listings_cache=False).rm(f"{url}/c/2")
    with dask.config.set(scheduler="processes", num_workers=2):
        assert parallel.to_zarr(filtered(stored), url, storage_options=bucket) == 1


def test_results_that_workers_keep_to_themselves(stored):
    """Each process has a memory of its own."""
    zarr = pytest.importorskip("zarr")
    with dask.config.set(scheduler="processes", num_workers=2):
        for target, text in ((zarr.storage.MemoryStore(), "chunks that were computed are not there"),
                             (f"memory://{stored.name}/kept.zarr", "a worker finds no Zarr array there")):
            with pytest.raises(StateError, match=text):
                parallel.to_zarr(filtered(stored), target)


def test_targets_that_are_refused(stored):
    zarr = pytest.importorskip("zarr")
    y = filtered(stored)
    for target, error, text in (
            (zarr.create_group(stored / "g.zarr"), TypeError, "store_path / 'name'"),
            (5, TypeError, "target is a int: a path, a URL, or a store"),
            ("nowhere://y.zarr", ValueError, "nowhere"),
            (zarr.storage.LocalStore(stored / "r.zarr", read_only=True), ValueError, "read-only"),
            (zarr.create_array(stored / "n.zarr", shape=(9,), chunks=(3,), dtype="f4"), ValueError, "has shape (9,), chunks (3,)"),
            (zarr.create_array(stored / "m.zarr", data=np.ones(3059, "f4"), chunks=700), StateError, "holds another result"),
            ("/proc/y.zarr", OSError, "cannot make a Zarr array here")):
        with pytest.raises(error) as caught:
            parallel.to_zarr(y, target)
        assert text in str(caught.value)
    with pytest.raises(TypeError, match="from_array"):
        parallel.to_zarr(np.ones(3), stored / "y.zarr")
    with pytest.raises(TypeError, match="storage_options"):
        parallel.to_zarr(y, stored / "y.zarr", storage_options={"key": 1})
    assert not stored.joinpath("y.zarr").exists()
