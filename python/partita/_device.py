# SPDX-License-Identifier: MIT
"""Arrays of other libraries in the memory of a CUDA device, by DLPack.

A queue is a CUDA stream on which their library works. Calls with arrays of PyTorch and CuPy put their work on the current
queue and do not wait. Other libraries do not say which queue they use: there the producer orders its work before CUDA's
default stream, which calls without a queue respect, and the call waits.
"""
import ctypes
import sys

from partita._partita import ffi, lib

_CUDA = (2, 13)    # device types of DLPack: CUDA, and managed by CUDA
_DEFAULT_QUEUE = 1  # cudaStreamLegacy; DLPack's number for it as well
# Code and bits of DLPack's types.
_TYPES = {(2, 16): "f16", (4, 16): "bf16", (2, 32): "f32", (2, 64): "f64", (5, 64): "cf32", (5, 128): "cf64"}
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


class _Standard:
    """What calls need of a library that follows the array API standard, for example JAX."""

    def __init__(self, namespace, device):
        self._namespace, self._device = namespace, device

    def queue(self):
        return None

    def wait(self):
        pass

    def empty(self, shape, dtype):
        return self._namespace.empty(tuple(shape), dtype=getattr(self._namespace, dtype), device=self._device)

    def plain(self, x):
        return x

    def convert(self, x, dtype):
        return self._namespace.astype(x, getattr(self._namespace, dtype))


class _Torch(_Standard):
    """What calls need of PyTorch."""

    def queue(self):
        return self._namespace.cuda.current_stream(self._device).cuda_stream or _DEFAULT_QUEUE

    def wait(self):
        self._namespace.cuda.synchronize(self._device)

    def plain(self, x):
        return x.detach().resolve_conj().resolve_neg().contiguous()

    def convert(self, x, dtype):
        return x.to(getattr(self._namespace, dtype))


class _CuPy(_Standard):
    """What calls need of CuPy."""

    def queue(self):
        with self._device:
            return self._namespace.cuda.get_current_stream().ptr or _DEFAULT_QUEUE

    def wait(self):
        self._device.synchronize()

    def empty(self, shape, dtype):
        with self._device:
            return self._namespace.empty(tuple(shape), dtype)

    def plain(self, x):
        with self._device:
            return self._namespace.ascontiguousarray(x)

    def convert(self, x, dtype):
        with self._device:
            return x.astype(dtype)


def _library_of(x):
    """Neither library is imported for that: who has its arrays has it."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(x, torch.Tensor):
        return _Torch(torch, x.device)
    if cupy is not None and isinstance(x, cupy.ndarray):
        return _CuPy(cupy, x.device)
    return _Standard(x.__array_namespace__(), x.device)


def number(x):
    """The number of the CUDA device in whose memory an array is; None if it is in no such memory."""
    try:
        kind, index = x.__dlpack_device__()
    except ValueError:  # of PyTorch for devices that DLPack does not know
        return None
    return int(index) if int(kind) in _CUDA else None


def why_not(index):
    """Why plans cannot use a device; None if they can."""
    text = ffi.new("char [512]")
    status = lib.partita_device_describe(f"cuda:{index}".encode(), text, len(text))
    return None if status == lib.PARTITA_OK else ffi.string(text).decode(errors="replace")


class Array:
    """An array of another library, `array`, in the memory of a CUDA device.

    `library` is what calls need of its library (_Torch, _CuPy or _Standard), `queue` that library's current queue, None if
    it is not known. `type` is this library's name of the sample type, None if it has none, `pointer` the address of the
    first sample.
    """

    __slots__ = ("array", "library", "queue", "shape", "type", "pointer", "_capsule")

    def __init__(self, x, what, library=None):
        self.library, self.array = library, x
        if library is None:
            self.library = _library_of(x)
            self.array = self.library.plain(x)
        self.queue = self.library.queue()
        # The capsule keeps the memory. The producer orders its work before this queue.
        self._capsule = self.array.__dlpack__(stream=_DEFAULT_QUEUE if self.queue is None else self.queue)
        tensor = ffi.cast("struct py_dlpack *", _pointer_of(self._capsule, b"dltensor"))
        self.shape = tuple(tensor.shape[0:tensor.ndim])
        self.type = _TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
        self.pointer = ffi.cast("char *", tensor.data) + tensor.byte_offset
        if tensor.strides and not _is_contiguous(self.shape, tensor.strides[0:tensor.ndim]):
            raise ValueError(f"{what} is not contiguous")

    def order_before_waiting_calls(self):
        """Calls without a queue, which wait, find the samples complete."""
        if self.queue is not None:
            self.array.__dlpack__(stream=_DEFAULT_QUEUE)

    def for_results(self, out):
        """An array of the caller's for results of calls with this one."""
        if type(out) is not type(self.array) or number(out) != number(self.array):
            raise TypeError(f"out is of type {type(out).__name__}: an array of {type(self.array).__name__} on the same "
                            "device is needed")
        if self.queue is None:
            raise TypeError(f"out: arrays of {type(out).__name__} are written by their own library only")
        return Array(out, "out", self.library)

    def empty(self, shape, dtype):
        """A new array of the same library on the same device."""
        return Array(self.library.empty(shape, dtype), "out", self.library)

    def convert(self, dtype):
        """The same numbers in another type."""
        return Array(self.library.convert(self.array, dtype), "x", self.library)


def _is_contiguous(shape, strides):
    expected = 1
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n != 1 and stride != expected and 0 not in shape:
            return False
        expected *= n
    return True
