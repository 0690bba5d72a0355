# SPDX-License-Identifier: MIT
"""python3 fork_load.py FOLDER: forks at random moments while other threads are in the package.

Each thread of the parent works in an endless loop, with lengths that change, so that plans are made and dropped all the
time; networks are trained if PyTorch is there. A child that is not done after CHILD_SECONDS prints where it is and fails.
"""
import faulthandler
import importlib.util
import itertools
import os
import random
import sys
import threading
import time

import numpy as np

import partita
from partita import signal

CHILD_SECONDS, FORKS = 60, 300
faulthandler.enable()
sys.setswitchinterval(1e-5)  # seconds: threads are exchanged in the middle of everything
rng = random.Random(1)
h = np.ones(600)


def convolve(lengths):
    for n in lengths:
        signal.convolve(np.ones(20_000 + n), h)
        signal.fftconvolve(np.ones((3, 500 + n % 400)), np.ones((3, 90)), axes=1)


def remember(name, wisdom, rounds):
    path = os.path.join(sys.argv[1], name)
    for i in rounds:
        # A problem whose candidates take microseconds to measure.
        partita.Plan(partita.Problem(kernel=2, size=16 + i % 64), effort="measure", wisdom=wisdom)
        wisdom.save(path)
        partita.Wisdom(path)


stream, bank = partita.Stream(h, block=64), partita.Bank(4, 600, dtype="f64")


def swap(rounds):
    for i in rounds:
        stream.swap(h * i)
        slot = bank.open(bank.filter(h))
        bank.swap(slot, bank.filter(h * i))
        bank.close(slot)
        while bank.state(slot) != "free":
            time.sleep(0)


def process(rounds):
    for _ in rounds:
        stream.process(np.ones(64))
        bank.process()


def use_streams():
    for used, call in ((stream, lambda: stream.swap(h)), (stream, lambda: stream.process(np.ones(64))),
                       (bank, bank.process), (bank, lambda: bank.filter(h))):
        try:
            call()
        except partita.StateError as error:  # another thread was in a call of it
            assert "is closed" in str(error), error


parent = [lambda: convolve(itertools.count(rng.randrange(100))), lambda: convolve(itertools.count(7)),
          lambda: remember("wisdom", partita.Wisdom(), itertools.count()), lambda: swap(itertools.count()),
          lambda: process(itertools.count())]
child = [lambda: convolve(range(2)), lambda: remember("child", partita.Wisdom(), range(2)), use_streams]

if importlib.util.find_spec("torch"):
    import torch

    import partita.nn.functional
    torch.set_num_threads(1)
    weights = torch.ones(4, 4, 9)

    def infer(lengths):
        for n in lengths:
            partita.nn.functional.conv1d(torch.ones(1, 4, 100 + n % 700), weights)

    def train():
        layer = partita.nn.Conv1d(4, 4, 9)
        for n in itertools.count():
            layer(torch.ones(1, 4, 100 + n % 700)).sum().backward()
    parent += [lambda: infer(itertools.count()), train]
    child.append(lambda: infer(range(3)))

for work in parent:
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
for i in range(FORKS):
    time.sleep(rng.random() * 0.01)
    pid = os.fork()
    if pid == 0:
        status = 1
        faulthandler.dump_traceback_later(CHILD_SECONDS, exit=True)
        try:
            for work in child:
                work()
            status = 0
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            sys.stderr.flush()
        finally:
            os._exit(status)
    ended = os.waitpid(pid, 0)[1]
    if ended:
        sys.stderr.write(f"child {i}: status {ended}\n")
        sys.stderr.flush()
        os._exit(1)
os._exit(0)  # the threads of the load never end
