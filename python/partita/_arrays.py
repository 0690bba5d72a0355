# SPDX-License-Identifier: MIT
"""Arrays of NumPy, PyTorch and others as the library sees them: an address, a sample type, contiguous."""
import sys

import numpy as np

from partita import _device
from partita._partita import ffi, lib

# Names of sample types in the library: value in C, type of NumPy.
TYPES: dict = {
    "f32": (lib.PARTITA_F32, np.dtype(np.float32)),
    "f64": (lib.PARTITA_F64, np.dtype(np.float64)),
    "cf32": (lib.PARTITA_CF32, np.dtype(np.complex64)),
    "cf64": (lib.PARTITA_CF64, np.dtype(np.complex128)),
    "f16": (lib.PARTITA_F16, np.dtype(np.float16)),
    "bf16": (lib.PARTITA_BF16, None),  # NumPy has no such type; PyTorch and ml_dtypes do
}
_NAMES = {
    "float32": "f32", "float64": "f64", "complex64": "cf32", "complex128": "cf64", "float16": "f16", "bfloat16": "bf16",
}
LONG_NAMES = {short: long for long, short in _NAMES.items()}
_DTYPES = {dtype: name for name, (_, dtype) in TYPES.items() if dtype is not None}
_CPU_DEVICES = (1, 3, 11)  # of DLPack: memory of the CPU, and pinned for CUDA or ROCm


def is_tensor(x):
    """Whether x is a tensor of PyTorch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def type_name(dtype):
    """The library's name of a sample type: one of TYPES.

    `dtype` is such a name, one such as "float32", or a type of NumPy, PyTorch or ml_dtypes. TypeError if the library has
    no such samples.
    """
    name = _DTYPES.get(dtype) if isinstance(dtype, np.dtype) else None
    if name is None and isinstance(dtype, str) and dtype in TYPES:
        name = dtype
    if name is None:
        name = _NAMES.get(str(dtype).removeprefix("torch."))
    if name is None and dtype is not None:  # which NumPy takes for float64
        try:
            native = np.dtype(dtype).newbyteorder("=")
        except TypeError:
            native = None
        name = _DTYPES.get(native) or _NAMES.get(getattr(native, "name", None))
    if name is None:
        raise TypeError(f"{dtype} is not a sample type; there are {', '.join(_NAMES)}")
    return name


def itemsize(name):
    """Bytes of a sample."""
    return lib.partita_type_size(TYPES[name][0])


def _other_samples(what, dtype, name):
    """The exception for samples that are not of the type `name`, with what to do about it."""
    dtype = str(dtype)
    own, wanted = _NAMES.get(dtype.removeprefix("torch.")), LONG_NAMES[name]
    remedies = []
    if name.startswith("c") or not dtype.removeprefix("torch.").startswith("complex"):
        remedies.append(f"{what}.to(torch.{wanted})" if dtype.startswith("torch.") else f"{what}.astype({wanted!r})")
    if own is not None:
        remedies.append(f"a filter made for {LONG_NAMES[own]}")
    return TypeError(f"{what} has samples of {dtype}, not {name}: use {', or '.join(remedies)}")


def _from_device(x, name, what, convert, device):
    """An array in the memory of CUDA's device `device`, which is that of the plan; None: the plan computes on the CPU."""
    number = _device.number(x)
    if number is None:
        raise TypeError(f"{what} is on {getattr(x, 'device', 'another device')}; arrays must be in the CPU's memory")
    if number != device:
        reason = _device.why_not(number)
        remedy = (f"make the plan or stream with device=\"cuda:{number}\", or copy {what} to the CPU" if reason is None
                  else f"copy it to the CPU, since this device cannot be used here ({reason})")
        raise TypeError(f"{what} is on cuda:{number}: {remedy}")
    array = _device.Array(x, what)
    if array.type == name:
        return array
    if convert and (name.startswith("c") or not (array.type or "").startswith("c")):
        return array.convert(LONG_NAMES[name])
    raise _other_samples(what, getattr(x, "dtype", array.type), name)


def _from_tensor(x, name, what, convert=False):
    x = x.detach().resolve_conj().resolve_neg().contiguous()
    if _NAMES.get(str(x.dtype).removeprefix("torch.")) == name:
        return x
    if convert and (name.startswith("c") or not x.is_complex()):
        return x.to(getattr(sys.modules["torch"], LONG_NAMES[name]))
    raise _other_samples(what, x.dtype, name)


def _from_numpy(x, name, what, convert=False):
    dtype = TYPES[name][1]
    if x.dtype != dtype:
        convert = convert and dtype is not None and np.can_cast(x.dtype, dtype, "same_kind")
        if not convert and _NAMES.get(x.dtype.newbyteorder("=").name) != name:
            raise _other_samples(what, x.dtype, name)
        if dtype is not None:  # perhaps only the other order of bytes
            return x.astype(dtype, order="C")
    return x if x.flags.c_contiguous and x.flags.aligned else x.copy(order="C")


def from_values(x, dtype, what):
    """Whatever NumPy makes an array of, such as a list; errors call it `what`."""
    try:
        return np.asarray(x, dtype)
    except (TypeError, ValueError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{what}: {error}") from None


def prepare(x, name, what="x", convert=False, device=None):
    """The array itself or, if it must be, a copy: contiguous, with samples of the type `name`.

    `x` is an array of NumPy, a tensor of PyTorch, an array that others export by DLPack, or anything that NumPy makes an
    array of; such numbers are converted to the type. It is in the memory of the CPU or, as a _device.Array then, of the
    CUDA device with the number `device`. TypeError, in which x is called `what`, if it is elsewhere or has other samples;
    `convert` lets these be converted, but not complex ones to real ones.
    """
    if isinstance(x, np.ndarray):
        return _from_numpy(x, name, what, convert)
    if is_tensor(x):
        if x.device.type != "cpu":
            return _from_device(x, name, what, convert, device)
        return _from_tensor(x, name, what, convert)
    if hasattr(x, "__dlpack__"):
        if x.__dlpack_device__()[0] not in _CPU_DEVICES:
            return _from_device(x, name, what, convert, device)
        return _from_numpy(np.from_dlpack(x), name, what, convert)
    if hasattr(x, "dtype"):  # scalars of NumPy and arrays by the buffer protocol
        return _from_numpy(np.asarray(x), name, what, convert)
    dtype = TYPES[name][1]
    if dtype is None:
        raise TypeError(f"{what}: NumPy has no samples of {name}")
    if x is None:
        raise TypeError(f"{what} is None: an array is needed")
    return np.ascontiguousarray(from_values(x, dtype, what))


def prepare_out(out, name, shape, like=None):
    """Checks an array for results and returns it, or a _device.Array if `like` is one. TypeError or ValueError if results
    cannot be written there: another type, shape or layout, or an array that is read-only."""
    what = "out"
    if isinstance(like, _device.Array):
        out, contiguous, writable = like.for_results(out), True, True
        if out.type != name:
            raise TypeError(f"{what} has samples of {getattr(out.array, 'dtype', out.type)}, not {name}")
    elif isinstance(out, np.ndarray):
        if _NAMES.get(out.dtype.name) != name or not out.dtype.isnative:
            raise TypeError(f"{what} has samples of {out.dtype}, not {name}")
        contiguous, writable = out.flags.c_contiguous and out.flags.aligned, out.flags.writeable
    elif is_tensor(out):
        if out.device.type != "cpu":
            raise TypeError(f"{what} is on {out.device}, x in the CPU's memory")
        if _from_tensor(out, name, what).data_ptr() != out.data_ptr():
            raise ValueError(f"{what} is not contiguous")
        contiguous, writable = True, True
    else:
        raise TypeError(f"{what} is of type {type(out).__name__}: an array of NumPy or a tensor is needed")
    if tuple(out.shape) != tuple(shape):
        raise ValueError(f"{what} has shape {tuple(out.shape)}, not {tuple(shape)}")
    if not writable:
        raise ValueError(f"{what} is read-only")
    if not contiguous:
        raise ValueError(f"{what} is not contiguous, or not aligned")
    return out


def empty(shape, name, like):
    """An array for results, of the library of arrays that `like` is of."""
    if isinstance(like, _device.Array):
        return like.empty(shape, LONG_NAMES[name])
    if not isinstance(like, np.ndarray) and is_tensor(like):
        torch = sys.modules["torch"]
        return torch.empty(tuple(shape), dtype=getattr(torch, LONG_NAMES[name]))
    dtype = TYPES[name][1]
    return np.empty(shape, like.dtype if dtype is None else dtype)  # None: bfloat16 of ml_dtypes


def finish(result, like):
    """The result as an array of the kind that the caller's array `like` is, by DLPack if that came by it."""
    if isinstance(result, _device.Array):
        return result.array
    if isinstance(like, np.ndarray) or is_tensor(like) or not hasattr(like, "__array_namespace__"):
        return result
    return like.__array_namespace__().from_dlpack(result)


def address(array, writable=False):
    """The address of the samples of an array that `prepare`, `prepare_out` or `empty` returned, for a parameter void *.

    The caller keeps a reference to the array during the call. ValueError if the array is not contiguous; BufferError if it
    is read-only and `writable`, that is, results are written there.
    """
    if isinstance(array, np.ndarray):
        if array.dtype.kind == "V":
            array = array.view(np.uint16)  # bfloat16 of ml_dtypes has no buffers
    elif isinstance(array, _device.Array):
        return array.pointer
    elif is_tensor(array):
        return ffi.cast("char *", array.data_ptr())
    return ffi.from_buffer(array, require_writable=writable)


def aligned(n_bytes, alignment=64):
    """Memory without values, as an array of bytes whose address is a multiple of `alignment`."""
    memory = np.empty(n_bytes + alignment, np.uint8)
    offset = -int(ffi.cast("uintptr_t", ffi.from_buffer(memory))) % alignment
    return memory[offset:offset + n_bytes]


class _View:
    """Memory of the library with what keeps it: the base of an array that NumPy makes of it."""

    def __init__(self, pointer, shape, dtype, writable, keep):
        self.__array_interface__ = {"data": (int(ffi.cast("uintptr_t", pointer)), not writable), "shape": tuple(shape),
                                    "typestr": dtype.str, "version": 3}
        self._keep = keep


def view(pointer, shape, name, writable, keep):
    """An array of NumPy over memory of the library; `keep` lives as long as the array."""
    return np.asarray(_View(pointer, shape, TYPES[name][1], writable, keep))
