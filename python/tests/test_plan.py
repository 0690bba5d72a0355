# SPDX-License-Identifier: MIT
import copy
import pickle
import re

import numpy as np
import pytest
import reference

import partita

LAYER = {"stride": 2, "dilation": 1, "pad": 1, "groups": 2}


def make_layer(dtype=np.float32, **options):
    generator = np.random.default_rng(1)
    x, w = generator.normal(size=(2, 4, 7, 6)).astype(dtype), generator.normal(size=(6, 2, 3, 3)).astype(dtype)
    problem = partita.Problem(op="correlate", signal=dtype, kernel=3, size=(7, 6), batch=2, in_channels=4,
                              out_channels=6, **LAYER)
    return partita.Plan(problem, **options), x, w


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forward_and_gradients_of_a_layer(dtype):
    plan, x, w = make_layer(dtype)
    expected = reference.correlate_layer(x, w, **LAYER)
    bias = np.arange(6, dtype=dtype)
    y = plan.forward(plan.filter(w, bias), x)
    assert y.dtype == dtype and y.shape == plan.output_shape
    np.testing.assert_allclose(y, expected + bias[:, None, None], rtol=0, atol=reference.bound(expected, 18, dtype))

    gy = np.random.default_rng(2).normal(size=y.shape).astype(dtype)
    gx, gw = reference.gradients(x, w, gy, **LAYER)
    filter = plan.filter(w)
    np.testing.assert_allclose(plan.backward_data(filter, gy), gx, rtol=0, atol=reference.bound(gx, 54, dtype))
    np.testing.assert_allclose(plan.backward_weight(x, gy), gw, rtol=0, atol=reference.bound(gw, gy.size / 6, dtype))
    gb = gy.sum(axis=(0, 2, 3), dtype=np.float64)
    np.testing.assert_allclose(plan.backward_bias(gy), gb, rtol=0, atol=reference.bound(gb, gy.size / 6, dtype))


@pytest.mark.parametrize("boundary, in_scipy", [("constant", "constant"), ("edge", "nearest"), ("reflect", "mirror"),
                                                ("symmetric", "reflect"), ("wrap", "wrap")])
def test_ghost_cells_are_those_of_numpy_and_scipy(boundary, in_scipy):
    ndimage = pytest.importorskip("scipy.ndimage")
    generator = np.random.default_rng(3)
    x, w = generator.normal(size=(20, 31)), generator.normal(size=(5, 7))
    constant = {"constant_values": -0.25} if boundary == "constant" else {}
    problem = partita.Problem(op="correlate", signal="f64", kernel=w.shape, size=x.shape, pad=(2, 3), boundary=boundary,
                              boundary_value=constant.get("constant_values", 0))
    plan = partita.Plan(problem, directions=("forward", "backward_data", "backward_weight"))
    y = plan.forward(plan.filter(w[None, None]), x[None, None])[0, 0]
    expected = ndimage.correlate(x, w, mode=in_scipy, cval=-0.25)
    np.testing.assert_allclose(y, expected, rtol=0, atol=reference.bound(expected, w.size, np.float64))
    padded = np.pad(x, [(2, 2), (3, 3)], boundary, **constant)
    gw = np.array([[np.vdot(padded[i:i + 20, j:j + 31], y) for j in range(7)] for i in range(5)])
    np.testing.assert_allclose(plan.backward_weight(x[None, None], y[None, None])[0, 0], gw, rtol=0,
                               atol=reference.bound(gw, y.size, np.float64))
    if not constant:  # then y is linear in x
        gx = plan.backward_data(plan.filter(w[None, None]), y[None, None])
        np.testing.assert_allclose(np.vdot(gx, x), np.vdot(y, y), rtol=1e-12)


def test_convolution_reads_taps_backwards_and_leaves_out_axes_of_length_one():
    plan = partita.Plan(partita.Problem(kernel=4, size=100, pad=3, signal="f64"))
    x, h = np.random.default_rng(3).normal(size=100), [1.0, -2.0, 0.5, 4.0]
    y = plan.forward(plan.filter(h), x)
    assert y.shape == (103,)
    np.testing.assert_allclose(y, np.convolve(x, h), rtol=0, atol=1e-13)
    assert plan.forward(plan.filter(h), x[None]).shape == (1, 103)
    assert plan.forward(plan.filter(h), x[None, None]).shape == (1, 1, 103)


def test_several_outputs_of_one_input_without_axis_of_channels():
    plan = partita.Plan(partita.Problem(kernel=1, size=5, out_channels=3, signal="f64"))
    y = plan.forward(plan.filter([[[1.0]], [[2.0]], [[3.0]]]), np.ones(5))
    np.testing.assert_array_equal(y, [[[1] * 5, [2] * 5, [3] * 5]])


def test_results_go_where_the_caller_says():
    plan, x, w = make_layer()
    filter = plan.filter(w)
    expected = plan.forward(filter, x)
    out = np.empty_like(expected)
    assert plan.forward(filter, x, out) is out
    np.testing.assert_array_equal(out, expected)


def test_a_workspace_and_single_use_taps_give_the_same_bits():
    plan, x, w = make_layer(threads=1)
    filter, workspace = plan.filter(w), plan.new_workspace()
    expected = plan.forward(filter, x)
    np.testing.assert_array_equal(plan.forward(filter, x, workspace=workspace), expected)
    np.testing.assert_array_equal(plan.backward_data(filter, expected, workspace=workspace),
                                  plan.backward_data(filter, expected))
    np.testing.assert_array_equal(plan.backward_weight(x, expected, workspace=workspace),
                                  plan.backward_weight(x, expected))
    np.testing.assert_allclose(plan.once(x, w), expected, rtol=0, atol=reference.bound(expected, 18, np.float32))


@pytest.mark.parametrize("given", (False, True), ids=("", "workspace"))
def test_results_are_added_to_what_an_array_holds(given):
    plan, x, w = make_layer(threads=1)
    filter, workspace = plan.filter(w), plan.new_workspace(accumulate=True) if given else None
    gy = plan.forward(filter, x)
    options = {"workspace": workspace}
    for call, options in ((lambda *out, **options: plan.forward(filter, x, *out, **options), options),
                          (lambda *out, **options: plan.backward_data(filter, gy, *out, **options), options),
                          (lambda *out, **options: plan.backward_weight(x, gy, *out, **options), options),
                          (lambda *out, **options: plan.backward_bias(gy, *out, **options), {})):
        result = call()
        before = np.random.default_rng(3).normal(size=result.shape).astype(np.float32)
        out = before.copy()
        assert call(out, accumulate=True, **options) is out
        np.testing.assert_array_equal(out, before + result)
        with pytest.raises(TypeError, match="accumulate: there is no out"):
            call(accumulate=True)
    with pytest.raises(ValueError, match="workspace has"):
        plan.forward(filter, x, gy, accumulate=True, workspace=plan.new_workspace())


def test_saved_transforms_replace_x():
    problem = partita.Problem(op="correlate", kernel=9, size=(40, 40), pad=4, in_channels=4, out_channels=4)
    plan = partita.Plan(problem, engine="cpu/tiles")
    generator = np.random.default_rng(4)
    x, w = (generator.normal(size=s).astype(np.float32) for s in (problem.input_shape, problem.taps_shape))
    saved = plan.saved()
    y = plan.forward(plan.filter(w), x, saved=saved)
    gw = plan.backward_weight(None, y, saved=saved, workspace=plan.new_workspace(saved))
    expected = plan.backward_weight(x, y)
    np.testing.assert_allclose(gw, expected, rtol=0, atol=reference.bound(expected, 1600, np.float32))
    with pytest.raises(partita.StateError):
        plan.backward_weight(None, y, saved=plan.saved())
    with pytest.raises(TypeError, match="x is None"):
        plan.backward_weight(None, y)
    assert partita.Plan(problem, engine="cpu/direct").saved() is None


def test_an_updated_filter_has_the_bits_of_a_new_one():
    plan, x, w = make_layer()
    bias = np.ones(6, np.float32)
    filter = plan.filter(np.zeros_like(w), bias * 5)
    filter.update(w, bias, workspace=plan.new_workspace())
    np.testing.assert_array_equal(plan.forward(filter, x), plan.forward(plan.filter(w, bias), x))
    filter.update(2 * w)
    np.testing.assert_array_equal(plan.forward(filter, x), plan.forward(plan.filter(2 * w, bias), x))


def test_paths_are_a_sparse_matrix():
    plan = partita.Plan(partita.Problem(kernel=8, size=50, pad=7, in_channels=2, out_channels=2, signal="f64"))
    x = np.random.default_rng(5).normal(size=(2, 50))
    y = plan.forward(plan.filter(paths=[(1, 0, 3, [2.0]), (0, 1, 0, [1.0, 1.0])]), x)
    expected = np.zeros((2, 57))
    expected[1, 3:53] = 2 * x[0]
    expected[0, :51] = np.convolve(x[1], [1, 1])
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-13)


def test_an_edited_filter_differs_in_some_paths():
    plan = partita.Plan(partita.Problem(kernel=40000, in_channels=2, out_channels=2, block=64))
    h = np.random.default_rng(6).normal(size=(2, 2, 40000)).astype(np.float32)
    edited = plan.filter(h).edit([(1, 0, 5, np.ones(3, np.float32)), (0, 1, 0, [])])
    h[1, 0], h[0, 1] = 0, 0
    h[1, 0, 5:8] = 1
    x = np.random.default_rng(7).normal(size=(2, 5000)).astype(np.float32)
    y = [partita.Stream(filter=f).process(x) for f in (edited, plan.filter(h))]
    np.testing.assert_allclose(*y, rtol=0, atol=reference.bound(y[1], 80000, np.float32))


def test_complex_signals_keep_real_taps():
    x = np.exp(1j * np.arange(64)).astype(np.complex64)
    plan = partita.Plan(partita.Problem(kernel=3, size=64, pad=2, signal=x.dtype, taps=np.float32))
    y = plan.forward(plan.filter([1, 0, 2]), x)
    assert y.dtype == np.complex64
    np.testing.assert_allclose(y, np.convolve(x, [1, 0, 2]), rtol=0, atol=1e-6)


def test_half_precision():
    plan = partita.Plan(partita.Problem(kernel=3, size=64, pad=2, signal=np.float16))
    y = plan.forward(plan.filter(np.array([1, 2, 3], np.float16)), np.ones(64, np.float16))
    assert y.dtype == np.float16 and list(y[:3]) == [1, 3, 6]


def test_what_a_plan_says():
    plan, _, _ = make_layer(engine="cpu/direct")
    assert plan.engine == "cpu/direct"
    assert plan.engines == dict.fromkeys(("forward", "backward_data", "backward_weight"), "cpu/direct")
    assert plan.explain().startswith("layer f32 correlate 3x3")
    assert "cpu/direct" in repr(plan)
    only = make_layer(directions=["backward_weight"])[0]
    assert list(only.engines) == ["backward_weight"]
    assert partita.Plan(partita.Problem(kernel=4), sample_rate=48000).load.worst > 0


def test_errors_reach_no_further_than_allowed():
    problem = partita.Problem(kernel=2000, size=100_000)
    assert partita.Plan(problem).engine != "cpu/direct"
    assert partita.Plan(problem, error_reach=1).engine in ("cpu/direct", "cpu/gemm")
    assert partita.Stream(np.ones(2000), error_reach=1).engine == "cpu/direct"
    with pytest.raises(ValueError, match="error_reach = 0: at least 1"):
        partita.Plan(problem, error_reach=0)


def test_explanations_have_values():
    found = partita.explain(10_000, 100, dtype="f32")
    assert found.engine == next(row.name for row in found.rows if row.chosen)
    assert {row.name for row in found.rows} >= {"cpu/direct", "cpu/overlap-save", "cpu/partitioned"}
    refused = next(row for row in found.rows if row.name == "cpu/partitioned")
    assert refused.reason and refused.seconds is None
    chosen = next(row for row in found.rows if row.chosen)
    assert 0 < chosen.seconds < 1 and chosen.bytes >= 0 and 0 < chosen.error < 1e-4
    stream = partita.explain(None, np.ones(5, np.float32), block=64)
    assert stream.load.frames == 64 and next(row for row in stream.rows if row.chosen).latency == 0
    assert {row.direction for row in partita.explain(make_layer()[0]).rows} == set(make_layer()[0].engines)
    assert partita.explain((30, 40), (5, 5), mode="same", dtype="f32").splitlines()[0].count("30x40") == 2


@pytest.mark.parametrize("engine", (None, "cpu/direct", "cpu/overlap-save"))
@pytest.mark.parametrize("shift", (0, 1, 64))
def test_results_do_not_overlap_operands(engine, shift):
    plan = partita.Plan(partita.Problem(kernel=9, size=1000, pad=4), engine=engine)
    filter, memory = plan.filter(np.ones(9)), np.ones(1064, np.float32)
    with pytest.raises(ValueError, match="y overlaps x; use separate arrays"):
        plan.forward(filter, memory[:1000], out=memory[shift:shift + 1000])
    assert (memory == 1).all()


def test_filters_are_pickled_by_what_they_were_made_from():
    plan = partita.Plan(partita.Problem(kernel=3, size=9, pad=1, in_channels=2, out_channels=2))
    taps, bias, x = (np.random.default_rng(3).normal(size=n).astype(np.float32) for n in ((2, 2, 3), 2, (1, 2, 9)))
    dense, sparse = plan.filter(taps, bias), plan.filter(paths=((k, c, 0, taps[k, c]) for k, c in ((0, 1), (1, 0))))
    expected = plan.forward(dense, x), plan.forward(sparse, x)
    taps[:], bias[:] = 0, 0  # the caller's arrays are not the filter's
    for filter, y in zip((dense, sparse), expected):
        for copied in (pickle.loads(pickle.dumps(filter)), copy.deepcopy(filter)):
            again = pickle.loads(pickle.dumps(copied))
            np.testing.assert_array_equal(again.plan.forward(again, x), y)
    dense.update(taps, bias)
    with pytest.raises(TypeError, match="edited or updated: make it by Plan.filter"):
        pickle.dumps(dense)


@pytest.mark.parametrize("kind", (list, np.float64, np.float32, np.int16))
def test_filters_keep_their_taps_in_the_type_of_the_plan(kind):
    plan = partita.Plan(partita.Problem(kernel=9, size=30, pad=8))
    taps = np.arange(9.0).tolist() if kind is list else np.arange(9, dtype=kind)
    for made in (plan.filter(taps), plan.filter(paths=[(0, 0, 0, taps)])):
        function, _ = made.recipe
        kept = function.args[0] if function.args[0] is not None else function.keywords["paths"][0][3]
        assert kept.dtype == np.float32 and not np.shares_memory(kept, taps)
        np.testing.assert_array_equal(kept, taps)


def test_plans_are_pickled_by_what_they_were_made_with():
    plan, x, w = make_layer(engine="cpu/direct", threads=1)
    copy = pickle.loads(pickle.dumps(plan))
    np.testing.assert_array_equal(copy.forward(copy.filter(w), x), plan.forward(plan.filter(w), x))


@pytest.mark.parametrize("fields, options, error, text", [
    ({"in_channels": 2}, {}, ValueError, r"problem.in_channels = 2 without out_channels"),
    ({"size": 10, "latency": 5}, {}, ValueError, "latency"),
    ({"size": 10}, {"engine": "cpu/nonsense"}, (ValueError, partita.UnsupportedError), "cpu/nonsense"),
    ({"size": 10}, {"engine": "cpu/partitioned"}, partita.UnsupportedError, "partitioned"),
    ({"size": 10}, {"sample_rate": 48000}, ValueError, "options.sample_rate = 48000: of streams only"),
    ({"size": 10}, {"threads": 0}, ValueError, "threads = 0: at least 1"),
    ({"size": 10}, {"threads": 5000}, ValueError, "options.threads = 5000: 0 to 4096"),
    ({"size": 10}, {"directions": ["sideways"]}, ValueError, "directions = 'sideways': one of 'forward'"),
    ({"size": 10, "signal": "cf32"}, {"directions": ["forward", "backward_data"]}, partita.UnsupportedError,
     "no gradients"),
    ({"size": 10}, {"device": "abacus"}, (ValueError, partita.DeviceError), "abacus"),
    ({"size": 10}, {"colour": "red"}, TypeError, "colour"),
])
def test_refused_plans_say_why(fields, options, error, text):
    with pytest.raises(error, match=re.escape(text)):
        partita.Plan(partita.Problem(kernel=3, **fields), **options)


def test_refused_calls_say_why():
    plan, x, w = make_layer()
    filter, y = plan.filter(w), np.empty(plan.output_shape, np.float32)
    with pytest.raises(ValueError, match=r"x has shape \(4, 7, 6\), not \(2, 4, 7, 6\)"):
        plan.forward(filter, x[0])
    with pytest.raises(TypeError, match="x has samples of float64, not f32"):
        plan.forward(filter, x.astype(float))
    with pytest.raises(ValueError, match="filter: of another plan"):
        make_layer()[0].forward(filter, x)
    with pytest.raises(ValueError, match=r"out has shape \(3,\)"):
        plan.forward(filter, x, np.empty(3, np.float32))
    with pytest.raises(ValueError, match="out is not contiguous"):
        plan.forward(filter, x, np.empty((*y.shape[:-1], 2 * y.shape[-1]), np.float32)[..., ::2])
    y.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        plan.forward(filter, x, y)
    with pytest.raises(TypeError, match="out has samples"):
        plan.forward(filter, x, np.empty(y.shape))
    with pytest.raises(ValueError, match="taps has shape"):
        plan.filter(w[:3])
    with pytest.raises(ValueError, match="workspace has 1 bytes"):
        plan.forward(filter, x, workspace=np.empty(1, np.uint8))
    with pytest.raises(partita.StateError, match="without one"):
        filter.update(w, np.ones(6, np.float32))
    with pytest.raises(ValueError, match="path 0: 9 -> 0"):
        plan_of_one_axis().filter(paths=[(0, 9, 0, [1.0])])
    with pytest.raises(TypeError, match="from taps or from paths"):
        plan.filter()


def plan_of_one_axis():
    return partita.Plan(partita.Problem(kernel=3, size=9))


def test_a_plan_of_a_stream_runs_in_a_stream_only():
    plan = partita.Plan(partita.Problem(kernel=3))
    filter = plan.filter([1, 2, 3])
    with pytest.raises(partita.StateError, match="partita.Stream"):
        plan.forward(filter, np.ones(3, np.float32))
    with pytest.raises(partita.StateError, match="swap"):
        filter.update([1, 2, 3])
    bounded = plan_of_one_axis()
    with pytest.raises(partita.StateError, match="not of the plan of a stream"):
        partita.Stream(filter=bounded.filter([1, 2, 3]))
    with pytest.raises(partita.StateError, match="load: of streams only"):
        bounded.load


def test_overlapping_arrays_and_readonly_inputs():
    plan = partita.Plan(partita.Problem(kernel=1, size=4, signal="f64"))
    x = np.arange(4.0)
    x.flags.writeable = False
    np.testing.assert_array_equal(plan.forward(plan.filter([2.0]), x), 2 * x)
