#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Filters endless streams on several machines: workers hold the streams, a supervisor sends each worker the blocks of its
keys and moves streams when a worker is lost, without a gap in the output and with the bits of one process.

    python3 examples/stream_workers.py worker 10.0.0.1:7000   # on each machine; default: a free port of 127.0.0.1
    python3 examples/stream_workers.py filter taps.npy in.npy out.npy 10.0.0.1:7000 10.0.0.2:7000

`taps.npy` is [taps] or [keys, taps], `in.npy` [keys, frames]: its rows stand for live inputs. Anybody who reaches a
worker's port can use it: choose addresses of a network of your own.
"""
import hashlib
import json
import socket
import struct
import sys
import time

import numpy as np

import partita

BLOCK = 256  # frames of a key in one call


def send(connection, header, *parts):
    """A message: the lengths of header and payload, the header as JSON, the payload."""
    text = json.dumps(header).encode()
    payload = b"".join(parts)
    connection.sendall(struct.pack("!II", len(text), len(payload)) + text + payload)


def receive(connection):
    """The header and the payload of the next message; EOFError at the end of the connection."""
    n_text, n_payload = struct.unpack("!II", receive_bytes(connection, 8))
    return json.loads(receive_bytes(connection, n_text)), receive_bytes(connection, n_payload)


def receive_bytes(connection, n):
    data = bytearray(n)
    view = memoryview(data)
    while view:
        got = connection.recv_into(view)
        if not got:
            raise EOFError("the connection was closed")
        view = view[got:]
    return bytes(data)


def split_address(text):
    host, _, port = text.rpartition(":")
    return host or "127.0.0.1", int(port)


class Worker:
    """Streams by key, for one supervisor at a time."""

    def __init__(self):
        self.streams = {}

    def serve(self, connection):
        try:
            while True:
                header, payload = receive(connection)
                try:
                    send(connection, *getattr(self, "do_" + header.pop("do"))(payload, **header))
                except Exception as error: # the supervisor says it
                    send(connection, {"error": f"{type(error).__name__}: {error}"})
        except (EOFError, OSError):
            self.streams.clear() # a supervisor that comes back brings the states

    def do_open(self, payload, key, taps_bytes):
        """Opens a stream; what follows the taps is the state from which it continues."""
        stream = partita.Stream(np.frombuffer(payload[:taps_bytes]).astype("f4"), block=BLOCK)
        if len(payload) > taps_bytes:
            stream.restore(payload[taps_bytes:])
        self.streams[key] = stream
        return ({},)

    def do_process(self, payload, keys, save):
        """Filters one block of each key; with `save` returns the states after it, too."""
        blocks = np.frombuffer(payload, "f4").reshape(len(keys), BLOCK)
        results = [self.streams[key].process(block) for key, block in zip(keys, blocks)]
        states = [self.streams[key].save() for key in keys] if save else []
        return {"state_bytes": [len(state) for state in states]}, *(y.tobytes() for y in results), *states

    def do_close(self, payload, key):
        """Returns the state."""
        return {}, self.streams.pop(key).save()


def run_worker(address):
    listener = socket.create_server(split_address(address))
    print("listening on %s:%d" % listener.getsockname()[:2], flush=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Worker().serve(connection)


class Supervisor:
    """
    Filters one block of every key at a time.

    After every `save_every` blocks the workers return the states of their streams. If a worker does not answer within
    `timeout` seconds, its streams are opened on others from these states, and the blocks since then are filtered again:
    a filter and its state determine every bit that follows. Workers that do not answer at the beginning, within the same
    time, are left out. The states are in the memory of this process alone: what is lost with it begins anew.
    """

    def __init__(self, addresses, taps, save_every=16, timeout=5.0):
        self.taps = {key: np.asarray(h, "f8") for key, h in taps.items()}
        self.save_every = save_every
        self.n_blocks = 0
        self.workers = {}  # connections by address
        self.owners = dict.fromkeys(self.taps)       # addresses by key; None: the stream is not open yet
        self.states = dict.fromkeys(self.taps, b"")  # the last saved; empty: at the beginning
        self.since = {key: [] for key in self.taps}  # blocks since then
        end = time.monotonic() + timeout
        for address in addresses:
            self._connect(address, timeout, end)
        self._open_where_lost()

    def _connect(self, address, timeout, end):
        """Tries until the time `end`, since a worker may start later than this process, and at least once."""
        while True:
            try:
                self.workers[address] = socket.create_connection(split_address(address), timeout)
                return
            except OSError as error:
                if time.monotonic() > end:
                    print(f"{address}: does not answer ({error}); its keys go to others", file=sys.stderr)
                    return
            time.sleep(0.1)

    def process(self, blocks):
        """The results of blocks {key: BLOCK samples}."""
        self.n_blocks += 1
        save = self.n_blocks % self.save_every == 0
        results = {}
        while len(results) < len(blocks):
            asked = {}
            for key in blocks.keys() - results.keys():
                asked.setdefault(self.owners[key], []).append(key)
            # All workers compute at once.
            for address, keys in asked.items():
                self._ask(address, {"do": "process", "keys": keys, "save": save},
                          *(np.asarray(blocks[key], "f4").tobytes() for key in keys))
            for address, keys in asked.items():
                header, payload = self._answer(address)
                if header is None:
                    continue
                filtered = np.frombuffer(payload, "f4", len(keys) * BLOCK).reshape(len(keys), BLOCK)
                results.update(zip(keys, filtered))
                for key in keys:
                    self.since[key].append(np.array(blocks[key], "f4"))
                at = filtered.nbytes
                for key, n in zip(keys, header["state_bytes"]):
                    self.states[key], self.since[key] = payload[at:at + n], []
                    at += n
            self._open_where_lost()
        return results

    def move(self, key, address):
        """Moves a stream to another worker, between two blocks."""
        self._ask(self.owners[key], {"do": "close", "key": key})
        state = self._answer(self.owners[key])[1]
        if state is not None: # otherwise its worker was lost at this moment
            self.states[key], self.since[key] = state, []
        self._open(key, address)
        self._open_where_lost()

    def _place(self, key):
        """Opens a stream where its key belongs: the choice of a lost worker alone changes (rendezvous hashing)."""
        while True:
            if not self.workers:
                raise RuntimeError("no worker answers; the last states are in `states`")
            best = max(self.workers, key=lambda address: hashlib.sha256(f"{key} {address}".encode()).digest())
            if self._open(key, best):
                return

    def _open(self, key, address):
        """From its last state and the blocks since. False: the worker was lost."""
        taps = self.taps[key].tobytes()
        opened = self._call(address, {"do": "open", "key": key, "taps_bytes": len(taps)}, taps, self.states[key])
        for block in self.since[key]:
            opened = opened and self._call(address, {"do": "process", "keys": [key], "save": False}, block.tobytes())
        self.owners[key] = address
        return opened

    def _open_where_lost(self):
        """Opens all streams that no worker has. While they are opened, further workers may be lost."""
        while without := [key for key, address in self.owners.items() if address not in self.workers]:
            for key in without:
                self._place(key)

    def _call(self, address, header, *parts):
        self._ask(address, header, *parts)
        return self._answer(address)[0] is not None

    def _ask(self, address, header, *parts):
        """Sends a message; `_answer` says if the worker was lost, before this call or in it."""
        if address in self.workers:
            try:
                send(self.workers[address], header, *parts)
            except OSError:
                self._lose(address)

    def _answer(self, address):
        """(None, None): the worker was lost."""
        if address not in self.workers:
            return None, None
        try:
            header, payload = receive(self.workers[address])
        except (EOFError, OSError): # closed, or no answer in time
            self._lose(address)
            return None, None
        if "error" in header:
            raise RuntimeError(f"{address}: {header['error']}")
        return header, payload

    def _lose(self, address):
        """A worker that was only slow finds its connection closed, and forgets its streams."""
        print(f"{address}: lost; its streams move", file=sys.stderr)
        self.workers.pop(address).close()


def run_filter(taps_path, in_path, out_path, addresses):
    x, taps = np.load(in_path), np.load(taps_path)
    keys = range(len(x))
    supervisor = Supervisor(addresses, {key: taps if taps.ndim == 1 else taps[key] for key in keys})
    y = np.empty(x.shape, "f4")
    for at in range(0, x.shape[1], BLOCK):
        n = min(BLOCK, x.shape[1] - at)
        blocks = {key: np.pad(x[key, at:at + n], (0, BLOCK - n)) for key in keys}
        for key, result in supervisor.process(blocks).items():
            y[key, at:at + n] = result[:n]
    np.save(out_path, y)


def main(arguments):
    if arguments[:1] == ["worker"] and len(arguments) <= 2:
        run_worker(arguments[1] if len(arguments) == 2 else "127.0.0.1:0")
    elif arguments[:1] == ["filter"] and len(arguments) >= 5:
        run_filter(*arguments[1:4], arguments[4:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
