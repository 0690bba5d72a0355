# SPDX-License-Identifier: MIT
"""Transforms of signals that serve many convolutions and correlations."""
from partita import _arrays, _objects, _options
from partita._errors import check
from partita._partita import ffi, lib
from partita._problem import choice, limits, natural

_MODES = {"full": lib.PARTITA_FULL, "same": lib.PARTITA_SAME, "valid": lib.PARTITA_VALID}


def slice_to_c(mode="full", lags=None):
    """A struct partita_slice: a mode, or a slice of the full result, [first, last); of correlations also the lags [first,
    last) instead of a mode."""
    if lags is None and isinstance(mode, str):
        return ffi.new("struct partita_slice *", {"mode": choice("mode", mode, _MODES)})
    first, last = limits(mode, "mode") if lags is None else limits(lags, "lags")
    return ffi.new("struct partita_slice *", {"mode": lib.PARTITA_RANGE, "first": first, "last": last})


class Spectrum:
    """
    The transform of a signal, computed once, for any number of convolutions and correlations.

    Parameters
    ----------
    x : array_like
        The signal, one axis; copied. Lists, and NumPy's integers, become float64.
    block : int, optional
        Samples of a block: spectra can be combined only if theirs are equal. 0: chosen for the signal.
    device : str, optional
        One of the names of `devices`.
    threads : int, optional
        Threads of its calls; see `set_threads`.

    Examples
    --------
    >>> import numpy, partita
    >>> capture = partita.Spectrum(numpy.eye(1, 1000, 700)[0])
    >>> template = numpy.ones(8)
    >>> int(capture.correlate(template, lags=(650, 750)).argmax()) + 650
    693
    """

    def __init__(self, x, block=0, *, device="cpu", threads=None):
        if getattr(getattr(x, "dtype", None), "kind", "") in ("b", "i", "u"):  # an array of NumPy
            x = x.astype(float)
        if not hasattr(x, "dtype") and not hasattr(x, "__dlpack__"):
            x = _arrays.prepare(x, "f64")
        self._type = _arrays.type_name(x.dtype)
        x = _arrays.prepare(x, self._type)
        if len(x.shape) != 1:
            raise ValueError(f"x has shape {tuple(x.shape)}, not one axis")
        if x.shape[0] == 0:
            raise ValueError("x is empty")
        self._like = x[:0]  # for the kind of results, not the samples
        threads = _options.get_threads() if threads is None else threads
        self._settings = {"device": device, "threads": threads}
        options, keep = _options.options_to_c(**self._settings)
        self._c = _objects.create("spectrum", lib.partita_spectrum_create, _arrays.TYPES[self._type][0],
                                  _arrays.address(x), x.shape[0], natural("block", block), options)
        del keep
        self._owner = _objects.Owner("spectrum", self._c)

    __reduce__ = _objects.not_pickled("a spectrum", "pickle the signal that it was made from")

    def __repr__(self):
        return f"<partita.Spectrum, {len(self)} samples of {self._type}, blocks of {self.block}, {self.nbytes} bytes>"

    def __len__(self):
        """Samples of the signal."""
        return lib.partita_spectrum_size(self._c)

    @property
    def block(self):
        """Samples of a block."""
        return lib.partita_spectrum_block(self._c)

    @property
    def nbytes(self):
        """Bytes that the spectrum holds."""
        return lib.partita_spectrum_bytes(self._c)

    def convolve(self, h, mode="full", out=None):
        """
        The convolution of the signal with h.

        Parameters
        ----------
        h : Spectrum or array_like
            A spectrum with the same block, or a signal of the same type.
        mode : {"full", "same", "valid"} or slice, optional
            What to compute: as `scipy.signal.convolve`, or a slice of the full result.
        out : numpy.ndarray or torch.Tensor, optional
            Where to write it.

        Returns
        -------
        array
        """
        return self._combine(lib.partita_spectrum_convolve, lib.PARTITA_CONVOLVE, h, slice_to_c(mode), out)

    def correlate(self, h, mode="full", lags=None, out=None):
        """
        The correlation of the signal with the template h, conjugated.

        Parameters
        ----------
        h : Spectrum or array_like
            A spectrum with the same block, or a signal of the same type.
        mode : {"full", "same", "valid"}, optional
            As `scipy.signal.correlate`.
        lags : tuple of int or range, optional
            Only the lags from the first to before the last; `mode` is then not used.
        out : numpy.ndarray or torch.Tensor, optional
            Where to write it.

        Returns
        -------
        array
        """
        return self._combine(lib.partita_spectrum_correlate, lib.PARTITA_CORRELATE, h, slice_to_c(mode, lags), out)

    def _combine(self, function, op, h, part, out):
        if not isinstance(h, Spectrum):
            h = Spectrum(_arrays.prepare(h, self._type, "h"), self.block, **self._settings)
        shape = (lib.partita_slice_size(op, len(self), len(h), part),)
        if out is None:
            out = _arrays.empty(shape, self._type, self._like)
        else:
            _arrays.prepare_out(out, self._type, shape)
        check(function(_arrays.address(out, True), self._c, h._c, part))
        return out
