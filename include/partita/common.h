// SPDX-License-Identifier: MIT
// Status codes, sample types, and hooks that a caller may install. Every other header includes this
// one.
#ifndef PARTITA_COMMON_H
#define PARTITA_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PARTITA_API __attribute__((visibility("default")))
#else
#define PARTITA_API
#endif

// Marks functions that never allocate, lock or make system calls, for compilers that check their
// callers (clang 20 and later, -Wfunction-effects).
#if defined(__has_attribute)
#if __has_attribute(nonblocking)
#define PARTITA_NONBLOCKING __attribute__((nonblocking))
#endif
#endif
#ifndef PARTITA_NONBLOCKING
#define PARTITA_NONBLOCKING
#endif

#define PARTITA_VERSION_MAJOR 0
#define PARTITA_VERSION_MINOR 1
#define PARTITA_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

// The result of a call that can fail. Unless it is PARTITA_OK, no output argument was changed.
enum partita_status {
    PARTITA_OK = 0,
    PARTITA_ERR_ARG,         // an argument or a struct field is out of range or contradicts another
    PARTITA_ERR_NOMEM,       // an allocation failed; nothing leaked
    PARTITA_ERR_UNSUPPORTED, // well-formed, but no engine can do it within the given options
    PARTITA_ERR_DEVICE,      // the requested device is absent or failed
    PARTITA_ERR_IO,          // a file could not be read or written
    PARTITA_ERR_STATE,       // the state of the object does not allow the call
};

// One line of English for a status; never NULL, also for values that are not a status.
// Threads: any.
PARTITA_API const char *partita_status_string(enum partita_status status);

// "major.minor.patch" of the library that is running; the macros above are those compiled against.
// Threads: any.
PARTITA_API const char *partita_version(void);

// Sample types, by their SigMF names. Complex samples are pairs (real, imaginary), as C99 and C++
// store them.
enum partita_type {
    PARTITA_F32 = 0,
    PARTITA_F64,
    PARTITA_CF32,
    PARTITA_CF64,
    PARTITA_F16,  // storage of forward layers: IEEE 754 binary16 ..
    PARTITA_BF16, // .. or bfloat16; sums are computed in f32
};

// Bytes of one sample: 4, 8, 8, 16, 2, 2; 0 for a value that is not a type. Threads: any.
PARTITA_API size_t partita_type_size(enum partita_type type);

// "f32", "f64", "cf32", "cf64", "f16", "bf16"; "?" for a value that is not a type. Threads: any.
PARTITA_API const char *partita_type_name(enum partita_type type);

// Receives one line of text (without newline) for everything that partita_plan_create rejects; the
// line names the field and its value. It is called on the thread of that call, never from
// partita_stream_process. Plans for a device other than the CPU also report, once, that the device
// failed and where; any call may report that.
struct partita_log {
    void (*line)(void *user, const char *text); // NULL: no log
    void *user;
};

// Memory for the library's own objects. `allocate` returns 64-byte aligned memory or NULL; both
// functions are called on the thread of the create or destroy call. Zero members select the C
// library. FFTW allocates its own small tables without these hooks.
struct partita_allocator {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *memory);
    void *user;
};

#ifdef __cplusplus
}
#endif

#endif
