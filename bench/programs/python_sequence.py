#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times sequence models in one process, in turns: with `partita.nn`, and with PyTorch as its users write them, eager and
compiled by torch.compile. Kinds of calls: `step` is forward, backward and an update of the weights (SGD), `infer` forward
alone, `token` the next frame of a sequence. Prints rows as the other benchmarks do; an item is one call, and `check` is
the relative L2 distance of the outputs, or of the gradients of all weights, from PyTorch's in float64.

    bench/programs/python_sequence.py [--quick] [--case PATTERN]

Cases, sequence-NAME-KIND:
hyena       the operator between its projections: a gate, a long convolution with a skip, a gate; torch.fft as the peer
hyena-b8    a batch of eight
hyena-layer the same with its projections and short filters
mamba       a block without its scan: a projection, four taps with SiLU, a gate, a projection
wavenet     causal dilated layers with gates
codec       a coder and decoder of audio"""
import copy
import functools
import os
import sys
import tempfile

import networks
import rows
import torch
import torch.nn.functional as F
from torch import nn

import partita.nn

FRAMES, WIDTH = 8192, 1024
SECONDS = 2.0  # of each contender at least, and at least three calls


def fftconv(x, taps, D):
    """As the users of Hyena write it."""
    frames, n = x.shape[-1], 2 * x.shape[-1]
    y = torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(taps, n=n), n=n)[..., :frames]
    return y + x * D.unsqueeze(-1)


def short_conv(x, taps, bias, activation=None):
    channels, n = taps.shape
    y = F.conv1d(x, taps.unsqueeze(1), bias, padding=n - 1, groups=channels)[..., :x.shape[-1]]
    return F.silu(y) if activation else y


def short_update(x, state, taps, bias, activation):
    window = torch.cat([state, x[..., None]], -1)
    state.copy_(window[..., 1:])
    return F.silu((window * taps).sum(-1) + bias)


def decoded(x, taps, D):
    """A function of the next frame of a sequence: by a decoder."""
    state = partita.nn.DecodeState(torch.cat([taps[:, :1] + D[:, None], taps[:, 1:]], 1))
    state.prefill(state.join(), x[0])
    return state.step


def repeated(x, taps, D):
    """The same: by the layer on the whole sequence again."""
    def step(frame):
        x.copy_(torch.cat([x[..., 1:], frame[..., None]], -1))
        return fftconv(x, taps, D)[..., -1]
    return step


class Ours:
    long_conv, short_conv = staticmethod(partita.nn.long_conv), staticmethod(partita.nn.causal_conv1d)
    short_update, continued = staticmethod(partita.nn.causal_conv1d_update), staticmethod(decoded)


class Theirs:
    long_conv, short_conv = staticmethod(fftconv), staticmethod(short_conv)
    short_update, continued = staticmethod(short_update), staticmethod(repeated)


class Hyena(nn.Module):
    """A Hyena operator of order two, of (batch, 3 width, frames) to (batch, width, frames)."""

    library = Theirs

    def __init__(self, width=WIDTH, frames=FRAMES):
        super().__init__()
        decay = torch.exp(-torch.linspace(0, 8, frames))
        self.taps, self.D = nn.Parameter(torch.randn(width, frames) * decay / 10), nn.Parameter(torch.randn(width))

    def forward(self, x):
        gate, x, v = x.chunk(3, 1)
        return gate * self.library.long_conv(x * v, self.taps, self.D)

    def token(self, x):
        """A function of the next frame (batch, 3 width) after x."""
        _, x, v = x.chunk(3, 1)
        step = self.library.continued(x * v, self.taps, self.D)
        return lambda frame: frame[:, :WIDTH] * step(frame[:, WIDTH:2 * WIDTH] * frame[:, 2 * WIDTH:])


class HyenaLayer(nn.Module):
    """Of (batch, frames, width)."""

    library = Theirs

    def __init__(self, width=WIDTH):
        super().__init__()
        self.into, self.out, self.operator = nn.Linear(width, 3 * width), nn.Linear(width, width), Hyena(width)
        self.taps, self.bias = nn.Parameter(torch.randn(3 * width, 3)), nn.Parameter(torch.zeros(3 * width))

    def forward(self, x):
        x = self.library.short_conv(self.into(x).mT, self.taps, self.bias)
        return self.out(self.operator(x).mT)


class Mamba(nn.Module):
    """A block of Mamba, of (batch, frames, width), without its scan."""

    library = Theirs

    def __init__(self, width=WIDTH):
        super().__init__()
        self.into, self.out = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.taps, self.bias = nn.Parameter(torch.randn(2 * width, 4)), nn.Parameter(torch.zeros(2 * width))

    def forward(self, x):
        x, gate = self.into(x).chunk(2, -1)
        x = self.library.short_conv(x.mT, self.taps, self.bias, "silu").mT
        return self.out(x * F.silu(gate))

    def token(self, x):
        """A function of the next frame (batch, width) after x."""
        state = self.into(x[:, -3:]).chunk(2, -1)[0].mT.contiguous()

        def step(frame):
            x, gate = self.into(frame).chunk(2, -1)
            return self.out(self.library.short_update(x, state, self.taps, self.bias, "silu") * F.silu(gate))
        return step


class GatedLayer(nn.Module):
    """A layer of WaveNet."""

    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = nn.ConstantPad1d((dilation, 0), 0)
        self.conv, self.mix = nn.Conv1d(channels, 2 * channels, 2, dilation=dilation), nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        gate, value = self.conv(self.pad(x)).chunk(2, 1)
        return x + self.mix(torch.sigmoid(gate) * torch.tanh(value))


def wavenet(channels=64, blocks=2, levels=8):
    return nn.Sequential(nn.Conv1d(1, channels, 1),
                         *(GatedLayer(channels, 2 ** k) for _ in range(blocks) for k in range(levels)),
                         nn.Conv1d(channels, 256, 1))


# Each with the shape of its input.
TABLE = {
    "hyena": (Hyena, (1, 3 * WIDTH, FRAMES)),
    "hyena-b8": (Hyena, (8, 3 * WIDTH, FRAMES)),
    "hyena-layer": (HyenaLayer, (1, FRAMES, WIDTH)),
    "mamba": (Mamba, (1, 2048, WIDTH)),
    "wavenet": (wavenet, (1, 1, 16000)),
    "codec": networks.TABLE["codec"],
}


def of_partita(model):
    """The model with the functions of the package."""
    for module in model.modules():
        if hasattr(module, "library"):
            module.library = Ours
    return model


def compiled(model, x, train):
    """None where torch.compile cannot compile the model."""
    compiled = copy.deepcopy(model)
    try:
        compiled.compile()
        networks.call_of(compiled, x, train)()
    except Exception as error:  # noqa: BLE001 (a compiler of C++ may be missing)
        print(f"torch.compile: {error}", file=sys.stderr)
        return None
    return compiled


def measure_model(case, train, make, shape, quick):
    """Prints the rows of one model in training or in inference."""
    torch.manual_seed(1)
    x, theirs = torch.randn(shape, requires_grad=train), make().train(train)
    expected = networks.result_of(copy.deepcopy(theirs).double(), x.double(), train)
    for n in (1, 2):
        torch.set_num_threads(n)
        models = {"partita": of_partita(copy.deepcopy(theirs)), "torch": copy.deepcopy(theirs)}
        partita.nn.replace_(models["partita"], x, train=train)
        errors = networks.errors(case, models, x, train, expected)
        if errors is None:
            return False
        models["torch-compiled"] = compiled(theirs, x, train)
        calls = {who: networks.call_of(model, x, train) for who, model in models.items() if model}
        for call in calls.values():
            call()
        for who, times in rows.interleaved(calls, seconds=0 if quick else SECONDS * len(calls)).items():
            rows.print_row(case, who, n, times, errors.get(who, 0))
    return True


@torch.no_grad()
def measure_tokens(case, make, shape, quick):
    """Prints the rows of one model that generates."""
    torch.manual_seed(1)
    x, theirs = torch.randn(shape), make()
    frame = torch.randn(shape[0], 3 * WIDTH if isinstance(theirs, Hyena) else WIDTH)
    exact = copy.deepcopy(theirs).double().token(x.double())(frame.double())
    for n in (1, 2):
        torch.set_num_threads(n)
        models = {"partita": of_partita(copy.deepcopy(theirs)), "torch": theirs}
        steps = {who: model.token(x) for who, model in models.items()}
        errors = {who: rows.distance(step(frame), exact) for who, step in steps.items()}
        if not max(errors.values()) <= networks.LARGEST_ERROR:
            print(f"{case}: errors {errors}", file=sys.stderr)
            return False
        calls = {who: functools.partial(step, frame) for who, step in steps.items()}
        for who, times in rows.interleaved(calls, seconds=0 if quick else SECONDS * len(calls)).items():
            rows.print_row(case, who, n, times, errors[who])
    return True


def measure(case, kind, *described):
    if kind == "token":
        return measure_tokens(case, *described)
    return measure_model(case, kind == "step", *described)


def cases():
    """The name, kind, model and shape of each case."""
    for name, (make, shape) in TABLE.items():
        for kind in ("step", "infer", "token") if name in ("hyena", "mamba") else ("step", "infer"):
            yield f"sequence-{name}-{kind}", kind, make, shape


with tempfile.TemporaryDirectory() as folder:
    os.environ["XDG_CACHE_HOME"] = folder  # where replace_ remembers times: those of this run alone
    rows.run(__doc__, cases(), measure)
