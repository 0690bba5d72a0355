# SPDX-License-Identifier: MIT
"""Writes the C source of the module partita._partita, and its type stub: build_ffi.py INCLUDE-FOLDER SOURCE STUB"""
import pathlib
import sys

import cdef
import cffi
import stub

MODULE = """
const char *py_log_lines(void);
void py_log_forget(void);
void py_log_line(void *user, const char *text);
struct py_matches { struct partita_match *found; size_t n, capacity; bool failed; };
void py_match(void *context, const struct partita_match *match);
void py_matches_free(struct py_matches *all);
struct py_object { void *object; ...; };
struct py_object *py_object_create(void *object, void (*destroy)(void *object));
void py_object_release(struct py_object *owner);
bool py_object_link(struct py_object *owner, struct py_object *needed);
void py_object_keep_newest(struct py_object *owner);
struct py_stream {
    struct partita_stream *stream;
    void **y;
    void **x;
    size_t outputs, inputs, sample_bytes;
    bool frames_first, in_place;
};
enum partita_status py_stream_process(const struct py_stream *s, char *y, char *x, size_t frames);
enum partita_status py_stream_process_queued(const struct py_stream *s, char *y, char *x, size_t frames, void *queue);
enum partita_status py_run(const struct partita_plan *plan, enum partita_direction direction,
                           struct partita_filter *filter, uintptr_t to, uintptr_t from, uintptr_t taps,
                           uintptr_t bias, const struct partita_call *call);
enum partita_status py_causal_continue(const struct partita_causal *known, uintptr_t y, uintptr_t x, uintptr_t states,
                                       uintptr_t w, uintptr_t bias, uintptr_t indices, uintptr_t seqlens);
struct py_dlpack {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct py_xla_layer {
    struct partita_problem problem;
    enum partita_direction direction;
    int threads;
};
void *py_memo_type(void *given);
void *py_xla_call(void *xla_frame);
"""

# Version 3.11 of Python's limited interface, where meson does not choose it; cffi's choice is older.
LIMITED = """#include <pyconfig.h>
#if !defined Py_LIMITED_API && !defined Py_GIL_DISABLED && !defined Py_DEBUG
#define Py_LIMITED_API 0x030B0000
#endif
"""


def main(include, output, stub_output):
    declarations = cdef.read(pathlib.Path(include) / "partita") + MODULE
    ffi = cffi.FFI()
    ffi.cdef(declarations)
    pathlib.Path(stub_output).write_text(stub.stub(declarations), encoding="utf-8")
    module = (pathlib.Path(__file__).parent / "module.h").read_text(encoding="utf-8")
    ffi.set_source("partita._partita", module, py_limited_api=True)
    ffi.emit_c_code(output)
    emitted = pathlib.Path(output)
    emitted.write_text(LIMITED + emitted.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
