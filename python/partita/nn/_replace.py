# SPDX-License-Identifier: MIT
"""`replace_`, which lets Partita compute layers of a model of PyTorch, and `restore_`."""
import contextlib
import functools
import hashlib
import types
from collections.abc import Callable

import torch
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize
from torch.utils import _pytree

from partita._errors import require_type

from . import modules
from ._choices import Choices
from ._measure import clock, compare, memory
from ._report import Report

_TORCH = types.SimpleNamespace(find=lambda *call: False, decide=lambda *call: False)  # in the place of Choices
_OF_EACH_CLASS = ("__dict__", "__weakref__", "__doc__", "_origin")


def replace_(model, example_input=None, *, train=None, where=None):
    """
    Lets Partita compute the convolutions of a model that it computes faster than PyTorch, in place.

    Layers measure: before the first call of a new kind (its shape, type and memory format; autocast; gradients;
    threads) both libraries compute it some times, and the faster one computes this call and all later ones. With an
    example all layers do so in one run of the model, which is then measured as a whole, too: unless it is faster,
    PyTorch computes such calls as before. Measuring takes some ten times as long as the calls themselves, or 0.1 s for
    a kind of short calls.

    Parameters
    ----------
    model : torch.nn.Module
        Its convolutions of one to three axes, transposed ones among them, may be replaced, also if they are
        parametrized, lazy, or of subclasses that do not override the computation. Parameters, hooks and state remain
        those of the layers.
    example_input : Tensor, tuple or dict, optional
        The input of the model, or its arguments by position or by name. Buffers and random numbers are afterwards as
        before. Hooks of the model are called.
    train : bool, optional
        Whether the example is for training, that is, with both gradients. Without it: as ``model.training`` says.
    where : callable, optional
        Whether Partita computes a layer, which then does not measure.

    Returns
    -------
    Report
        A list of the names of the layers that Partita computes, without an example that it may compute; "" is the model
        itself. Its text, and ``to_dict()``, is a table with times and reasons, to which later calls add.

    Raises
    ------
    TypeError, ValueError
        If the example is a function, or stands beside `where`, or `train` without it; if `model` is no module, or `where`
        no function. Errors of the model with the example leave it as it was.

    Notes
    -----
    Sizes of which the first four bits agree are of one kind. Decisions are kept for all models and processes in
    ``$XDG_CACHE_HOME/partita/layers-*.jsonl`` (by default in ``~/.cache``) by processor, threads and versions; delete
    it to measure anew. Calls that are compiled or transformed, and all calls if
    ``torch.use_deterministic_algorithms(True)`` holds, do not measure. They do as the latest measured call did, or else
    Partita computes kernels of seven or more taps in f32 and f64.

    See `forget` for taps that have been written through ``weight.data`` or NumPy.

    Examples
    --------
    >>> import torch, partita.nn
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 8, 31, groups=8))
    >>> report = partita.nn.replace_(model, torch.randn(1, 3, 64, 64))
    >>> "1" in report
    True
    """
    _check(model, where)
    if callable(example_input):
        raise TypeError("example_input is a function: is it meant as where=?")
    if where is not None and example_input is not None:
        raise ValueError("where chooses layers without measuring them: leave out example_input")
    if train is not None and example_input is None:
        raise ValueError("train says for what the example is measured: give example_input, too")
    before = {layer for layer in model.modules() if isinstance(layer, modules.Replaced)}
    entries = [(name, layer, *_exchange(layer, where)) for name, layer in model.named_modules()]
    entries = [entry for entry in entries if any(entry[2:])]
    if example_input is None:
        return Report(entries, example=False)
    try:
        return _measured(model, example_input, model.training if train is None else train, entries)
    except BaseException:
        restore_(model, lambda layer: layer not in before)
        raise


def restore_(model, where=lambda layer: True):
    """Gives the layers that `replace_` has replaced back to PyTorch, in place. Returns their names."""
    _check(model, where)
    names = []
    for name, layer in model.named_modules():
        kind = _torchs(layer, type(layer))
        lazy = vars(layer).get("cls_to_become")
        if (kind or lazy) and where(layer):
            if kind:
                layer.__class__ = kind
            for added in ("_choices", "cls_to_become"):
                vars(layer).pop(added, None)
            names.append(name)
    return names


def _check(model, where):
    require_type("model", model, torch.nn.Module, "a torch.nn.Module is needed")
    if where is not None:
        require_type("where", where, Callable, "a function of a layer is needed, as where=lambda layer: layer is model[0]")


def _exchange(layer, where):
    """Whether a layer is replaced now, and why or why not; two times nothing for layers that are no convolutions."""
    is_new = not isinstance(layer, modules.Replaced) and "cls_to_become" not in vars(layer)
    kind = _ours(layer) if is_new else None
    if isinstance(kind, str):
        return False, kind
    if where is not None and not where(layer):
        return False, "where does not choose it"
    if isinstance(layer, LazyModuleMixin):
        layer.cls_to_become = kind or layer.cls_to_become
    elif is_new:
        try:
            layer.__class__ = kind
        except TypeError as error:
            return False, str(error)
    if where is not None:
        vars(layer).pop("_choices", None)
    elif is_new:
        layer._choices = Choices()
    return True, "" if "_choices" in vars(layer) else "always"


def _ours(layer):
    """The class of a layer once it is replaced, or why it cannot be: "" if it is no convolution."""
    kind = layer.cls_to_become if isinstance(layer, LazyModuleMixin) else type(layer)
    if not issubclass(kind or object, tuple(modules._OURS)):
        is_like = hasattr(layer, "kernel_size") and hasattr(layer, "in_channels")
        kind = type(layer)
        return f"{kind.__module__}.{kind.__name__} is no subclass of a layer of torch.nn" if is_like else ""
    if not parametrize.is_parametrized(layer):
        return _ours_of_class(kind)
    base = _ours_of_class(kind.__bases__[0])
    return base if isinstance(base, str) else _rebased(kind, base, {"_origin": kind})


def _ours_of_class(kind):
    if kind in modules._OURS:
        return modules._OURS[kind]
    torchs = next(torchs for torchs in modules._OURS if issubclass(kind, torchs))
    for name in ("forward", "_conv_forward"):
        if getattr(kind, name, None) is not getattr(torchs, name, None):
            return f"{kind.__name__} overrides {name}"
    return _subclass(kind, modules._OURS[torchs])


@functools.cache
def _subclass(kind, ours):
    """A subclass of a user's class whose convolution is ours. It is pickled as the user's, and replaced when loaded."""
    def reduce(layer, protocol):
        _, _, *state = super(made, layer).__reduce_ex__(max(protocol, 2))
        return _new_layer, (kind,), *state
    made = type(kind.__name__, (kind, ours), {"__module__": kind.__module__, "__qualname__": kind.__qualname__,
                                              "__doc__": kind.__doc__, "__reduce_ex__": reduce, "_origin": kind})
    return made


def _new_layer(kind):
    made = _ours_of_class(kind)
    return made.__new__(made)


def _rebased(kind, base, added=None):
    """A class that PyTorch has made for one parametrized layer, with another base."""
    members = {name: value for name, value in vars(kind).items() if name not in _OF_EACH_CLASS}
    return type(kind.__name__, (base,), members | (added or {}))


def _torchs(layer, kind):
    """The class that a layer of this class had before it was replaced, None if it was not."""
    if kind in modules._TORCHS:
        return modules._TORCHS[kind]
    origin = vars(kind).get("_origin")
    if not parametrize.is_parametrized(layer) or kind.__module__ != "torch.nn.utils.parametrize":
        return origin
    if origin and not (vars(kind).keys() ^ vars(origin).keys()).difference(_OF_EACH_CLASS):
        return origin
    base = _torchs(layer, kind.__bases__[0])  # parametrized otherwise since then
    return base and _rebased(kind, base)


def _measured(model, example, train, entries):
    """The report on an example, in whose runs layers measure."""
    layers = [layer for _, layer, *_ in entries if "_choices" in vars(layer)]
    before = [layer._choices for layer in layers]
    for layer in layers:
        layer._choices = Choices()
    try:
        recording = torch.inference_mode(not train and torch.is_inference_mode_enabled())
        with recording, _undisturbed(model), torch.set_grad_enabled(train):
            for _ in range(1 + any(map(is_lazy, model.parameters()))):
                _run(model, example)
            whole = _decide_whole(model, example, train, layers)
        return Report(entries, whole, example=True)
    finally:
        for layer, choices in zip(layers, before):
            choices.update(layer._choices)
            layer._choices = choices


def _run(model, example):
    if isinstance(example, dict):
        return model(**example)
    return model(*example) if isinstance(example, tuple) else model(example)


@contextlib.contextmanager
def _undisturbed(model):
    """Leaves buffers and random numbers as they are."""
    buffers = [(layer, name, buffer, buffer.clone()) for layer in model.modules()
               for name, buffer in layer._buffers.items() if buffer is not None and not is_lazy(buffer)]
    with torch.random.fork_rng(devices=[]):
        yield
    with torch.no_grad():
        for layer, name, buffer, values in buffers:
            layer._buffers[name] = buffer.copy_(values)


def _decide_whole(model, example, train, layers):
    """Measures the model with and without Partita, and gives all its layers back if it is not faster."""
    chosen = [layer._choices for layer in layers]
    kinds = [text for choices in chosen for text, row in choices.rows.items() if row.partita]
    if not kinds:
        return None
    text = "model " + hashlib.sha256("\n".join(sorted(kinds)).encode()).hexdigest()
    seconds = clock()
    parameters = [p for p in model.parameters() if p.requires_grad]

    def run(used):
        for layer, choices in zip(layers, used):
            layer._choices = choices
        begin = seconds()
        results = _pytree.tree_leaves(_run(model, example))
        results = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
        if train and results:
            torch.autograd.grad(results, parameters, [torch.ones_like(t) for t in results], allow_unused=True)
        return seconds() - begin

    try:
        decision = memory.find(text, lambda: compare([lambda: run([_TORCH] * len(layers)), lambda: run(chosen)]))
    finally:
        for layer, choices in zip(layers, chosen):
            layer._choices = choices
    if not decision.partita:
        for choices in chosen:
            choices.give_back()
    return decision
