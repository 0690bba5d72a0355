# SPDX-License-Identifier: MIT
"""Long causal convolution of sequence models: filters about as long as the sequence, by transforms.

The operators are partita::long_conv and partita::long_conv_backward, whose gradients are calls of the two. They compute
some groups of channels at a time, whose samples and spectra stay in a cache. So a call takes little memory beyond its
results, and tensors of two bytes are not converted as a whole.
"""
import torch

from partita._problem import positive

from . import _calls, _ops
from ._calls import require, tensor
from ._decode import DecodeState
from ._sequence import _by_layers

_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_MAX_TAPS = 1 << 20
_CHUNK_BYTES = 1 << 22  # of the samples and spectra of taps at a time, unless one group has more


def long_conv(x, taps, D=None):
    """
    A filter of each channel, up to as long as the sequence, whose output depends on present and earlier samples.

    ``y[b, c, t] = D[c] * x[b, c, t] + sum(taps[c, j] * x[b, c, t - j] for j in range(t + 1))``, as ``fftconv`` of Hyena
    and H3 has it before its activation. All arguments have gradients, which can be differentiated again. Forward-mode
    derivatives and the transforms of torch.func are computed by `functional.conv1d`.

    Parameters
    ----------
    x : Tensor
        (batch, channels, frames), float32, float64, float16 or bfloat16.
    taps : Tensor
        (channels, taps), the first one for the present sample; or (out_channels, channels / groups, taps), which add up
        the channels of a group. 1 to 2**20 taps, of which those beyond the frames are not used.
    D : Tensor, optional
        (channels,): a factor of the present sample, where as many channels go out as come in.

    Returns
    -------
    Tensor
        (batch, out_channels, frames) of the type of x, computed in f32, or in f64 if x or the taps are.

    Raises
    ------
    ValueError
        A tensor has a shape or type that does not fit the others.

    Notes
    -----
    Beyond results a call takes memory for some channels at a time: some 16 MiB, or what one group needs.
    """
    if tensor("x", x).dim() != 3 or x.dtype not in _TYPES:
        raise ValueError(f"x: shape {list(x.shape)} of {x.dtype}; (batch, channels, frames) of real numbers")
    channels, paths = x.shape[1], taps.unsqueeze(1) if tensor("taps", taps).dim() == 2 else taps
    outputs, inputs, n_taps = paths.shape if paths.dim() == 3 else (0, 0, 0)
    groups = channels // max(inputs, 1)
    fits = groups and groups * inputs == channels and outputs and outputs % groups == 0 and 1 <= n_taps <= _MAX_TAPS
    if not fits or (taps.dim() == 2 and outputs != channels):
        raise ValueError(f"taps: shape {list(taps.shape)}; (channels, taps) or (out_channels, channels / groups, taps) for "
                         f"{channels} channels, of at most {_MAX_TAPS} taps")
    require("taps", taps, taps.shape, _TYPES, x.device)
    require("D", D, (channels if channels == outputs else 0,), _TYPES, x.device)
    if _ops.is_transformed():
        wide = x.to(torch.promote_types(x.dtype, taps.dtype))
        y = _by_layers(wide, paths[..., :x.shape[2]].flip(-1), None, False, None)[0]
        return (y if D is None else y + D.unsqueeze(1) * x).to(x.dtype)
    return _forward_op(x, paths, D)


class CausalLongConv(torch.nn.Module):
    """
    `long_conv` with taps and D as parameters; taps begin as those of torch.nn.Conv1d, D with normal numbers.

    Parameters
    ----------
    channels, n_taps : int
    groups : int, optional
        Each output adds up the channels of a group; by default every channel is a group.
    skip : bool, optional
        Whether there is a D.
    device, dtype
        Of the parameters.
    """

    def __init__(self, channels, n_taps, groups=None, skip=True, device=None, dtype=None):
        super().__init__()
        channels, n_taps = positive("channels", channels), positive("n_taps", n_taps)
        inputs, rest = divmod(channels, positive("groups", groups or channels))
        if rest or n_taps > _MAX_TAPS:
            raise ValueError(f"groups: {groups} do not divide {channels} channels" if rest else
                             f"n_taps = {n_taps}: at most {_MAX_TAPS}")
        shape = (channels, n_taps) if inputs == 1 else (channels, inputs, n_taps)
        bound = (inputs * n_taps) ** -0.5
        self.taps = torch.nn.Parameter(torch.empty(shape, device=device, dtype=dtype).uniform_(-bound, bound))
        self.D = torch.nn.Parameter(torch.randn(channels, device=device, dtype=dtype)) if skip else None

    def forward(self, x):
        return long_conv(x, self.taps, self.D)

    def decode(self, sequences=1, **options):
        """A `DecodeState` with its further options, of layers without groups, which has the taps and D of now."""
        if self.taps.dim() == 3:
            raise ValueError(f"taps: {self.taps.shape[1]} for each output; only layers without groups have decoders")
        taps = self.taps.detach().float().clone()
        if self.D is not None:
            taps[:, 0] += self.D.detach()
        return DecodeState(taps, sequences, **{"dtype": self.taps.dtype} | options)

    def extra_repr(self):
        return f"taps={tuple(self.taps.shape)}, skip={self.D is not None}"


class _Layer(_calls.Layer):
    op = "convolve"  # the first tap meets the present sample


def _skips(taps):
    """The first taps of the paths from a channel to itself: (groups, channels of a group)."""
    return taps.unflatten(0, (-1, taps.shape[1]))[..., 0].diagonal(dim1=1, dim2=2)


def _chunks(x, taps, D):
    """Some groups at a time: slices of the channels in and out, taps, and what else describes a layer."""
    batch, channels, frames = x.shape
    taps = taps[..., :frames]
    inputs, groups = taps.shape[1], channels // taps.shape[1]
    outputs = taps.shape[0] // groups
    dtype = torch.float64 if torch.float64 in (x.dtype, taps.dtype) else torch.float32
    step = _CHUNK_BYTES // (4 * max(1, batch * frames * (inputs + outputs) + 2 * taps[:outputs].numel()))
    for first in range(0, groups if x.numel() else 0, max(step, 1)):
        n = min(max(step, 1), groups - first)
        rows = slice(first * outputs, (first + n) * outputs)
        w = taps[rows].to(dtype, copy=D is not None).contiguous()
        if D is not None:
            _skips(w).add_(D[rows].view(-1, inputs))
        geometry = (1,), (taps.shape[2] - 1, 0), (1,), n, ""
        yield slice(first * inputs, (first + n) * inputs), rows, w, ((batch, n * inputs, frames), w.shape, geometry, 1)


def _run(direction, layer, w, result, *operands):
    """Computes a direction of a chunk. The result may be a part of a tensor, and of another type than w."""
    layer = _calls.find_layer(_Layer, direction, w.dtype, torch.contiguous_format, *layer)
    to = result if result.dtype == w.dtype and result.is_contiguous() else torch.empty(result.shape, dtype=w.dtype)
    if direction == "backward_weight":
        _calls.compute_weight(layer, *operands, to)
    else:
        _calls.compute(layer, *operands, w, None, 1, to)
    if to is not result:
        result.copy_(to)


def _compute(x, taps, D):
    y = x.new_empty(x.shape[0], taps.shape[0], x.shape[2])
    for inputs, outputs, w, layer in _chunks(x, taps, D):
        _run("forward", layer, w, y[:, outputs], x[:, inputs].to(w.dtype))
    return y


def _compute_backward(gy, x, taps, D, needed):
    gx, gtaps = gradients = _new_gradients(gy, x, taps, D, needed)
    gtaps[..., x.shape[2] if x.numel() else 0:] = 0
    for inputs, outputs, w, layer in _chunks(x, taps, D):
        g = gy[:, outputs].to(w.dtype).contiguous()
        if needed[0]:
            _run("backward_data", layer, w, gx[:, inputs], g)
        if needed[1]:
            _run("backward_weight", layer, w, gtaps[outputs, :, :w.shape[2]], x[:, inputs].to(w.dtype), g)
    return gradients


def _new_gradients(gy, x, taps, D, needed):
    """Tensors without elements for those that are not needed."""
    return tuple(torch.empty_like(t) if n else t.new_empty(0) for t, n in zip((x, taps), needed))


def _of_skip(D, gtaps):
    """The gradient of D, which is that of the taps it is added to."""
    return None if D is None or not gtaps.numel() else _skips(gtaps).flatten().to(D.dtype)


def _gradients(ctx, gy):
    x, taps, D = ctx.saved_tensors
    needed = [ctx.needs_input_grad[0], any(ctx.needs_input_grad[1:])]
    gx, gtaps = _backward_op(gy, x, taps, D, needed)
    return gx if needed[0] else None, gtaps if needed[1] else None, _of_skip(D, gtaps)


def _second_gradients(ctx, ggx, ggtaps):
    """Those of gy, x, taps and D: both gradients are linear in gy, one also in the taps and the other one in x."""
    gy, x, taps, D = ctx.saved_tensors
    ggx, ggtaps = (g if n else torch.zeros_like(t) for g, n, t in zip((ggx, ggtaps), *ctx.others, (x, taps)))
    gx, gtaps = _backward_op(gy, ggx, ggtaps, None, [True, True])
    return _forward_op(ggx, taps, D) + _forward_op(x, ggtaps, None), gx, gtaps, _of_skip(D, gtaps), None


_forward_op = _ops.operator("long_conv", "(Tensor x, Tensor taps, Tensor? D) -> Tensor", _compute,
                            lambda x, taps, D: x.new_empty(x.shape[0], taps.shape[0], x.shape[2]), backward=_gradients)
_backward_op = _ops.operator("long_conv_backward", "(Tensor gy, Tensor x, Tensor taps, Tensor? D, bool[] needed) -> "
                             "(Tensor, Tensor)", _compute_backward, _new_gradients, backward=_second_gradients)
