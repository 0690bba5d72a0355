# SPDX-License-Identifier: MIT
"""match_template: Pearson's coefficient of a template and each part of an image."""
import math

import numpy as np

from partita._ndimage import slabs
from partita._signal import general
from partita._signal.axes import along

_UNIT = 2.0**-53


_ADDED = 32  # samples of a window along an axis that are added one by one


def _window_sums(x, sizes):
    """Sums of all windows.

    Unlike those of an integral image they have rounding errors of the samples in the window only: along an axis at most 32
    samples are added one by one, longer windows are two halves and, if they are odd, a sample.
    """
    passes = []
    for axis, m in enumerate(sizes):
        if m > _ADDED:
            x = _sum_halves(x, axis, m)
        elif m > 1:
            passes.append(_ones(x.ndim, axis, m))
    return _run(x, passes) if passes else x


def _ones(ndim, axis, m):
    return slabs.Pass(np.ones(along(axis, ndim, m, 1)), (0,) * ndim, slabs.CONSTANT, 0.0, None)


def _run(x, passes):
    y = np.empty(x.shape)
    slabs.run(x, passes, y)
    return y[tuple(slice(n - sum(p.weights.shape[a] - 1 for p in passes)) for a, n in enumerate(x.shape))]


def _sum_halves(x, axis, m):
    if m <= _ADDED:
        return _run(x, [_ones(x.ndim, axis, m)])
    n = x.shape[axis] - m + 1

    def part(array, first):
        return array[(slice(None),) * axis + (slice(first, first + n),)]

    halves = _sum_halves(x, axis, m // 2)
    y = part(halves, 0) + part(halves, m // 2)
    if m % 2:
        y += part(x, m - 1)
    return y


def match_template(image, template, pad_input=False, mode="constant", constant_values=0):
    """
    Find a template in an image of one to three dimensions, at any brightness and contrast.

    As `skimage.feature.match_template`: each result is Pearson's coefficient of correlation of the template and of the
    part of the image under it.

    Parameters
    ----------
    image : array_like
        The image, real.
    template : array_like
        The template, with as many axes, of at most the size of the image along each.
    pad_input : bool, optional
        Whether the image is padded so that there is a result for each of its samples, which then is where the middle
        of the template lies: ``template.shape[k] // 2``. Otherwise results are where its first sample lies.
    mode, constant_values : optional
        How `numpy.pad` pads the image.

    Returns
    -------
    ndarray
        Numbers between -1 and 1, but for rounding: of float32 for images of float32 and float16, else of float64.
        Of the image's shape, or, without padding, ``image.shape[k] - template.shape[k] + 1`` along each axis. They are
        0 where the template or the part of the image is constant.

    Raises
    ------
    ValueError
        If the shapes do not suit, or samples are not real.

    Notes
    -----
    Sums are computed in float64: a correlation with the template without its mean, and sums of the samples and of their
    squares in windows (J. P. Lewis, "Fast normalized cross-correlation", 1995), from which the mean of the image is
    subtracted before. Where the norm of a part of the image is below the rounding error of these sums, the result is 0;
    scikit-image has a fixed limit there, 2.2e-16 or 1.2e-7 for the product of both norms, and sums that depend on the
    whole image.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import ndimage
    >>> image = np.zeros((6, 6))
    >>> image[1, 1], image[4, 4] = 1, -1
    >>> ndimage.match_template(image, image[:3, :3]).round(3) + 0.0
    array([[ 1.   , -0.125,  0.   ,  0.   ],
           [-0.125, -0.125,  0.   ,  0.   ],
           [ 0.   ,  0.   ,  0.125,  0.125],
           [ 0.   ,  0.   ,  0.125, -1.   ]])
    """
    x, t = np.asarray(image), np.asarray(template)
    if not 1 <= x.ndim <= general.MAX_AXES or t.ndim != x.ndim:
        raise ValueError(f"image has {x.ndim} axes and template {t.ndim}: both need the same number, one to three")
    if x.dtype.kind not in "biuf" or t.dtype.kind not in "biuf":
        raise ValueError(f"image has samples of {x.dtype} and template of {t.dtype}: real numbers are needed")
    if any(n < m for n, m in zip(x.shape, t.shape)):
        raise ValueError(f"Image must be larger than template: {x.shape} and {t.shape}")
    if t.size == 0:
        raise ValueError(f"template has shape {t.shape}: no samples")
    dtype = np.float32 if x.dtype in (np.float16, np.float32) else np.float64
    x, t = (v.astype(np.float64) if v.dtype.kind in "biu" else v for v in (x, t))
    if pad_input:
        values = {"constant_values": constant_values} if mode == "constant" else {}
        padded = np.pad(x, [(m, m) for m in t.shape], mode, **values)
        x = padded[tuple(slice(m - m // 2, m - m // 2 + n + m - 1) for n, m in zip(x.shape, t.shape))]
    x, t = (np.subtract(v, v.mean(dtype=np.float64), dtype=np.float64) for v in (x, t))
    return _coefficients(x, t).astype(dtype, copy=False)


def _coefficients(x, t):
    """The coefficients of all windows; both operands have a mean of 0."""
    spans = {a: (m - 1, n - m + 1, 1) for a, (n, m) in enumerate(zip(x.shape, t.shape)) if m > 1}
    y = general.convolve(x, t, spans, "correlate")
    norm = math.sqrt(float((t * t).sum()))
    if norm == 0:
        return np.zeros(y.shape)
    # A sum of m terms errs by at most m u of the sum of their magnitudes, the transforms of the correlation by
    # 21 log2(N) u of the product of both norms (Higham, Accuracy and Stability of Numerical Algorithms, 4.2 and 24.2).
    error = 21 * math.log2(2 * x.size) * _UNIT * float(np.linalg.norm(x.reshape(-1)))
    squares, sums = _window_sums(x * x, t.shape), _window_sums(x, t.shape)
    rows = max(1, slabs.SLAB // y[0].size)
    for first in range(0, len(y), rows):  # whose intermediate results fit into a cache
        part = slice(first, first + rows)
        least = np.maximum(squares[part] * (4 * (sum(t.shape) + 2) * _UNIT), error * error)
        variations = squares[part] - sums[part] * sums[part] / t.size
        with np.errstate(invalid="ignore", divide="ignore"):
            y[part] /= np.sqrt(np.maximum(variations, least)) * norm
            y[part][variations <= least] = 0
    return y
