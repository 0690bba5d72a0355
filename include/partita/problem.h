// SPDX-License-Identifier: MIT
// WHAT to compute. A stream, a long signal and a CNN layer are one formula with different axes:
//
//   y[n, k, p] = sum over c, r of  w[k, c, r] * x[n, c, stride*p + dilation*r - pad_begin]
//
// That is PARTITA_CORRELATE. PARTITA_CONVOLVE reads the taps backwards along every axis
// (w[k, c, kernel-1-r]), as filters do. Correlation conjugates complex taps, as
// scipy.signal.correlate does. x is zero outside its size, or what problem.boundary says.
//
// Later versions may add fields to structs of options, problems, taps, calls and results. A
// function that takes or fills such a struct is inline: it passes the struct's size in the program
// to a function of the library whose name ends in _sized. So a program runs with a library that is
// newer or older than its headers. Fields that the program does not know are zero for the library;
// a field that the program sets and the library does not know is an error, PARTITA_ERR_UNSUPPORTED;
// results that the library does not know are zero. (Callers without a C compiler call the functions
// ..._sized.)
#ifndef PARTITA_PROBLEM_H
#define PARTITA_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PARTITA_API __attribute__((visibility("default")))
#else
#define PARTITA_API
#endif

// Marks functions that never allocate, lock or make system calls (but for the one that wakes the
// threads of an idle stream: partita_stream_process), for compilers that check their callers
// (clang 20 and later, -Wfunction-effects).
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

// The result of a call that can fail. Unless it is PARTITA_OK, no ret_ argument was changed. Arrays
// of samples are not changed either, except after PARTITA_ERR_DEVICE, and after PARTITA_ERR_NOMEM
// of a bounded call with samples that are not finite or whose transforms overflow: both leave
// outputs undefined. On a device any call may also return PARTITA_ERR_ARG, PARTITA_ERR_STATE or
// PARTITA_ERR_UNSUPPORTED because CUDA refuses its work: its results are then undefined, and so are
// the taps of a filter that it updates.
enum partita_status {
    PARTITA_OK = 0,
    PARTITA_ERR_ARG,         // an argument or a struct field is out of range or contradicts another
    PARTITA_ERR_NOMEM,       // an allocation failed; nothing leaked
    PARTITA_ERR_UNSUPPORTED, // well-formed, but no engine can do it within the given options
    PARTITA_ERR_DEVICE,      // the requested device is absent or failed
    PARTITA_ERR_IO,          // a file could not be read or written
    PARTITA_ERR_STATE,       // the state of the object does not allow the call
};

// Describes a status in one line of English; never NULL, even for values that are not a status.
// Threads: any.
PARTITA_API const char *partita_status_string(enum partita_status status);

// "major.minor.patch" of the library at run time; the macros PARTITA_VERSION_MAJOR, _MINOR and
// _PATCH are the version of the headers. Threads: any.
PARTITA_API const char *partita_version(void);

// Sample types, by their SigMF names. Complex samples are pairs (real, imaginary), as C99 and C++
// store them.
enum partita_type {
    PARTITA_TYPE_DEFAULT = 0, // f32, unless a field names another default
    PARTITA_F32,
    PARTITA_F64,
    PARTITA_CF32,
    PARTITA_CF64,
    PARTITA_F16,  // IEEE 754 binary16: storage of layers, computed in f32
    PARTITA_BF16, // bfloat16: likewise
};

// Bytes of one sample: 4, 8, 8, 16, 2, 2 from PARTITA_F32 on, 4 for PARTITA_TYPE_DEFAULT; 0 for a
// value that is not a type.
// Threads: any.
PARTITA_API size_t partita_type_size(enum partita_type type);

// "f32", "f64", "cf32", "cf64", "f16", "bf16"; "?" for a value that is not a type. Threads: any.
PARTITA_API const char *partita_type_name(enum partita_type type);

// Receives a line of text (without newline) for each call that fails, which says why: it names the
// argument or field, its value and what it may be. It is called on the thread of that call. No line
// is written for PARTITA_ERR_NOMEM and by functions that are real-time safe: partita_bank_open and
// those marked PARTITA_NONBLOCKING, but for partita_stream_process_queued. When a device fails, the
// call that notices reports it once, which may be partita_stream_process. The library does not
// lock: a function that several threads may reach must be thread-safe.
//
// Calls without a log or an object that has one (NULL, functions of wisdom) write no lines, unless
// the environment variable PARTITA_LOG is "stderr" when the library first looks for a log: they
// then use partita_log_stderr.
struct partita_log {
    void (*line)(void *user, const char *text); // NULL: no log
    void *user;
};

// A function for partita_log: writes "partita: ", the text and a newline to stderr. `user` is not
// used.
// Threads: any.
PARTITA_API void partita_log_stderr(void *user, const char *text);

// Memory for the library's own objects. `allocate` returns 64-byte aligned memory or NULL; both
// functions are called on the thread of the create or destroy call. Members that are zero select
// the C library's functions. FFTW allocates its own small tables without these hooks.
struct partita_allocator {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *memory);
    void *user;
};

enum { PARTITA_MAX_RANK = 3 };

// No bound. As a size: the axis has no end, the problem is a stream. As a latency: any latency is
// allowed.
#define PARTITA_UNBOUNDED SIZE_MAX

// What a problem computes: the formulas above.
enum partita_op {
    PARTITA_CONVOLVE = 0,
    PARTITA_CORRELATE,
};

// Applied by forward to each sum after the bias, before the sum is stored.
enum partita_activation {
    PARTITA_LINEAR = 0, // nothing
    PARTITA_RELU,       // negative sums become 0; NaN stays
};

// What surrounds x, in terms of the samples a b c d of one axis. Other libraries' names for it, of
// NumPy (pad), SciPy (ndimage), OpenCV (BORDER_...) and PyTorch (padding_mode), are on the right;
// in scipy.signal.convolve2d CONSTANT is fill, SYMMETRIC symm and WRAP wrap.
enum partita_boundary {
    PARTITA_BOUNDARY_ZERO = 0,  // 0 0 0 a b c d 0 0 0  constant, constant, CONSTANT, zeros
    PARTITA_BOUNDARY_CONSTANT,  // v v v a b c d v v v  constant, constant, CONSTANT, none
    PARTITA_BOUNDARY_EDGE,      // a a a a b c d d d d  edge, nearest, REPLICATE, replicate
    PARTITA_BOUNDARY_REFLECT,   // d c b a b c d c b a  reflect, mirror, REFLECT_101, reflect
    PARTITA_BOUNDARY_SYMMETRIC, // c b a a b c d d c b  symmetric, reflect, REFLECT, none
    PARTITA_BOUNDARY_WRAP,      // b c d a b c d a b c  wrap, wrap, WRAP, circular
};

// Describes a problem. Plain data: zero-initialise it and set what differs; a zero means the
// default given in brackets. A field that has no meaning for the kind of problem must be zero, and
// so must the fields of an axis beyond the rank, of which kernel, size, stride and dilation may
// also be 1. Otherwise partita_plan_create rejects the problem, and the log names the field.
//
// A bounded problem is computed by partita_forward on x[batch][in_channels][size] and
// y[batch][out_channels][output size], or with `channels_last` on these with the channels
// innermost,
//   output size = floor((up*size + pad_begin + pad_end - dilation*(kernel-1) - 1) / stride) + 1.
// Padding may be negative: then that many samples at the edge of the result are not computed. Every
// slice of a full convolution is thus a problem of its own and costs no more than the slice.
//
// A stream (size[0] = PARTITA_UNBOUNDED, rank 1, batch 1) is causal: pad_begin is
// dilation*(kernel-1) by definition, so y[p] needs x up to stride*p only, and the padding fields
// must be zero.
struct partita_problem {
    // Type of x and y [f32]. PARTITA_F16 and PARTITA_BF16 are allowed in bounded problems, by the
    // engines for layers and in all directions: arrays are converted to f32 when they are read, and
    // results are rounded to nearest even from sums in f32, those of f16 beyond 65504 to infinity.
    // Where the processor has AVX512-BF16, direct sums and matrix products multiply bf16 as it is,
    // and count denormal numbers as 0.
    enum partita_type signal;
    // Type of w [that of the signal]: that of the signal, or for a complex signal its real
    // counterpart.
    enum partita_type taps;
    enum partita_op op; // [convolve]
    int rank;           // number of axes, 1 to 3 [up to the last axis that has a size]
    size_t batch;       // independent inputs [1]
    // Every output sums over the inputs of its group [1; no default for out_channels if there are
    // several inputs].
    size_t in_channels, out_channels;
    // Divides both channel counts [1]; w is [out_channels][in_channels/groups][kernel].
    size_t groups;
    size_t kernel[PARTITA_MAX_RANK];   // taps along each axis [1]
    size_t size[PARTITA_MAX_RANK];     // samples of x along each axis; at least 1, no default
    size_t stride[PARTITA_MAX_RANK];   // distance between outputs: decimation [1]
    size_t dilation[PARTITA_MAX_RANK]; // distance between taps [1]
    // Ghost cells before and after x, which are zeros unless `boundary` says otherwise [0];
    // negative values crop.
    ptrdiff_t pad_begin[PARTITA_MAX_RANK], pad_end[PARTITA_MAX_RANK];
    // Streams: the largest usual call in frames, for planning [1024]. Calls of any size work.
    size_t block;
    size_t latency; // streams: the largest added delay allowed, in input frames [0]
    enum partita_activation activation; // real bounded problems, forward [linear]
    // Streams: a promise that every call holds a multiple of `block` frames; `block` must then be a
    // multiple of 16. The outputs of a call may then be computed after its whole block is known,
    // which makes long filters cheaper at the same latency [false: any call].
    bool whole_blocks;
    // Bounded problems of two axes: a promise that the taps of each path (input channel to output
    // channel) are products of a factor of their row and a factor of their column, up to rounding.
    // Engines that filter one axis after the other apply only with this promise, and reject a
    // filter that breaks it (PARTITA_ERR_ARG); other engines ignore it [false].
    bool separable;
    // Bounded problems of real types, on the CPU, without `up`: x is [batch][size][in_channels] and
    // y is [batch][output size][out_channels], as PyTorch's memory format channels_last has them.
    // The taps stay [out_channels][in_channels/groups][kernel] [false].
    bool channels_last;
    bool reserved; // must be false
    // Problems of one axis: up - 1 zeros are inserted after each sample of x before it is filtered;
    // stride, dilation and padding count these zeros, too. With a stride this resamples by
    // up/stride. No zero is multiplied, and no output computed that the stride drops. All branches
    // of the taps are as long as the longest: an infinite or NaN sample may therefore reach one
    // more output of a branch than the taps do. At most 2^20.
    // For the whole result of scipy.signal.upfirdn: pad_begin = kernel - 1, pad_end = kernel - up.
    // Forward on the CPU, of f32, f64 and complex types, without activation and bias [1].
    size_t up;
    // Bounded problems without `up`, on the CPU: the values of the padding (ghost cells) along
    // every axis. Backward weight multiplies gradients by them, backward data adds the gradients of
    // ghost cells to those of the samples that they copy; f16 and bf16 are rounded after each of
    // these additions. The padding of an axis of n samples is at most n - 1 with
    // PARTITA_BOUNDARY_REFLECT, and at most n with _SYMMETRIC and _WRAP. A call extends x in its
    // workspace, which is larger by the extended x than without a boundary [zero].
    enum partita_boundary boundary;
    // The v of PARTITA_BOUNDARY_CONSTANT, which is of real types only, rounded to the signal's type
    // [0].
    double boundary_value;
};

// Output samples of a bounded problem along each axis; 1 for axes beyond the rank.
// Errors:  PARTITA_ERR_ARG if the problem is malformed, is a stream, or has no output.
// Threads: any.
PARTITA_API enum partita_status
partita_problem_output_size_sized(const struct partita_problem *problem, size_t problem_bytes,
                                  size_t ret_size[PARTITA_MAX_RANK]);
static inline enum partita_status partita_problem_output_size(const struct partita_problem *problem,
                                                              size_t ret_size[PARTITA_MAX_RANK])
{
    return partita_problem_output_size_sized(problem, sizeof *problem, ret_size);
}

// Which outputs to compute, with SciPy's names.
enum partita_mode {
    PARTITA_FULL = 0, // everything: n + m - 1 samples
    PARTITA_SAME,     // n samples, centred on the full result
    PARTITA_VALID,    // where both operands overlap completely: max(n, m) - min(n, m) + 1 samples
    PARTITA_RANGE,    // [first, last) of the full result, which is zero outside its bounds
};

// A slice of a result; NULL means PARTITA_FULL. `first` and `last` belong to PARTITA_RANGE and must
// be 0 otherwise. For convolution they index the full result from 0; for correlation they are lags:
// y[lag] = sum_i x[i + lag] conj(h[i]), and the full result holds the lags -(m-1) to n-1.
struct partita_slice {
    enum partita_mode mode;
    ptrdiff_t first, last;
};

// Number of samples in a slice of x[n] with h[m]; 0 if the slice is empty or malformed, or n or m
// is 0.
// Threads: any.
PARTITA_API size_t partita_slice_size(enum partita_op op, size_t n, size_t m,
                                      const struct partita_slice *slice);

// The problem whose outputs are a slice of x[n] with h[m], for callers who want a plan:
// partita_forward with call.taps computes what partita_convolve or partita_correlate would.
// Errors:  PARTITA_ERR_ARG if the slice is empty or malformed, or n or m is 0.
// Threads: any.
PARTITA_API enum partita_status
partita_slice_problem_sized(enum partita_op op, enum partita_type type, size_t n, size_t m,
                            const struct partita_slice *slice, struct partita_problem *ret_problem,
                            size_t problem_bytes);
static inline enum partita_status partita_slice_problem(enum partita_op op, enum partita_type type,
                                                        size_t n, size_t m,
                                                        const struct partita_slice *slice,
                                                        struct partita_problem *ret_problem)
{
    return partita_slice_problem_sized(op, type, n, m, slice, ret_problem, sizeof *ret_problem);
}

#ifdef __cplusplus
}
#endif

#endif
