# SPDX-License-Identifier: MIT
"""Short causal convolution of sequence models, with the arguments of the package causal-conv1d and of vLLM's operators.

The operators are partita::causal_conv1d with its gradients, and partita::causal_conv1d_states, which changes states in
place. Optional results that are not wanted are tensors without elements.
"""
import torch
import torch.nn.functional as F

from partita._errors import check, log
from partita._partita import ffi, lib
from partita._problem import choice

from . import _ops, functional
from ._calls import address, require, tensor

_TYPES = {torch.float32: lib.PARTITA_F32, torch.float16: lib.PARTITA_F16, torch.bfloat16: lib.PARTITA_BF16}
_updates = _ops.Memo(64)  # calls of causal_conv1d_update, by their arguments
_ACTIVATIONS = {None: False, False: False, "silu": True, "swish": True, True: True}
_count = torch.autograd.graph.increment_version  # so that PyTorch refuses gradients for which old states were kept


def causal_conv1d(x, weight, bias=None, activation=None, initial_states=None, return_final_states=False, seq_idx=None,
                  final_states_out=None, *, query_start_loc=None, cache_indices=None, has_initial_state=None,
                  conv_states=None, pad_slot_id=-1):
    """
    A filter of its own for each channel, whose output depends on the present sample and the ones before it.

    Samples are computed in f32 and rounded once. The bits of an output do not depend on the strides of the tensors, on
    the number of threads, or on how a sequence is cut into calls of this function and of `causal_conv1d_update`.
    x, weight and bias have gradients, and initial_states. Gradients of gradients, float64, and the transforms of
    torch.func such as vmap are computed by `functional.conv1d`, without seq_idx and query_start_loc.

    Parameters
    ----------
    x : Tensor
        (batch, channels, frames), float32, float16 or bfloat16. It is read as it is; fast if the stride of frames or of
        channels is 1.
    weight : Tensor
        (channels, taps), 1 to 256 taps; the last one meets the present sample. Its type may differ from that of x.
    bias : Tensor, optional
        (channels,)
    activation : None, "silu" or "swish"
    initial_states : Tensor, optional
        (batch, channels, taps - 1): the samples before x, the oldest first; zeros by default.
    return_final_states : bool, optional
        Also return the last taps - 1 samples, of x and what is before it.
    seq_idx : Tensor, optional
        (batch, frames), integers. Frames of equal numbers that follow each other are one sequence, which begins after
        zeros; where the number is negative the output is 0. Excludes states.
    final_states_out : Tensor, optional
        Where final states are written.
    query_start_loc : Tensor, optional
        (sequences + 1,) integers from 0 on: x has the axes (channels, frames) and holds one sequence after the other,
        without padding. The states of such a call are the next three; with them it has no gradients.
    conv_states : Tensor, optional
        (slots, channels, at least taps - 1): read where has_initial_state says so, and changed in place.
    cache_indices : Tensor, optional
        (sequences,) integers: the slot of each sequence; pad_slot_id marks sequences that are not computed: their
        output is 0. By default sequence i has slot i.
    has_initial_state : Tensor, optional
        (sequences,) bool; all true by default.
    pad_slot_id : int, optional

    Returns
    -------
    Tensor
        Of the shape and type of x; with return_final_states a pair, the second one of the shape of initial_states.

    Raises
    ------
    ValueError
        A tensor has another shape or type, or an index is out of range or twice. No state has changed then.

    Notes
    -----
    Arguments as in causal-conv1d (Gu and Dao 2023) and in vLLM. Without gradients no memory is taken but for results.
    """
    transformed = _ops.is_transformed()
    by_layers = seq_idx is query_start_loc is None and (tensor("x", x).dtype == torch.float64 or transformed)
    if transformed and not by_layers:
        raise NotImplementedError("seq_idx, query_start_loc: not with torch.func or forward-mode derivatives")
    channels = 1 if query_start_loc is None else 0
    weight, bias, silu = _parameters(x, (channels + 2,), channels, weight, bias, activation, by_layers)
    if query_start_loc is not None:
        if initial_states is not None or return_final_states or seq_idx is not None or final_states_out is not None:
            raise ValueError("query_start_loc: states are conv_states, and there is no seq_idx")
        n = query_start_loc.shape[0] - 1 if tensor("query_start_loc", query_start_loc).dim() == 1 else -1
        starts = _list("query_start_loc", query_start_loc, (max(n, 1) + 1,), x.device)
        if conv_states is cache_indices is has_initial_state is None and _ops.is_recorded(x, weight, bias):
            numbers = _numbers(starts, x.shape[-1])
            return causal_conv1d(x.unsqueeze(0), weight, bias, activation, seq_idx=numbers).squeeze(0)
        has_initial = _list("has_initial_state", has_initial_state, (n,), x.device, (torch.bool,))
        if conv_states is None and has_initial is not None:
            raise ValueError("has_initial_state: needs conv_states")
        indices = _slots(x, 0, weight, conv_states, cache_indices, n)
        states = x.new_empty(0) if conv_states is None else conv_states
        return _states(x.unsqueeze(0), states, weight, bias, indices, None, starts, has_initial, silu,
                       pad_slot_id).squeeze(0)
    if conv_states is not None or cache_indices is not None or has_initial_state is not None:
        raise ValueError("conv_states, cache_indices, has_initial_state: need query_start_loc")
    final = return_final_states or final_states_out is not None
    shape = (x.shape[0], x.shape[1], weight.shape[1] - 1)
    require("initial_states", initial_states, shape, (x.dtype,), x.device)
    require("final_states_out", final_states_out, shape, (x.dtype,), x.device)
    seq_idx = _list("seq_idx", seq_idx, (x.shape[0], x.shape[2]), x.device)
    if seq_idx is not None and (initial_states is not None or final):
        raise ValueError("seq_idx: sequences within x have no states; leave out initial_states and final states")
    if by_layers:
        y, states = _by_layers(x, weight, bias, silu, initial_states)
    else:
        plain = _ops.is_plain_call(x, weight, bias, initial_states)
        y, states = (_compute if plain else causal_op)(x, weight, bias, initial_states, seq_idx, silu, final)
    if final_states_out is not None:
        states = final_states_out.copy_(states)
    return (y, states) if return_final_states else y


def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None, cache_seqlens=None, conv_state_indices=None,
                         *, cache_indices=None, pad_slot_id=-1):
    """
    Continues sequences by a few frames: `causal_conv1d` with states that are changed in place.

    Parameters
    ----------
    x : Tensor
        (batch, channels) or (batch, channels, frames), as in `causal_conv1d`.
    conv_state : Tensor
        (slots, channels, at least taps - 1): the samples before x, the oldest first, of the type of x.
    weight, bias, activation
        As in `causal_conv1d`.
    cache_seqlens : Tensor, optional
        (batch,) integers: states are rings, of which so many frames have been written; x is written after them.
        By default states are shifted.
    conv_state_indices, cache_indices : Tensor, optional
        (batch,) integers, two names of one argument: the slot of each sequence; pad_slot_id marks sequences that are
        not computed: their output is 0. By default sequence i has slot i.
    pad_slot_id : int, optional

    Returns
    -------
    Tensor
        Of the shape and type of x, with the bits that `causal_conv1d` has for the whole sequence.

    Raises
    ------
    ValueError
        As in `causal_conv1d`. No state has changed then.

    Notes
    -----
    The call takes no memory but for its result, and has no gradients.
    """
    if cache_indices is not None and conv_state_indices is not None:
        raise ValueError("conv_state_indices, cache_indices: give one of them")
    indices = conv_state_indices if cache_indices is None else cache_indices
    given = x, conv_state, weight, bias, indices, cache_seqlens
    known = None if torch.compiler.is_dynamo_compiling() else _updates.find(*given, activation, pad_slot_id)
    if known is not None:
        y = torch.empty_like(x)
        check(lib.py_causal_continue(known, y.data_ptr(), x.data_ptr(), conv_state.data_ptr(), weight.data_ptr(),
                                     *(0 if t is None else t.data_ptr() for t in given[3:])))
        _count(conv_state)
        return y
    weight, bias, silu = _parameters(x, (2, 3), 1, weight, bias, activation)
    indices = _slots(x, 1, weight, tensor("conv_state", conv_state), indices, x.shape[0])
    seqlens = _list("cache_seqlens", cache_seqlens, x.shape[:1], x.device)
    arguments = x, conv_state, weight, bias, indices, seqlens, None, None, silu, pad_slot_id
    as_given = _ops.is_plain_call(*given) and all(a is b for a, b in zip(given, arguments)) and pad_slot_id == -1
    if as_given and x.numel() and all(t is None or t.is_contiguous() for t in (weight, bias)):
        y, call = _run_states(*arguments)
        _updates.keep(call, *given, activation, pad_slot_id)
        return y
    return _states(*arguments)


# Arguments. `channels` is the axis of channels of x.

def _parameters(x, axes, channels, weight, bias, activation, by_layers=False):
    """Taps and bias of one type, and whether SiLU follows."""
    types = (*_TYPES, torch.float64) if by_layers else tuple(_TYPES)
    if tensor("x", x).dim() not in axes:
        raise ValueError(f"x: {x.dim()} axes; {' or '.join(map(str, axes))}")
    require("x", x, x.shape, types, x.device)
    if tensor("weight", weight).dim() != 2 or not 1 <= weight.shape[1] <= 256:
        raise ValueError(f"weight: shape {list(weight.shape)}; (channels, taps) with 1 to 256 taps")
    require("weight", weight, (x.shape[channels], weight.shape[1]), types, x.device)
    require("bias", bias, (x.shape[channels],), types, x.device)
    if bias is not None and bias.dtype != weight.dtype:
        weight, bias = weight.float(), bias.float()
    return weight, bias, choice("activation", activation, _ACTIVATIONS)


def _list(name, t, shape, device, dtypes=(torch.int32, torch.int64)):
    """A tensor as the library reads it: contiguous, in the first type."""
    require(name, t, shape, dtypes, device)
    return None if t is None else t.to(dtypes[0]).contiguous()


def _slots(x, channels, weight, states, indices, n):
    """Slots of n sequences of states that fit."""
    indices = _list("cache_indices", indices, (n,), x.device)
    if states is not None:
        rows, past = x.shape[channels], weight.shape[1] - 1
        if tensor("conv_states", states).dim() != 3 or states.shape[1] != rows or states.shape[2] < past:
            raise ValueError(f"states: shape {list(states.shape)}; (slots, {rows}, at least {past})")
        if indices is None and states.shape[0] < n:
            raise ValueError(f"states: {states.shape[0]} slots for {n} sequences; give indices")
        require("states", states, states.shape, (x.dtype,), x.device)
    return indices


def _numbers(starts, frames):
    """seq_idx of packed sequences."""
    if starts[0] != 0 or starts[-1] > frames or (starts.diff() < 0).any():
        raise ValueError(f"query_start_loc: {starts.tolist()}; numbers from 0 on that do not fall, up to {frames}")
    return F.pad(torch.repeat_interleave(starts.diff()), (0, frames - int(starts[-1])), value=-1).unsqueeze(0)


# Calls of the library. Functions that allocate results also make the operators' results without values.

_STRIDED = frozenset(("x", "y", "initial", "final", "gy", "gx", "gfinal", "ginitial"))


def _run(function, x, weight, bias, silu, sizes, **tensors):
    """A call of the library, and its struct. The address of a tensor without elements is NULL."""
    weight, bias = weight.detach().contiguous(), None if bias is None else bias.detach().contiguous()
    fields = dict(zip(("batch", "channels", "frames"), (*x.shape, 1)))  # one frame may have no axis
    fields |= {"taps": weight.shape[1], "silu": silu, "type": _TYPES[x.dtype], "taps_type": _TYPES[weight.dtype],
               "threads": torch.get_num_threads(), "log": log(), **sizes}
    tensors |= {"x": x, "w": weight, "bias": bias}
    for name, t in tensors.items():
        if t is not None:
            fields[name] = (address(t), *t.stride(), 1)[:4] if name in _STRIDED else address(t)
    call = ffi.new("struct partita_causal *", fields)
    check(function(call))
    return call


def _results(x, weight, bias, initial, seq_idx, silu, final):
    """The output and final states, in the order of x."""
    if not final:
        return torch.empty_like(x), x.new_empty(0)
    shape, layout = (*x.shape[:2], weight.shape[1] - 1), (0, 2, 1) if x.stride(1) == 1 else (0, 1, 2)
    return torch.empty_like(x), torch.empty_permuted(shape, layout, dtype=x.dtype, device=x.device)


def _compute(x, weight, bias, initial, seq_idx, silu, final):
    y, states = _results(x, weight, bias, initial, seq_idx, silu, final)
    if x.numel():
        _run(lib.partita_causal_forward, x, weight, bias, silu, {}, y=y, initial=initial, final=states, seq_idx=seq_idx)
    elif final:
        states[...] = 0 if initial is None else initial
    return y, states


def _gradients(gy, gfinal, x, weight, bias, initial, seq_idx, silu, needed):
    """Those of x, weight, bias and initial; tensors without elements for those that are not needed."""
    gx, ginitial = (torch.empty_like(t) if n else x.new_empty(0) for t, n in ((x, needed[0]), (initial, needed[3])))
    gw, gbias = (weight.new_empty(shape if n else 0) for shape, n in zip((weight.shape, weight.shape[0]), needed[1:]))
    return gx, gw, gbias, ginitial


def _compute_gradients(gy, gfinal, x, weight, bias, initial, seq_idx, silu, needed):
    gx, gw, gbias, ginitial = results = _gradients(gy, gfinal, x, weight, bias, initial, seq_idx, silu, needed)
    if not x.numel():
        return tuple(t.zero_() for t in results)
    _run(lib.partita_causal_backward, x, weight, bias, silu, {}, gy=gy, gfinal=gfinal, initial=initial,
         seq_idx=seq_idx, gx=gx, gw=gw, gbias=gbias, ginitial=ginitial)
    return results


def _run_states(x, states, weight, bias, indices, seqlens, starts, has_initial, silu, pad=-1):
    """The output, and the struct of the call. `pad` marks padding among the indices, for the library -1."""
    y, call = torch.empty_like(x), None
    if indices is not None and pad != -1:
        if (indices == -1).any():
            raise ValueError(f"cache_indices: -1 is no slot, and pad_slot_id = {pad}")
        indices = torch.where(indices == pad, -1, indices)
    sizes = {"slots": states.shape[0], "state_len": states.shape[2]} if states.numel() else {}
    if starts is not None:
        sizes["batch"] = starts.shape[0] - 1
        y[..., int(starts[-1]):] = 0
    if x.numel():
        call = _run(lib.partita_causal_forward, x, weight, bias, silu, sizes, y=y, initial=states, final=states,
                    cache_indices=indices, cache_seqlens=seqlens, query_start_loc=starts, has_initial_state=has_initial)
    _count(states)
    return y, call


# Operators.

_ARGUMENTS = "Tensor x, Tensor weight, Tensor? bias, Tensor? initial, Tensor? seq_idx, bool silu"
_gradients_op = _ops.operator("causal_conv1d_backward", f"(Tensor gy, Tensor? gfinal, {_ARGUMENTS}, bool[] needed) -> "
                              "(Tensor, Tensor, Tensor, Tensor)", _compute_gradients, _gradients)
_states_op = _ops.operator("causal_conv1d_states", "(Tensor x, Tensor(a!) states, Tensor weight, Tensor? bias, Tensor? "
                           "indices, Tensor? seqlens, Tensor? starts, Tensor? has_initial, bool silu, int pad=-1) -> Tensor",
                           lambda *arguments: _run_states(*arguments)[0], lambda x, *others: torch.empty_like(x),
                           ("states",))


def _states(*arguments):
    return _run_states(*arguments)[0] if _ops.is_plain_call(*arguments[:4]) else _states_op(*arguments)


def _by_layers(x, weight, bias, silu, initial):
    """The same by a layer of `functional`."""
    before = x.new_zeros(*x.shape[:2], weight.shape[-1] - 1) if initial is None else initial
    whole, bias = torch.cat([before, x], -1), bias if bias is None else bias.to(x.dtype)
    w = (weight if weight.dim() == 3 else weight.unsqueeze(1)).to(x.dtype)
    y = functional.conv1d(whole, w, bias, groups=x.shape[1] // w.shape[1])
    return F.silu(y) if silu else y, whole[..., x.shape[-1]:]


def _backward(ctx, gy, gfinal):
    """By the library, or by layers where the gradients will be differentiated again."""
    (*tensors, seq_idx), (silu, final) = ctx.saved_tensors, ctx.others
    needed, g = ctx.needs_input_grad[:4], (gy, gfinal)[:1 + final]
    if not torch.is_grad_enabled():
        found = _gradients_op(gy, gfinal if final else None, *tensors, seq_idx, silu, list(needed))
        return *(t if n else None for t, n in zip(found, needed)), None, None, None
    if seq_idx is not None:
        raise NotImplementedError("seq_idx: gradients of such calls cannot be differentiated again")
    results = _by_layers(*tensors[:3], silu, tensors[3])[:len(g)]
    wanted = [t for t, n in zip(tensors, needed) if n]
    found = iter(torch.autograd.grad(results, wanted, g, create_graph=True, allow_unused=True))
    return *(next(found) if n else None for n in needed), None, None, None


causal_op = _ops.operator("causal_conv1d", f"({_ARGUMENTS}, bool final) -> (Tensor, Tensor)", _compute, _results,
                          backward=_backward)
