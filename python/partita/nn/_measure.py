# SPDX-License-Identifier: MIT
"""Times of calls by PyTorch and by Partita, and which of them is taken. Decisions are remembered in this process, and by
machine and versions in a file of the folder in which the program `partita` keeps its measurements."""
import functools
import hashlib
import json
import math
import os
import pathlib
import platform
import re
import time
import typing

import torch
import torch.nn.functional as F

from partita import _options
from partita._errors import UnsupportedError

from . import _calls, _geometry, _ops
from . import functional as ours
from ._cache import cache

_MARGIN = 0.92    # of torch's time: a layer that saves less stays with torch
_SECONDS = 0.05   # of processor time, for two calls of a layer that take turns four times or more
_FEW = 10         # this many times as long, for fewer turns
_MAX_TURNS = 50


class Decision(typing.NamedTuple):
    """Whether Partita computes calls of one kind, the shortest times in microseconds, and a reason beside these."""

    partita: bool
    torch_us: float = math.nan
    partita_us: float = math.nan
    reason: str = ""


class _Memory:
    """Decisions by the text that describes a kind of call; threads may share it."""

    known: dict[str, Decision] | None = None  # before the file is read

    def find(self, text, make):
        """The decision of a kind, which `make` returns if it is not known."""
        if self.known is None:
            self.known = dict(_read())
        found = self.known.get(text)
        if found is None:
            found = self.known.setdefault(text, make())
            _append(text, found)
        return found


memory = _Memory()


@functools.cache
def _path():
    """The file of this machine, named by a digest of everything but the call that times depend on."""
    try:
        cpu = re.findall("model name.*", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))[:1]
    except OSError:
        cpu = []
    machine = [cpu, platform.machine(), os.cpu_count(), torch.__version__, torch.backends.cpu.get_cpu_capability(),
               _options.library_version(), os.environ.get("PARTITA_CPU")]
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.expanduser("~/.cache")
    return pathlib.Path(folder, "partita", f"layers-{hashlib.sha256(repr(machine).encode()).hexdigest()[:12]}.jsonl")


def _read():
    try:
        for line in _path().read_text(encoding="utf-8").splitlines():
            text, (partita, torch_us, partita_us, reason) = json.loads(line)
            yield str(text), Decision(bool(partita), float(torch_us), float(partita_us), str(reason))
    except (OSError, TypeError, ValueError):  # no file, or one that is damaged from this line on
        return


def _append(text, decision):
    try:
        _path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _path().open("a", encoding="utf-8") as file:
            file.write(json.dumps([text, decision]) + "\n")
    except OSError:  # a folder that cannot be written
        pass


def clock():
    """The clock of measurements: of one thread it leaves out the time in which other processes run."""
    return time.thread_time if torch.get_num_threads() == 1 else time.perf_counter


def compare(calls, margin=1.0, seconds=0.5):
    """A decision by the shortest times that two calls return, which take turns; their first ones do not count. The
    first call is PyTorch's, and Partita's has to take less than `margin` of its time."""
    for call in calls:
        call()
    theirs = mine = math.inf
    begin = time.process_time()  # without the pauses in which other processes run
    for turn in range(1, _MAX_TURNS + 1):
        theirs, mine = min(theirs, calls[0]()), min(mine, calls[1]())
        if time.process_time() - begin > seconds * (1 if turn > 3 else _FEW):
            break
    return Decision(mine < margin * theirs, 1e6 * theirs, 1e6 * mine)


def is_measurable(x, w, b):
    """Whether a call may be repeated for its time: Partita computes such tensors, and nothing observes the call."""
    return (_ops.is_undispatched(x, w, b) and not ours._differentiates_otherwise() and x.numel() > 0
            and not torch.are_deterministic_algorithms_enabled() and _geometry.refused_tensors(x) is None)


def describe(layer, x, w, b, output_size):
    """The kind of a call: all that its time depends on. Sizes of which the first four bits agree are of one kind."""
    recorded = _ops.is_recorded(x, w, b)
    autocast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    layout = _geometry.memory_format(x, w) if x.dim() == w.dim() else torch.contiguous_format
    return {
        "layer": layer._function, "input": list(map(_near, x.shape)), "taps": list(w.shape), "bias": b is not None,
        "stride": layer.stride, "padding": layer.padding, "dilation": layer.dilation, "groups": layer.groups,
        "padding_mode": layer.padding_mode, "output_size": output_size and list(map(_near, output_size)),
        "type": _name(x.dtype), "autocast": _name(autocast),
        "format": _name(layout) if x.is_contiguous(memory_format=layout) else "strided",
        "gradients": recorded and [x.requires_grad, w.requires_grad], "training": recorded and layer.training,
        "taps_stay": isinstance(w, torch.nn.Parameter), "threads": [torch.get_num_threads(), _options.get_threads()],
    }


def _near(size):
    shift = max(size.bit_length() - 4, 0)
    return size >> shift << shift


def _name(value):
    return value and str(value).removeprefix("torch.")


def decide(layer, kind, x, w, b, output_size):
    """The decision of a kind of calls, for which they are measured if they have not been yet."""
    def measure():
        try:
            with cache.trial():
                return compare([_timed(layer, library, x, w, b, output_size) for library in (F, ours)], _MARGIN,
                               _SECONDS)
        except (UnsupportedError, MemoryError) as error:
            return Decision(False, reason=str(error))
    found = memory.find(json.dumps(kind), measure)
    if not found.partita:
        _calls.forget([w])
    return found


def _timed(layer, library, x, w, b, output_size):
    """A function that computes a call, in training with its gradients, and returns how long that took in seconds."""
    computed, recorded = not isinstance(w, torch.nn.Parameter), _ops.is_recorded(x, w, b)
    if recorded:
        x, w, b = (t if t is None else t.detach().requires_grad_(t.requires_grad) for t in (x, w, b))
    leaves = [t for t in (x, w, b) if t is not None and t.requires_grad]
    seconds, g = clock(), None

    def call():
        nonlocal g
        begin = seconds()
        taps = w.view_as(w) if computed else w  # each call has a tensor of its own
        y = layer._compute(library, x, taps, b, output_size)
        if recorded and layer.training:
            g = torch.ones_like(y) if g is None else g
            torch.autograd.grad(y, leaves, g)
        return seconds() - begin

    def unseen():  # by those who count what is saved for gradients, as checkpoints do
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return call()
    return unseen if recorded else call
