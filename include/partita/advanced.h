// SPDX-License-Identifier: MIT
// What few programs need: transforms of signals that serve many calls, transforms that the calls of
// a training step save for each other, and measured cost models.
#ifndef PARTITA_ADVANCED_H
#define PARTITA_ADVANCED_H

#include <partita/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

// The transform of a signal, block by block, computed once and used in any number of calls: one
// recording against many templates, or against itself. A spectrum may be either operand of a
// convolution or correlation, of which any slice can be computed.
struct partita_spectrum;

// Transforms a signal in disjoint blocks.
// Shapes:  x [n] of `type`; copied.
// Ranges:  n >= 1. block: samples of a block, rounded up to a good transform size, on a device to
//          a power of two; 0 means up to 65536, and more for signals of many blocks. Spectra can
//          be combined only if they have the same block size (partita_spectrum_block of the first
//          is `block` of the second) and are on the same device. Small blocks need more products;
//          large blocks compute more than a narrow slice needs. options: device, threads, log,
//          allocator, and on a device workspace_limit are used, all others ignored; NULL means
//          defaults. The struct need not outlive the call; hooks must outlive the spectrum.
// Errors:  PARTITA_ERR_ARG for NULL, no samples, a block beyond 2^27 or more than 4096 threads;
//          PARTITA_ERR_DEVICE if the device is absent or fails; PARTITA_ERR_UNSUPPORTED for blocks
//          that a device cannot transform (beyond 2^26; without cuFFT beyond 8192, or 4096 for f64
//          and cf64) and for more than 2^29 blocks there; PARTITA_ERR_NOMEM. The log line says
//          which.
// Memory:  partita_spectrum_bytes: about twice the signal in whole blocks, and on the CPU six more
//          blocks. Spectra of a device are in its memory.
// Devices: x may be in the device's memory or in host memory. For host memory the call allocates a
//          copy of x on the device.
// Threads: any; a spectrum is immutable and may serve several calls at once.
PARTITA_API enum partita_status
partita_spectrum_create_sized(enum partita_type type, const void *x, size_t n, size_t block,
                              const struct partita_options *options, size_t options_bytes,
                              struct partita_spectrum **ret_spectrum);
static inline enum partita_status partita_spectrum_create(enum partita_type type, const void *x,
                                                          size_t n, size_t block,
                                                          const struct partita_options *options,
                                                          struct partita_spectrum **ret_spectrum)
{
    return partita_spectrum_create_sized(type, x, n, block, options, sizeof *options, ret_spectrum);
}

// Releases a spectrum. NULL is allowed. Threads: any; no call may still use the spectrum.
PARTITA_API void partita_spectrum_destroy(struct partita_spectrum *spectrum);

// Samples of the signal; samples of a block; bytes that the spectrum holds. 0 for NULL.
// Threads: any.
PARTITA_API size_t partita_spectrum_size(const struct partita_spectrum *spectrum);
PARTITA_API size_t partita_spectrum_block(const struct partita_spectrum *spectrum);
PARTITA_API size_t partita_spectrum_bytes(const struct partita_spectrum *spectrum);

// y = the slice of x convolved with h, or of x cross-correlated with the template h (conjugated),
// as partita_convolve and partita_correlate define them. x and h may be the same spectrum. An
// infinite or NaN sample may make all results of its blocks NaN.
// Shapes:  y [partita_slice_size(op, size of x, size of h, slice)] of their type; must not overlap
//          any operand.
// Errors:  PARTITA_ERR_ARG for NULL, a misaligned y, spectra of different types, blocks or devices
//          (the log of x says which), or an empty slice; PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE if
//          the device fails, from then on.
// Memory:  allocates spectra of some of the slice's blocks. On a device these take 32 MiB, at least
//          eight blocks, or what the workspace_limit of x allows, at least one block; correlation
//          also allocates as much as h holds. The result does not depend on this.
// Devices: y may be in the memory of the spectra's device or in host memory. For host memory the
//          call allocates a copy on the device.
// Time:    products of all pairs of blocks that contribute to the slice, and one inverse transform
//          per block of the slice, with the threads of the options of x.
// Threads: any. The result does not depend on the number of threads.
// Source:  convolution in blocks (Stockham 1966); joining halves in the spectrum: docs/theory.md,
//          section 7.
PARTITA_API enum partita_status partita_spectrum_convolve(void *y, const struct partita_spectrum *x,
                                                          const struct partita_spectrum *h,
                                                          const struct partita_slice *slice);
PARTITA_API enum partita_status partita_spectrum_correlate(void *y,
                                                           const struct partita_spectrum *x,
                                                           const struct partita_spectrum *h,
                                                           const struct partita_slice *slice);

// Saved transforms: a training step computes three convolutions, in any order, of three arrays: x,
// the taps and gy. Calls that are given the same object keep their transforms of x and gy in it for
// each other. (A filter holds the transforms of the taps.)
//
//   struct partita_call call = {.saved = saved};         // of partita_saved_create, once
//   partita_forward(plan, filter, y, x, &call);
//   partita_backward_data(plan, filter, gx, gy, &call);
//   partita_backward_weight(plan, gw, NULL, gy, &call);  // does not read x again
//
// With options.saved_limit the directions of a plan share their tiles where a step then costs less.
// Each of the three calls reads those transforms that are there and leaves the others; results have
// the same bits without the object, and in any order. A step ends when a direction is called again:
// forward, or backward weight with an x, then begins with a new x, a backward call with a new gy.
// Backward weight with NULL for x takes the x of the step; gy may change. Within a step the arrays
// must not change. Backward data adds overlapping tiles, those of a channel in order.
//
// Other layers that read the same x can borrow its transforms: after forward of the object's plan
// has left them, forward and backward weight of another plan take the object, if the directions of
// both plans share transforms, on equal tiles of equal arrays x. Such a call reads the transforms
// of x and leaves none; with other tiles or another x it is refused. Plans whose problems differ in
// output channels, activation or order of taps alone often have equal tiles. problem.boundary must
// be zero.
//
// Without options.saved_limit, forward leaves the transforms of x and backward weight takes them;
// backward data takes no object. Forward has the same bits as without the object. The sums of
// backward weight are the same; unless it would use the tiles of forward anyway, their order
// differs, and the results are equal within rounding errors.

// Bytes that partita_saved_create allocates for the transforms of one x, and of one gy if the
// directions share transforms. 0 if there can be none: forward and backward weight must both be
// planned, with an engine that has such transforms (cpu/tiles, cuda/tiles), and with
// options.saved_limit sharing must cost less.
// Threads: any.
PARTITA_API size_t partita_saved_bytes(const struct partita_plan *plan);

// Creates an object that holds the transforms of one step at a time.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_UNSUPPORTED if partita_saved_bytes is 0;
//          PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE.
// Memory:  partita_saved_bytes and tables; the plan must outlive the object.
// Threads: any; one call at a time may use the object.
PARTITA_API enum partita_status partita_saved_create(const struct partita_plan *plan,
                                                     struct partita_saved **ret_saved);

// Releases the object. NULL is allowed. Threads: any; no call may still use it.
PARTITA_API void partita_saved_destroy(struct partita_saved *saved);

// Bytes of workspace that backward weight needs with the object; options.workspace_limit does not
// bound it.
// Threads: any.
PARTITA_API size_t partita_saved_workspace(const struct partita_saved *saved);

// Creates an empty store of measurements: the cost model of this machine, FFTW's wisdom, and
// choices made with PARTITA_MEASURE. Planning with an empty store is the same as planning without a
// store.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_NOMEM.
// Threads: any.
PARTITA_API enum partita_status partita_wisdom_create(struct partita_wisdom **ret_wisdom);

// Releases a store. NULL is allowed. Threads: any; no plan may still use the store.
PARTITA_API void partita_wisdom_destroy(struct partita_wisdom *wisdom);

// Measures the cost model of this machine (kernels, transforms, memory) and keeps it in the store.
// Time:    under a second, a little more in a build with only FFTW's transforms.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_NOMEM.
// Threads: any; other load on the machine, also a second calibration, falsifies the measurement.
PARTITA_API enum partita_status partita_wisdom_calibrate(struct partita_wisdom *wisdom);

// Reads a file that partita_wisdom_save wrote into the store.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_IO if it cannot be read; PARTITA_ERR_STATE if it
//          is not such a file, is damaged, or belongs to another version or another machine;
//          PARTITA_ERR_NOMEM. The store is then unchanged.
// Threads: any; the store has a lock.
PARTITA_API enum partita_status partita_wisdom_load(struct partita_wisdom *wisdom,
                                                    const char *path);

// Writes the store to a file, through a temporary file and a rename.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_IO; PARTITA_ERR_NOMEM.
// Threads: as partita_wisdom_load.
PARTITA_API enum partita_status partita_wisdom_save(const struct partita_wisdom *wisdom,
                                                    const char *path);

#ifdef __cplusplus
}
#endif

#endif
