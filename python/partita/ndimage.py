# SPDX-License-Identifier: MIT
"""
SciPy's linear filters of images, computed by Partita, and template matching as in scikit-image.

Names, arguments, types of results, exceptions and warnings are those of scipy.ndimage, which must be installed, so that

    from partita.ndimage import gaussian_filter

replaces the import of SciPy's function. All modes of boundaries, origins, axes and outputs of SciPy are computed.

As in SciPy sums are computed in f64 for samples of all types, each of its own, and results are rounded or truncated to the
type of the output. Integers are SciPy's: where rounding might decide which one a result becomes, SciPy's own loop adds. In
floating point a result differs from SciPy's by no more than the order of additions explains: m terms by at most m 2^-52 of
the sum of their magnitudes, and float32 by its last bit. Results between the passes of gaussian_filter, sobel, prewitt and
uniform_filter are not rounded to float32, as SciPy does. uniform_filter adds all samples of a window, so that errors of
large samples do not stay in the sums of later windows.

SciPy computes what it is faster for: small arrays (of floats up to about 200 x 200 samples, of integers up to about
600 x 600), windows of more than 24 samples in uniform_filter, of 5 for integers; and float16, long double, and weights that
are not finite. `patched` of partita.signal replaces these functions in scipy.ndimage, too.

A call needs memory for slabs of the array: 1 MiB, or three times the filter's size along the first axis. Names that this
module does not have, such as median_filter, are those of scipy.ndimage.
"""
from partita._ndimage.scipy_copy import functions
from partita._ndimage.template import match_template
from partita._signal.fallback import other_names

convolve, convolve1d, correlate, correlate1d, gaussian_filter, gaussian_filter1d, gaussian_gradient_magnitude, \
    gaussian_laplace, laplace, prewitt, sobel, uniform_filter, uniform_filter1d = functions().values()

__all__ = ["convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
           "gaussian_gradient_magnitude", "gaussian_laplace", "laplace", "match_template", "prewitt", "sobel",
           "uniform_filter", "uniform_filter1d"]
__getattr__ = other_names(__name__, "scipy.ndimage")
