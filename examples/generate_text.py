#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates text with models of long convolutions, which learn the licence of this project in less than a minute.

    python3 examples/generate_text.py [hyena|s4|striped] [--steps N] [--tokens N]

Each token is made twice: by the whole model on all tokens before it, and from states, which read the new token alone. The
text is the same, and the program fails if it is not. Blocks are Hyena operators (Poli et al. 2023), diagonal state space
layers (Gu et al. 2022), whose kernel is written out as taps, or both in turn.
"""
import argparse
import pathlib
import time

import torch
import torch.nn.functional as F
from torch import nn

from partita.nn import DecodeState, causal_conv1d, causal_conv1d_update, long_conv

TEXT = (pathlib.Path(__file__).resolve().parents[1] / "LICENSE").read_text(encoding="utf-8")
LETTERS = sorted(set(TEXT))
WIDTH, TAPS, FRAMES, BATCH = 32, 512, 192, 4
PROMPT = len("MIT License\n")


class Hyena(nn.Module):
    """Order 2: a long filter between two gates, after a projection with short filters."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.short = nn.Parameter(torch.randn(3 * WIDTH, 3) / 3 ** 0.5)
        self.shape = nn.Sequential(nn.Linear(17, 32), nn.SiLU(), nn.Linear(32, WIDTH))
        self.skip = nn.Parameter(torch.ones(WIDTH))

    def taps(self):
        """A small network of the tap's position, which decays at another rate in each channel."""
        t = torch.linspace(0, 1, TAPS)[:, None]
        waves = t * 2 * torch.pi * torch.arange(1, 9)
        decay = torch.exp(-t * torch.logspace(0, 2, WIDTH))
        return (self.shape(torch.cat([t, waves.sin(), waves.cos()], 1)) * decay).mT / WIDTH ** 0.5

    def forward(self, x, memory=None):
        u = self.inner(x).mT
        u = causal_conv1d(u, self.short) if memory is None else causal_conv1d_update(u, memory.samples, self.short)
        v, before, after = u.chunk(3, 1)
        v = v * before
        v = long_conv(v, self.taps(), self.skip) if memory is None else memory.filter(v)
        return self.outer((v * after).mT)


class StateSpace(nn.Module):
    """S4D: a channel is a sum of damped oscillations of its past."""

    def __init__(self, modes=8):
        super().__init__()
        self.damping = nn.Parameter(torch.full((WIDTH, modes), 0.5).log())
        self.frequency = nn.Parameter(torch.pi * torch.arange(modes).expand(WIDTH, -1).clone())
        self.mix = nn.Parameter(torch.randn(WIDTH, modes, 2) / modes ** 0.5)
        self.time = nn.Parameter(torch.empty(WIDTH, 1).uniform_(-7, -2))
        self.skip, self.outer = nn.Parameter(torch.ones(WIDTH)), nn.Linear(WIDTH, WIDTH)

    def taps(self):
        pole = torch.complex(-self.damping.exp(), self.frequency)
        step = self.time.exp() * pole
        weight = torch.view_as_complex(self.mix) * (step.exp() - 1) / pole
        return 2 * torch.einsum("cm,cmt->ct", weight, (step[..., None] * torch.arange(TAPS)).exp()).real

    def forward(self, x, memory=None):
        u = x.mT
        y = long_conv(u, self.taps(), self.skip) if memory is None else memory.filter(u)
        return self.outer(F.gelu(y.mT))


class Memory:
    """What a block keeps of its sequences between tokens."""

    def __init__(self, block, sequences):
        taps = block.taps()
        taps[:, 0] += block.skip
        self.state = DecodeState(taps, sequences)
        self.slots = [self.state.join() for _ in range(sequences)]
        self.samples = torch.zeros(sequences, 3 * WIDTH, 2)  # of short filters

    def filter(self, x):
        """A prompt, or a token of each sequence."""
        if x.shape[2] == 1:
            return self.state.step(x, self.slots)
        return torch.stack([self.state.prefill(slot, prompt) for slot, prompt in zip(self.slots, x)])


class Model(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.embedding, self.head = nn.Embedding(len(LETTERS), WIDTH), nn.Linear(WIDTH, len(LETTERS))
        self.blocks = nn.ModuleList(block() for block in blocks)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(len(blocks) + 1))

    def forward(self, tokens, memories=None):
        x = self.embedding(tokens)
        for block, norm, memory in zip(self.blocks, self.norms, memories or [None] * len(self.blocks)):
            x = x + block(norm(x), memory)
        return self.head(self.norms[-1](x))


def train(model, tokens, steps):
    """The losses of all steps."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), 1e-2), []
    for _ in range(steps):
        at = torch.randint(len(tokens) - FRAMES, (BATCH, 1)) + torch.arange(FRAMES + 1)
        loss = F.cross_entropy(model(tokens[at[:, :-1]]).flatten(0, 1), tokens[at[:, 1:]].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def by_whole_model(model, prompt, n):
    tokens = F.pad(prompt, (0, n))  # what follows a token does not change its outputs
    for i in range(len(prompt), len(tokens)):
        tokens[i] = model(tokens[None])[0, i - 1].argmax()
    return tokens


def by_states(model, prompt, n):
    memories = [Memory(block, 1) for block in model.blocks]
    tokens, new = [prompt], prompt[None]
    for _ in range(n):
        new = model(new, memories)[:, -1:].argmax(-1)
        tokens.append(new[0])
    return torch.cat(tokens)


def main(arguments=None):
    models = {"hyena": [Hyena, Hyena], "s4": [StateSpace, StateSpace], "striped": [Hyena, StateSpace]}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", choices=models, default="striped")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=400)
    options = parser.parse_args(arguments)
    torch.manual_seed(1)
    tokens, model = torch.tensor([LETTERS.index(letter) for letter in TEXT]), Model(models[options.model])
    losses = train(model, tokens, options.steps)
    print(f"loss {losses[0]:.2f}, after {options.steps} steps {losses[-1]:.2f}")
    found = []
    with torch.no_grad():
        for generate in (by_whole_model, by_states):
            begin = time.perf_counter()
            found.append(generate(model, tokens[:PROMPT], options.tokens))
            print(f"{generate.__name__}: {options.tokens / (time.perf_counter() - begin):.0f} tokens a second")
    assert torch.equal(*found), "the texts differ"
    text = "".join(LETTERS[token] for token in found[1])
    print(text)
    return losses, text


if __name__ == "__main__":
    torch.set_num_threads(1)  # the models are too small for more
    main()
