// SPDX-License-Identifier: MIT
// Headers of .npy files, and whole arrays in memory; those of layers have up to five dimensions.
#ifndef PARTITA_APPS_NPY_H
#define PARTITA_APPS_NPY_H

#include "base/fault.h"
#include "io/bytes/bytes.h"
#include "io/bytes/temp.h"
#include "io/samples/encoding.h"

enum {
    NPY_DIMENSIONS = 5,
    NPY_HEADER_BYTES = 128, // a multiple of 64, as numpy aligns samples; enough for any shape
};

struct npy_header {
    struct encoding encoding;
    bool fortran; // column-major: the first index varies fastest
    int rank;
    uint64_t shape[NPY_DIMENSIONS];
};

// Reads a header up to the first sample. Types: f2, f4, f8, integers of 1 to 8 bytes, and, unless
// `real`, c8 and c16. The caller checks the shape.
bool npy_header_read(struct source *source, bool real, struct npy_header *ret, struct fault *fault);

void npy_header_compose(unsigned char header[NPY_HEADER_BYTES], const struct npy_header *npy);

// A real array in memory, in C order and native byte order.
struct npy_array {
    const char *name; // of its file
    int rank;
    size_t shape[NPY_DIMENSIONS];
    bool f64;
    void *samples; // 64-byte aligned; npy_array_release frees it
};

// Reads a whole file of a real type. f2 and integers of 1 and 2 bytes become f4, wider integers f8,
// which represents those up to 2^53 exactly. Fortran order is refused, unless both orders are the
// same.
bool npy_array_load(struct npy_array *ret, const char *path, struct fault *fault);

// Allocates the samples of an array whose other fields are set.
bool npy_array_reserve(struct npy_array *array, struct fault *fault);

// Writes `path`, which appears only when it is complete.
bool npy_array_save(const struct npy_array *array, const char *path, struct fault *fault);

// The same for an array that is not in memory: n samples at a time, from sample `first` on, one
// after the other in pipes. npy_file_discard may be called at any time.
struct npy_file {
    struct temp temp;
    struct sink sink;
    size_t bytes; // of a sample
};
bool npy_file_create(struct npy_file *file, const struct npy_array *shape, const char *path,
                     struct fault *fault);
bool npy_file_write(struct npy_file *file, uint64_t first, const void *samples, size_t n,
                    struct fault *fault);
bool npy_file_finish(struct npy_file *file, struct fault *fault);
void npy_file_discard(struct npy_file *file);

void npy_array_release(struct npy_array *array);

// Calls `visit` with the name and the n bytes of each file in an .npz, until it returns false.
typedef bool npz_visit_fn(void *user, const char *name, const void *bytes, size_t n,
                          struct fault *fault);
bool npz_visit(const char *path, npz_visit_fn *visit, void *user, struct fault *fault);

#endif
