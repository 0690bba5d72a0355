# SPDX-License-Identifier: MIT
"""Complex layers. Forward of one axis is a problem of the library; all others are real layers of twice the channels:

    (y_re, y_im) = ((w_re, -w_im), (w_im, w_re)) (x_re, x_im)
"""
import torch

import partita

from . import _calls


def _channels(t):
    """Complex channels as pairs of real ones."""
    return torch.view_as_real(t.resolve_conj()).movedim(-1, 2).flatten(1, 2)


def _complex(t):
    """Undoes _channels."""
    return torch.view_as_complex(t.unflatten(1, (t.shape[1] // 2, 2)).movedim(2, -1).contiguous())


def _matrix(w):
    """The real taps [2 out][2 in] of complex taps."""
    re, im = w.resolve_conj().real, w.resolve_conj().imag
    rows = torch.stack((torch.stack((re, -im), 2), torch.stack((im, re), 2)), 1)  # [out][2][in][2]
    return rows.flatten(0, 1).flatten(1, 2)


def forward(x, w, b, layer):
    y = None
    if x.dim() == 3:
        try:  # the library conjugates the taps of a correlation
            y = _calls.forward(x, w.conj().resolve_conj(), None, layer, 1)
        except partita.UnsupportedError:
            pass  # no engine has this layer
    if y is None:
        y = _complex(_calls.forward(_channels(x), _matrix(w), None, layer, 1))
    return y if b is None else y.add_(b.reshape(-1, *(1,) * (y.dim() - 2)))


def backward_data(gy, w, x_shape, layer):
    # The transpose of a matrix of pairs is that of the conjugate.
    shape = [x_shape[0], 2 * x_shape[1], *x_shape[2:]]
    return _complex(_calls.backward_data(_channels(gy), _matrix(w.conj()), shape, layer, 1))


def backward_weight(x, gy, w_shape, layer):
    shape = [2 * w_shape[0], 2 * w_shape[1], *w_shape[2:]]
    gw = _calls.backward_weight(_channels(x), _channels(gy), shape, layer)
    gw = gw.unflatten(0, (w_shape[0], 2)).unflatten(2, (w_shape[1], 2))  # [out][2][in][2]
    return torch.complex(gw[:, 0, :, 0] - gw[:, 1, :, 1], gw[:, 0, :, 1] + gw[:, 1, :, 0])
