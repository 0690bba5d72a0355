# SPDX-License-Identifier: MIT
"""Arrays on CUDA devices, on the stand-in for a GPU of tests/hostdev: device_checks.py HOSTDEV CHECK

`cupy` is here a module of a few lines over the stand-in, where queued work runs only when its queue is waited for. The
checks have a process of their own, since PyTorch brings another CUDA runtime along.
"""
import ctypes
import gc
import sys
import types

import numpy as np

import partita

HOSTDEV = ctypes.CDLL(sys.argv[1])
ANY_DIRECTION, NON_BLOCKING = 4, 1


def cuda(name, *arguments):
    status = getattr(HOSTDEV, name)(*arguments)
    assert status == 0, f"{name}: {status}"


class Tensor(ctypes.Structure):
    """A DLManagedTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))


class Device:
    """What CuPy calls Device."""

    waits = 0

    def __init__(self, id):
        self.id = id

    def __enter__(self):
        cuda("cudaSetDevice", self.id)

    def __exit__(self, *exception):
        cuda("cudaSetDevice", 0)

    def synchronize(self):
        Device.waits += 1
        cuda("cudaStreamSynchronize", queue)


class Memory:
    """An array in the memory of a device of the stand-in."""

    queues = []  # that arrays were exported for

    def __init__(self, shape, dtype, device=0):
        self.shape, self.dtype, self.device = tuple(shape), np.dtype(dtype), Device(device)
        self.memory = ctypes.c_void_p()
        with self.device:
            cuda("cudaMalloc", ctypes.byref(self.memory), max(self.nbytes, 1))

    @property
    def nbytes(self):
        return self.dtype.itemsize * int(np.prod(self.shape))

    def __dlpack_device__(self):
        return 2, self.device.id

    def __dlpack__(self, *, stream=None):
        Memory.queues.append(stream)
        self.sizes = (ctypes.c_int64 * len(self.shape))(*self.shape)
        code = {"f": 2, "c": 5, "u": 1}[self.dtype.kind]
        # 16 bytes before the samples, as libraries have it that export parts of arrays.
        self.tensor = Tensor(self.memory.value - 16, 2, self.device.id, len(self.shape), code, 8 * self.dtype.itemsize, 1,
                             self.sizes, None, 16)
        return new_capsule(ctypes.addressof(self.tensor), b"dltensor", None)

    def astype(self, dtype):
        return on_device(self.get().astype(dtype), type(self), self.device.id)

    def get(self):
        host = np.empty(self.shape, self.dtype)
        cuda("cudaMemcpy", host.ctypes.data_as(ctypes.c_void_p), self.memory, self.nbytes, ANY_DIRECTION)
        return host


class Array(Memory):
    """An array of CuPy."""


class Standard(Memory):
    """An array of a library that does not say on which queue it works."""

    def __array_namespace__(self):
        return types.SimpleNamespace(empty=lambda shape, dtype, device: Standard(shape, dtype, device.id),
                                     float32=np.float32, uint8=np.uint8)


def on_device(host, kind=Array, device=0):
    array = kind(host.shape, host.dtype, device)
    cuda("cudaMemcpy", array.memory, host.ctypes.data_as(ctypes.c_void_p), host.nbytes, ANY_DIRECTION)
    return array


def queued():
    """Operations that have not run."""
    HOSTDEV.hostdev_queued.restype = ctypes.c_size_t
    return HOSTDEV.hostdev_queued()


queue = ctypes.c_void_p()
cuda("cudaStreamCreateWithFlags", ctypes.byref(queue), NON_BLOCKING)
cupy = types.ModuleType("cupy")
cupy.ndarray, cupy.empty, cupy.ascontiguousarray = Array, Array, lambda x: x
cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=queue.value))
random = np.random.default_rng(1)
LAYER = partita.Problem(op="correlate", kernel=3, size=(10, 12), pad=1, in_channels=4, out_channels=6)


def noise(shape):
    return random.standard_normal(shape).astype(np.float32)


def refused(error, text, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except error as exception:
        assert text in str(exception), exception
    else:
        raise AssertionError(f"not refused: {text}")


def plans():
    """All directions are queued, and give the bits of calls that wait."""
    plan = partita.Plan(LAYER, device="cuda:0")
    w, b, x, gy = noise(LAYER.taps_shape), noise(6), noise(LAYER.input_shape), noise(LAYER.output_shape)
    filter = plan.filter(on_device(w), on_device(b))
    assert set(Memory.queues) == {queue.value, 1}  # making a filter waits, on the default queue
    Memory.queues.clear()
    y, gx = plan.forward(filter, on_device(x)), plan.backward_data(filter, on_device(gy))
    gw, gb = plan.backward_weight(on_device(x), on_device(gy)), plan.backward_bias(on_device(gy))
    assert queued() and set(Memory.queues) == {queue.value} and type(y) is Array
    cuda("cudaStreamSynchronize", queue)
    for got, expected in ((y, plan.forward(filter, x)), (gx, plan.backward_data(filter, gy)),
                          (gw, plan.backward_weight(x, gy)), (gb, plan.backward_bias(gy))):
        np.testing.assert_allclose(got.get(), expected, rtol=1e-5, atol=1e-5)
    out = Array(LAYER.output_shape, np.float32)
    filter.update(on_device(2 * w), on_device(b))
    assert plan.forward(filter, on_device(x), out) is out and queued()
    cuda("cudaStreamSynchronize", queue)
    np.testing.assert_allclose(out.get() - b[:, None, None], 2 * (y.get() - b[:, None, None]), rtol=1e-4, atol=1e-4)


def mixed():
    """A call whose arrays have not one queue waits, and each array with a queue is complete before."""
    plan = partita.Plan(LAYER, device="cuda:0")
    w, b, x, gy = noise(LAYER.taps_shape), noise(6), noise(LAYER.input_shape), noise(LAYER.output_shape)
    expected = plan.backward_weight(x, gy)
    for operands, exports in (((on_device(x), gy), [queue.value, 1]),
                              ((on_device(x), on_device(gy, Standard)), [1, queue.value, 1, 1]),
                              ((on_device(x, Standard), on_device(gy)), [queue.value, 1, queue.value, 1, 1])):
        Memory.queues.clear()
        gw = plan.backward_weight(*operands)
        assert not queued() and Memory.queues == exports, Memory.queues
        np.testing.assert_allclose(gw if type(gw) is np.ndarray else gw.get(), expected, rtol=1e-5, atol=1e-5)
    filter = plan.filter(w, b)
    Memory.queues.clear()
    filter.update(2 * w, on_device(2 * b))
    assert Memory.queues == [queue.value, 1], Memory.queues
    np.testing.assert_allclose(plan.forward(filter, x), 2 * plan.forward(plan.filter(w, b), x), rtol=1e-5, atol=1e-5)


def lifetimes():
    """A filter that nobody holds lasts until the work that uses it is done."""
    plan = partita.Plan(LAYER, device="cuda:0")
    w, x = noise(LAYER.taps_shape), noise(LAYER.input_shape)
    Device.waits = 0
    y = plan.forward(plan.filter(w), on_device(x))
    gc.collect()
    assert Device.waits == 1 and not queued()
    np.testing.assert_allclose(y.get(), plan.once(x, w), rtol=1e-5, atol=1e-5)


def others():
    """Calls with arrays of a library without a queue wait."""
    plan = partita.Plan(LAYER, device="cuda:1")
    w, x = noise(LAYER.taps_shape), noise(LAYER.input_shape)
    Memory.queues.clear()
    y = plan.forward(plan.filter(w), on_device(x, Standard, 1))
    assert type(y) is Standard and not queued() and set(Memory.queues) == {1}
    np.testing.assert_allclose(y.get(), plan.once(x, w), rtol=1e-5, atol=1e-5)
    stream = partita.Stream(noise(300), device="cuda:1")
    refused(TypeError, "Standard does not say on which CUDA stream", stream.process, on_device(noise(4), Standard, 1))
    refused(TypeError, "written by their own library only", plan.forward, plan.filter(w), on_device(x, Standard, 1),
            Standard(LAYER.output_shape, np.float32, 1))


def streams():
    """Calls are queued and give what one call of NumPy's arrays gives; the tail, states and resets fit."""
    taps, x = noise((2, 300)), noise((2, 1000))
    stream, expected = (partita.Stream(taps, block=64, device="cuda:0") for _ in range(2))
    parts = [stream.process(on_device(np.ascontiguousarray(x[:, at:at + 125]))) for at in range(0, 1000, 125)]
    assert queued()
    state = stream.save()
    tail = stream.drain()
    stream.restore(state)
    again = stream.drain()
    cuda("cudaStreamSynchronize", queue)
    whole = np.concatenate([part.get() for part in [*parts, tail]], axis=1)
    np.testing.assert_array_equal(whole[:, :1000], expected.process(x))
    np.testing.assert_array_equal(whole[:, 1000:], expected.drain())
    np.testing.assert_array_equal(again.get(), tail.get())
    refused(partita.StateError, "reset()", stream.process, x)
    stream.reset()
    np.testing.assert_array_equal(stream.process(x), whole[:, :1000])
    refused(partita.StateError, "", stream.process, on_device(x))
    frames = partita.Stream(taps, device="cuda:0", frames_first=True)
    refused(ValueError, "[channels, frames]", frames.process, on_device(np.ascontiguousarray(x.T)))


def banks():
    """Slots on a device give what those of the CPU give; blocks that no quanta divide are refused."""
    taps, x = noise((1, 1, 700)), noise((30, 32))
    results = []
    for device in ("cpu", "cuda:0"):
        bank = partita.Bank(slots=3, n_taps=700, block=32, device=device)
        slot = bank.open(bank.filter(taps))
        blocks = []
        for block in x:
            bank.input(slot)[:] = block
            bank.process()
            blocks.append(bank.output(slot).copy())
        assert bank.status is None
        results.append(np.concatenate(blocks, axis=1))
    np.testing.assert_allclose(results[0], results[1], atol=1e-4)
    refused(partita.UnsupportedError, "multiple of 16", partita.Bank, slots=1, n_taps=10, block=50, device="cuda:0")


def refusals():
    """Arrays that are elsewhere, or do not fit."""
    cpu, plan = partita.Plan(LAYER), partita.Plan(LAYER, device="cuda:0")
    w, x = noise(LAYER.taps_shape), noise(LAYER.input_shape)
    refused(TypeError, 'make the plan or stream with device="cuda:0"', cpu.forward, cpu.filter(w), on_device(x))
    refused(TypeError, "x is on cuda:1", plan.forward, plan.filter(w), on_device(x, Array, 1))
    refused(TypeError, "x has samples of float64, not f32", plan.forward, plan.filter(w), on_device(x.astype(float)))
    refused(ValueError, "x has shape (2, 3)", plan.forward, plan.filter(w), on_device(noise((2, 3))))
    refused(TypeError, "out is of type ndarray", plan.forward, plan.filter(w), on_device(x), x)
    refused(TypeError, "workspace", plan.forward, plan.filter(w), on_device(x), workspace=plan.new_workspace())
    assert plan.filter(on_device(w.astype(float)))  # taps are converted


sys.modules["cupy"] = cupy
globals()[sys.argv[2]]()
