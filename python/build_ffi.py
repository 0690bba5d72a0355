# SPDX-License-Identifier: MIT
"""Writes the C source of the module partita._partita: build_ffi.py INCLUDE-FOLDER OUTPUT"""
import pathlib
import sys

import cdef
import cffi

MODULE = """
const char *py_log_lines(void);
void py_log_forget(void);
void py_log_line(void *user, const char *text);
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
"""


def main(include, output):
    ffi = cffi.FFI()
    ffi.cdef(cdef.read(pathlib.Path(include) / "partita"))
    ffi.cdef(MODULE)
    module = (pathlib.Path(__file__).parent / "module.h").read_text(encoding="utf-8")
    ffi.set_source("partita._partita", module, py_limited_api=True)
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
