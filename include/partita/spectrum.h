// SPDX-License-Identifier: MIT
// A signal's transform, block by block, made once and used in any number of calls: one recording against many
// templates, or against itself. Convolution and correlation, in either role, any slice.
#ifndef PARTITA_SPECTRUM_H
#define PARTITA_SPECTRUM_H

#include <partita/plan.h>
#include <partita/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_spectrum;

// Transforms a signal in disjoint blocks.
// Shapes:  x [n] of `type`; copied.
// Ranges:  n >= 1. block: samples of a block, rounded up to what transforms are good at, on a device to a power of two;
//          0 stands for up to 65536, more for signals of many blocks. Signals that are to meet each other need blocks
//          of one size, on one device. Small blocks cost more products, large ones more than a narrow slice needs.
//          options: device, threads, log, allocator, on a device workspace_limit; NULL for defaults; it need not
//          outlive the call, hooks must outlive the spectrum.
// Errors:  PARTITA_ERR_ARG for NULL, no samples, a block beyond 2^27; PARTITA_ERR_DEVICE if the device is not here or
//          fails; PARTITA_ERR_UNSUPPORTED for blocks that a device has no transform for: beyond 2^26, and where there
//          is no cuFFT beyond 8192, of f64 and cf64 4096, and for more than 2^29 blocks there; PARTITA_ERR_NOMEM. The
//          log line says which.
// Memory:  partita_spectrum_bytes: about twice the signal in whole blocks, on the CPU and six more blocks; of a device
//          in its memory.
// Devices: x may be in the device's memory or the host's; then the call takes as much there for a copy.
// Threads: any; a spectrum is immutable and may serve several calls at once.
PARTITA_API enum partita_status partita_spectrum_create(enum partita_type type, const void *x, size_t n, size_t block,
                                                        const struct partita_options *options,
                                                        struct partita_spectrum **ret_spectrum);

// Releases a spectrum. NULL is allowed. Threads: no call may still use it.
PARTITA_API void partita_spectrum_destroy(struct partita_spectrum *spectrum);

// Samples of the signal, of a block; bytes that the spectrum holds. 0 for NULL. Threads: any.
PARTITA_API size_t partita_spectrum_size(const struct partita_spectrum *spectrum);
PARTITA_API size_t partita_spectrum_block(const struct partita_spectrum *spectrum);
PARTITA_API size_t partita_spectrum_bytes(const struct partita_spectrum *spectrum);

// y = the slice of x convolved with h, or of x cross-correlated with the template h (conjugated), as partita_convolve
// and partita_correlate define them. x and h may be the same spectrum.
// Shapes:  y [partita_slice_size(op, size of x, size of h, slice)] of their type; must overlap nothing.
// Errors:  PARTITA_ERR_ARG for NULL, a misaligned y, spectra of different types, blocks or devices (the log of x says
//          which), or an empty slice; PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE if the device fails, from then on.
// Memory:  allocates spectra of some of the slice's blocks; on a device there, as many as take 32 MiB, eight at least,
//          or as the workspace_limit of x allows, one at least, and to correlate as much as h holds. The result does
//          not depend on it.
// Devices: y, and h as it is, may be in the memory of the spectra's device or in the host's: then the call takes as
//          much there for a copy.
// Time:    products of the blocks that meet in the slice and one inverse transform a block of it, with the threads of
//          the options of x.
// Threads: any. The result does not depend on the number of threads.
// Source:  convolution in parts (Stockham 1966); blocks brought together in the spectrum: docs/theory.md, section 7.
PARTITA_API enum partita_status partita_spectrum_convolve(void *y, const struct partita_spectrum *x,
                                                          const struct partita_spectrum *h,
                                                          const struct partita_slice *slice);
PARTITA_API enum partita_status partita_spectrum_correlate(void *y, const struct partita_spectrum *x,
                                                           const struct partita_spectrum *h,
                                                           const struct partita_slice *slice);

// The same with h[m] as it is, transformed for this call into a spectrum that goes with it.
PARTITA_API enum partita_status partita_spectrum_convolve_with(void *y, const struct partita_spectrum *x, const void *h,
                                                               size_t m, const struct partita_slice *slice);
PARTITA_API enum partita_status partita_spectrum_correlate_with(void *y, const struct partita_spectrum *x,
                                                                const void *h, size_t m,
                                                                const struct partita_slice *slice);

#ifdef __cplusplus
}
#endif

#endif
