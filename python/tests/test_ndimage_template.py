# SPDX-License-Identifier: MIT
"""match_template against its definition in f64 and against scikit-image, whose tests are repeated in meaning."""
import itertools

import numpy as np
import pytest

pytest.importorskip("scipy.ndimage")
from partita import ndimage  # noqa: E402
from partita._ndimage import template as module  # noqa: E402


def coefficients(x, t):
    """Pearson's coefficient of each window in long double; 0 where one of both is constant."""
    x, t = x.astype(np.longdouble), t.astype(np.longdouble)
    t = t - t.mean()
    y = np.zeros([n - m + 1 for n, m in zip(x.shape, t.shape)])
    for at in itertools.product(*map(range, y.shape)):
        window = x[tuple(slice(i, i + m) for i, m in zip(at, t.shape))]
        window = window - window.mean()
        norms = np.sqrt((window * window).sum() * (t * t).sum())
        y[at] = (window * t).sum() / norms if norms > 0 else 0
    return y


@pytest.mark.parametrize("shape, size", [((300,), (17,)), ((200,), (151,)), ((40, 50), (7, 8)), ((30, 31), (30, 1)),
                                         ((90, 75), (70, 67)), ((12, 13, 14), (3, 4, 5)), ((9, 9), (9, 9))])
@pytest.mark.parametrize("offset", [0, 1000])
def test_definition(shape, size, offset):
    """The error of a coefficient is that of the correlation and of the variance, relative to the norm of the window."""
    rng = np.random.default_rng(1)
    x, t = rng.uniform(-1, 1, shape) + offset, rng.uniform(-1, 1, size) + 5
    expected = coefficients(x, t)
    # Norms of windows are above 1; subtracting the mean leaves rounding errors of 1000 u in each of the samples.
    bound = (21 * np.log2(2 * x.size) + 4 * sum(size) + 2 * offset) * 2.0**-53 * np.linalg.norm(x - x.mean())
    assert np.abs(ndimage.match_template(x, t) - expected).max() <= bound
    assert np.abs(ndimage.match_template(3 - 5 * x, t) + expected).max() <= 4 * bound


def test_dark_areas_beside_bright_ones():
    """Sums of windows do not depend on what is far away, as those of integral images do."""
    rng = np.random.default_rng(2)
    x = np.concatenate([1e4 * rng.uniform(-1, 1, (50, 60)), 1e-4 * rng.uniform(-1, 1, (50, 60))])
    t = x[70:78, 20:29].copy()
    y = ndimage.match_template(x, t)
    assert abs(y[70, 20] - 1) < 1e-4  # 21 log2(N) u |x| is 5e-8 of the norm of this window, which is 5e-4
    assert np.unravel_index(y.argmax(), y.shape) == (70, 20)


@pytest.mark.parametrize("n, m", [(1000, 64), (1000, 65), (1000, 999), (7, 7), (300, 1)])
def test_window_sums(n, m):
    x = np.random.default_rng(3).integers(-9, 10, (n, 3)).astype(float)
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(x, axis=0)])
    assert (module._window_sums(x, (m, 1)) == sums[m:] - sums[:-m]).all()


def test_constant_parts_are_zeros():
    x = np.full((40, 40), 0.1)
    x[20:, 20:] = np.random.default_rng(4).uniform(-1, 1, (20, 20))
    y = ndimage.match_template(x, np.random.default_rng(5).uniform(-1, 1, (5, 5)))
    assert (y[:16, :] == 0).all() and (y[:, :16] == 0).all() and (y[16:, 16:] != 0).any()
    assert (ndimage.match_template(x, np.ones((3, 3))) == 0).all()


def test_two_places():
    rng = np.random.default_rng(6)
    target = (np.tri(60) + np.tri(60)[::-1]).astype(np.float32)
    image = np.zeros((300, 300), np.float32)
    for at in (40, 180):
        image[at:at + 60, at:at + 60] = target
    image += rng.normal(0, 2, image.shape)
    y = ndimage.match_template(image, target)
    assert y.dtype == np.float32
    first = np.unravel_index(y.argmax(), y.shape)
    y[first[0] - 5:first[0] + 6, first[1] - 5:first[1] + 6] = 0
    second = np.unravel_index(y.argmax(), y.shape)
    assert {first, second} == {(40, 40), (180, 180)}


def test_opposite_squares():
    image, template = np.zeros((20, 20)), np.zeros((7, 7))
    template[1:6, 1:6] = 1
    image[2:7, 3:8], image[12:17, 11:16] = 10, -10
    y = ndimage.match_template(image, template)
    assert y[1, 2] == y.max() == pytest.approx(1) and y[11, 10] == y.min() == pytest.approx(-1)


def test_padded_with_the_mean():
    template = 0.5 * (np.add.outer(abs(np.arange(-2, 3)), abs(np.arange(-2, 3))) <= 2)
    image = np.full((9, 19), 0.5)
    image[2:7, :3] -= template[:, -3:]
    image[2:7, 4:9] += template
    image[2:7, -9:-4] -= template
    image[2:7, -3:] += template[:, :3]
    y = ndimage.match_template(image, template, pad_input=True, constant_values=image.mean())
    order = np.argsort(y, axis=None)
    assert list(np.unravel_index(order[:2], y.shape)[1]) == [12, 0]
    assert list(np.unravel_index(order[-2:], y.shape)[1]) == [18, 6]


def test_volume():
    rng = np.random.default_rng(7)
    template, image = rng.uniform(0, 1, (3, 3, 3)), np.zeros((12, 12, 12))
    image[3:6, 5:8, 4:7] = template
    y = ndimage.match_template(image, template)
    assert y.shape == (10, 10, 10) and np.unravel_index(y.argmax(), y.shape) == (3, 5, 4)
    y = ndimage.match_template(image, template, pad_input=True)
    assert y.shape == image.shape and np.unravel_index(y.argmax(), y.shape) == (4, 6, 5)


@pytest.mark.parametrize("image, template, text", [
    ((5, 5), (3, 3, 3), "axes"), ((3, 3), (5, 5), "larger"), ((2, 2, 2, 2), (1, 1, 1, 1), "three"), ((4,), (0,), "no samples")])
def test_refused(image, template, text):
    with pytest.raises(ValueError, match=text):
        ndimage.match_template(np.ones(image), np.ones(template))
    with pytest.raises(ValueError, match="real"):
        ndimage.match_template(np.ones(5) * 1j, np.ones(3))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap", "linear_ramp", "mean"])
@pytest.mark.parametrize("padded", [False, True])
def test_scikit_image(mode, padded):
    feature = pytest.importorskip("skimage.feature")
    rng = np.random.default_rng(8)
    for shape, size in (((40, 31), (6, 7)), ((15, 14, 13), (5, 4, 3)), ((9, 12), (9, 1))):
        for dtype in (np.float64, np.uint8, np.float32):
            x, t = (rng.uniform(0, 200, s).astype(dtype) for s in (shape, size))
            y, expected = (f(x, t, padded, mode) for f in (ndimage.match_template, feature.match_template))
            assert y.dtype == expected.dtype and y.shape == expected.shape
            assert np.abs(y - expected).max() < (1e-8 if dtype != np.float32 else 2e-2)  # whose integral images are of f32
