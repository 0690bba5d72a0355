// SPDX-License-Identifier: MIT
// The transform of a signal, block by block, computed once and used in any number of calls: one
// recording against many templates, or against itself. Convolution and correlation, in either role,
// any slice.
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
// Ranges:  n >= 1. block: samples of a block, rounded up to a good transform size, on a device to a
//          power of two; 0 means up to 65536, and more for signals of many blocks. Spectra can be
//          combined only if they have the same block size and are on the same device. Small blocks
//          cost more products; large blocks cost more than a narrow slice needs. options: device,
//          threads, log, allocator, and on a device workspace_limit are used; NULL means defaults.
//          The struct need not outlive the call; hooks must outlive the spectrum.
// Errors:  PARTITA_ERR_ARG for NULL, no samples, or a block beyond 2^27; PARTITA_ERR_DEVICE if the
//          device is absent or fails; PARTITA_ERR_UNSUPPORTED for blocks that a device cannot
//          transform (beyond 2^26; without cuFFT beyond 8192, or 4096 for f64 and cf64) and for
//          more than 2^29 blocks there; PARTITA_ERR_NOMEM. The log line says which.
// Memory:  partita_spectrum_bytes: about twice the signal in whole blocks, and on the CPU six more
//          blocks. Spectra of a device are in its memory.
// Devices: x may be in the device's memory or in host memory. For host memory the call allocates a
//          copy of x on the device.
// Threads: any; a spectrum is immutable and may serve several calls at once.
PARTITA_API enum partita_status partita_spectrum_create(enum partita_type type, const void *x,
                                                        size_t n, size_t block,
                                                        const struct partita_options *options,
                                                        struct partita_spectrum **ret_spectrum);

// Releases a spectrum. NULL is allowed. Threads: any; no call may still use the spectrum.
PARTITA_API void partita_spectrum_destroy(struct partita_spectrum *spectrum);

// Samples of the signal; samples of a block; bytes that the spectrum holds. 0 for NULL.
// Threads: any.
PARTITA_API size_t partita_spectrum_size(const struct partita_spectrum *spectrum);
PARTITA_API size_t partita_spectrum_block(const struct partita_spectrum *spectrum);
PARTITA_API size_t partita_spectrum_bytes(const struct partita_spectrum *spectrum);

// y = the slice of x convolved with h, or of x cross-correlated with the template h (conjugated),
// as partita_convolve and partita_correlate define them. x and h may be the same spectrum.
// Shapes:  y [partita_slice_size(op, size of x, size of h, slice)] of their type; must overlap
//          nothing.
// Errors:  PARTITA_ERR_ARG for NULL, a misaligned y, spectra of different types, blocks or devices
//          (the log of x says which), or an empty slice; PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE if
//          the device fails, from then on.
// Memory:  allocates spectra of some of the slice's blocks. On a device these take 32 MiB, at least
//          eight blocks, or what the workspace_limit of x allows, at least one block; correlation
//          also allocates as much as h holds. The result does not depend on this.
// Devices: y, and an h that is given as samples, may be in the memory of the spectra's device or in
//          host memory. For host memory the call allocates a copy on the device.
// Time:    products of the blocks that meet in the slice, and one inverse transform per block of
//          the slice, with the threads of the options of x.
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

// The same with h[m] given as samples, which the call transforms into a spectrum compatible with x.
PARTITA_API enum partita_status partita_spectrum_convolve_with(void *y,
                                                               const struct partita_spectrum *x,
                                                               const void *h, size_t m,
                                                               const struct partita_slice *slice);
PARTITA_API enum partita_status partita_spectrum_correlate_with(void *y,
                                                                const struct partita_spectrum *x,
                                                                const void *h, size_t m,
                                                                const struct partita_slice *slice);

#ifdef __cplusplus
}
#endif

#endif
