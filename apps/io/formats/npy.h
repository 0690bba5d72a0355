// SPDX-License-Identifier: MIT
// Headers of .npy files, and whole arrays of them in memory: those of layers have up to five
// dimensions.
#ifndef PARTITA_APPS_NPY_H
#define PARTITA_APPS_NPY_H

#include "base/fault.h"
#include "io/bytes/bytes.h"
#include "io/samples/encoding.h"

enum {
    NPY_DIMENSIONS = 5,
    NPY_HEADER_BYTES =
        128, // numpy aligns samples to 64; the digits of any shape that fits into memory have room
};

struct npy_header {
    struct encoding encoding;
    bool fortran; // the first index is the fastest
    int rank;
    uint64_t shape[NPY_DIMENSIONS];
};

// Reads a header up to the first sample, of types f4 and f8 and, unless `real`, c8 and c16. The
// product of the shape may be anything.
bool npy_header_read(struct source *source, bool real, struct npy_header *ret, struct fault *fault);

void npy_header_compose(unsigned char header[NPY_HEADER_BYTES], const struct npy_header *npy);

// A real array in memory, in C order and the machine's byte order.
struct npy_array {
    const char *name; // of the file it came from
    int rank;
    size_t shape[NPY_DIMENSIONS];
    bool f64;
    void *samples; // 64-byte aligned; npy_array_release frees it
};

// Reads a file of type f4 or f8 whole; Fortran order is refused, unless it is C order as well.
bool npy_array_load(struct npy_array *ret, const char *path, struct fault *fault);

// Allocates the samples of an array whose other fields are set; false, with a fault, without
// memory.
bool npy_array_reserve(struct npy_array *array, struct fault *fault);

// Writes `path`, which appears when it is complete.
bool npy_array_save(const struct npy_array *array, const char *path, struct fault *fault);

void npy_array_release(struct npy_array *array);

#endif
