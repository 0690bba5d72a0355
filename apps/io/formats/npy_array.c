// SPDX-License-Identifier: MIT
// Whole .npy arrays: see npy.h.
#include "base/memory.h"
#include "io/bytes/temp.h"
#include "io/samples/samples.h"
#include "npy.h"

// The number of samples; false if they exceed the address space.
static bool count_samples(const struct npy_array *array, size_t *ret_n)
{
    size_t n = 1, bytes;
    *ret_n = 0;
    for (int i = 0; i < array->rank; i++)
        if (__builtin_mul_overflow(n, array->shape[i], &n)) return false;
    *ret_n = n;
    return !__builtin_mul_overflow(n, 8 + 64, &bytes) && bytes < SIZE_MAX / 2;
}

bool npy_array_reserve(struct npy_array *array, struct fault *fault)
{
    size_t n;
    if (!count_samples(array, &n))
        return fault_set(fault, "%s: more samples than memory can hold", array->name);
    array->samples = memory_allocate(n * (array->f64 ? 8 : 4));
    return array->samples || memory_fault(fault, "%s", array->name);
}

static bool npy_array_set_shape(const struct npy_header *header, struct npy_array *ret,
                                struct fault *fault)
{
    int longer = 0; // dimensions above 1; with only one of them both orders are the same
    for (int i = 0; i < header->rank; i++) {
        if (header->shape[i] > SIZE_MAX / 2)
            return fault_set(fault, "%s: dimension %d of %llu", ret->name, i,
                             (unsigned long long)header->shape[i]);
        ret->shape[i] = (size_t)header->shape[i];
        longer += header->shape[i] > 1;
    }
    if (header->fortran && longer > 1)
        return fault_set(fault, "%s: array in Fortran order; save it with numpy.ascontiguousarray",
                         ret->name);
    ret->rank = header->rank;
    ret->f64 = encoding_needs_double(header->encoding);
    return true;
}

static bool fault_short(const struct npy_array *array, uint64_t has, size_t needed,
                        struct fault *fault)
{
    return fault_set(fault, "%s: %llu bytes of samples, but its shape needs %zu", array->name,
                     (unsigned long long)has, needed);
}

// Reads n samples, and converts those that are stored in another way than in memory.
static bool npy_array_decode(struct source *source, struct npy_array *array,
                             struct encoding encoding, size_t n, struct fault *fault)
{
    enum { CHUNK = 4096 };
    unsigned char stored[8 * CHUNK];
    const bool plain = encoding_is_plain(encoding, array->f64);
    for (size_t at = 0; at < n;) {
        const size_t m = plain ? n : n - at < CHUNK ? n - at : CHUNK;
        void *to = (char *)array->samples + at * (array->f64 ? 8 : 4);
        const size_t got = source_read(source, plain ? to : stored, m * encoding.bytes);
        if (got < m * encoding.bytes)
            return fault_short(array, at * encoding.bytes + got, n * encoding.bytes, fault);
        if (!plain && array->f64) samples_decode_f64(to, stored, m, encoding);
        else if (!plain) samples_decode_f32(to, stored, m, encoding);
        at += m;
    }
    return true;
}

static bool npy_array_read(struct source *source, struct npy_array *ret, struct fault *fault)
{
    struct npy_header header;
    size_t n;
    if (!npy_header_read(source, true, &header, fault) || !npy_array_set_shape(&header, ret, fault))
        return false;
    const unsigned bytes = header.encoding.bytes;
    // What a header promises is not allocated before the file is known to hold it.
    if (count_samples(ret, &n) && source->seekable && source->size - source->position < n * bytes)
        return fault_short(ret, source->size - source->position, n * bytes, fault);
    return npy_array_reserve(ret, fault) &&
           npy_array_decode(source, ret, header.encoding, n, fault);
}

bool npy_array_load(struct npy_array *ret, const char *path, struct fault *fault)
{
    struct source source = {0};
    *ret = (struct npy_array){.name = path};
    if (!source_open(&source, path, -1, fault)) return false;
    const bool good = npy_array_read(&source, ret, fault);
    source_close(&source);
    return good;
}

bool npy_file_create(struct npy_file *file, const struct npy_array *shape, const char *path,
                     struct fault *fault)
{
    unsigned char header[NPY_HEADER_BYTES];
    struct npy_header npy = {.encoding = {.kind = ENCODING_FLOAT, .bytes = shape->f64 ? 8 : 4},
                             .rank = shape->rank};
    for (int i = 0; i < shape->rank; i++) npy.shape[i] = shape->shape[i];
    npy_header_compose(header, &npy);
    const int fd = temp_open(&file->temp, path, false, fault);
    if (fd < 0) return false;
    file->bytes = npy.encoding.bytes;
    sink_from_fd(&file->sink, fd, path);
    return sink_write(&file->sink, header, sizeof header) || sink_fault(&file->sink, fault);
}

bool npy_file_write(struct npy_file *file, uint64_t first, const void *samples, size_t n,
                    struct fault *fault)
{
    struct sink *sink = &file->sink;
    const uint64_t at = NPY_HEADER_BYTES + first * file->bytes;
    return ((at == sink->position || sink_seek(sink, at)) &&
            sink_write(sink, samples, n * file->bytes)) ||
           sink_fault(sink, fault);
}

bool npy_file_finish(struct npy_file *file, struct fault *fault)
{
    return (sink_close(&file->sink) || sink_fault(&file->sink, fault)) &&
           temp_commit(&file->temp, false, fault);
}

void npy_file_discard(struct npy_file *file)
{
    if (file->bytes) sink_close(&file->sink);
    temp_discard(&file->temp);
}

bool npy_array_save(const struct npy_array *array, const char *path, struct fault *fault)
{
    struct npy_file file = {0};
    size_t n;
    const bool good = count_samples(array, &n) && npy_file_create(&file, array, path, fault) &&
                      npy_file_write(&file, 0, array->samples, n, fault) &&
                      npy_file_finish(&file, fault);
    npy_file_discard(&file);
    return good;
}

void npy_array_release(struct npy_array *array)
{
    memory_free(array->samples);
    array->samples = NULL;
}
