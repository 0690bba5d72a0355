// SPDX-License-Identifier: MIT
// Parses .npy headers, versions 1 to 3 (NumPy enhancement proposal 1): a dictionary of exactly the
// three known keys, in any order. Object arrays (pickles) are refused unread. One dimension is a
// signal; two are [channels, frames], which in Fortran order are interleaved and can be read from a
// pipe; three are a matrix of filters.
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "formats.h"

enum { MAX_HEADER = 65536 };

// Writes a dictionary of Python as JSON, in place: other quotes and brackets, true and false in
// lower case, no comma behind the last element.
static void make_json(char *text, size_t n)
{
    static const char python[] = "()TF", json[] = "[]tf";
    char quote = 0, *comma = NULL;
    for (char *c = text; c < text + n; c++) {
        if (quote ? *c == quote : *c == '\'' || *c == '"') {
            quote = quote ? 0 : *c;
            *c = '"';
        } else if (!quote) {
            const char *other = memchr(python, *c, sizeof python - 1);
            if (other) *c = json[other - python];
            if (comma && (*c == ']' || *c == '}')) *comma = ' ';
        }
        if (!isspace((unsigned char)*c)) comma = *c == ',' && !quote ? c : NULL;
    }
}

static bool parse_shape(const json_t *shape, const char *name, struct npy_header *ret,
                        struct fault *fault)
{
    const size_t rank = json_array_size(shape);
    if (!json_is_array(shape))
        return fault_set(fault, "%s: .npy header: shape is not a tuple", name);
    if (rank > NPY_DIMENSIONS)
        return fault_set(fault, "%s: array of more than %d dimensions", name, NPY_DIMENSIONS);
    for (; ret->rank < (int)rank; ret->rank++) {
        const json_t *n = json_array_get(shape, (size_t)ret->rank);
        if (!json_is_integer(n) || json_integer_value(n) < 0)
            return fault_set(fault, "%s: .npy header: shape holds no valid size", name);
        ret->shape[ret->rank] = (uint64_t)json_integer_value(n);
    }
    return true;
}

static bool parse_type(const char *descr, const char *name, bool real,
                       struct encoding *ret_encoding, struct fault *fault)
{
    static const struct {
        const char *name;
        struct encoding encoding;
    } types[] = {
        {"f4", {ENCODING_FLOAT, 4, false, false}},
        {"f8", {ENCODING_FLOAT, 8, false, false}},
        {"c8", {ENCODING_FLOAT, 4, false, true}},
        {"c16", {ENCODING_FLOAT, 8, false, true}},
        {"f2", {ENCODING_FLOAT, 2, false, false}},
        {"i1", {ENCODING_WHOLE, 1, false, false}},
        {"i2", {ENCODING_WHOLE, 2, false, false}},
        {"i4", {ENCODING_WHOLE, 4, false, false}},
        {"i8", {ENCODING_WHOLE, 8, false, false}},
        {"u1", {ENCODING_WHOLE_UNSIGNED, 1, false, false}},
        {"b1", {ENCODING_WHOLE_UNSIGNED, 1, false, false}}, // 0 and 1
        {"u2", {ENCODING_WHOLE_UNSIGNED, 2, false, false}},
        {"u4", {ENCODING_WHOLE_UNSIGNED, 4, false, false}},
        {"u8", {ENCODING_WHOLE_UNSIGNED, 8, false, false}},
    };
    if (!descr) return fault_set(fault, "%s: .npy header: descr is no plain type", name);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct encoding e = types[i].encoding;
        const char order = descr[0];
        if ((e.bytes == 1 ? order != '|' : order != '<' && order != '>') ||
            strcmp(descr + 1, types[i].name) != 0)
            continue;
        if (real && e.is_complex)
            return fault_set(fault, "%s: array of complex numbers; layers compute real ones", name);
        *ret_encoding = e;
        ret_encoding->big_endian = order == '>';
        return true;
    }
    if (strchr(descr, 'O'))
        return fault_set(fault, "%s: array of Python objects, which are never unpickled", name);
    return fault_set(fault, "%s: array of type '%.16s'; save its numbers, x.astype('f8')", name,
                     descr);
}

static bool parse_text(struct source *source, size_t n, bool real, struct npy_header *ret,
                       struct fault *fault)
{
    char *text = malloc(n + 1);
    json_error_t error;
    json_t *root = NULL, *descr, *shape;
    int fortran;
    if (!text) return fault_set(fault, "out of memory");
    *ret = (struct npy_header){0};
    bool good = source_read(source, text, n) == n ||
                fault_set(fault, "%s: .npy header of %zu bytes ends early", source->name, n);
    if (good) {
        make_json(text, n);
        root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
        good = (root && json_unpack_ex(root, &error, JSON_STRICT, "{s:o, s:b, s:o}", "descr",
                                       &descr, "fortran_order", &fortran, "shape", &shape) == 0) ||
               fault_set(fault, "%s: .npy header is no dictionary as numpy.save writes it: %s",
                         source->name, error.text);
    }
    good = good && parse_shape(shape, source->name, ret, fault) &&
           parse_type(json_string_value(descr), source->name, real, &ret->encoding, fault);
    if (good) ret->fortran = fortran;
    json_decref(root);
    free(text);
    return good;
}

bool npy_header_read(struct source *source, bool real, struct npy_header *ret, struct fault *fault)
{
    unsigned char x[12];
    const size_t got = source_read(source, x, 8);
    if (got == 0 && !source->error) return fault_set(fault, "%s: is empty", source->name);
    if (got < 8 || memcmp(x, "\x93NUMPY", 6) != 0)
        return fault_set(fault, "%s: not an .npy file; save the array with numpy.save",
                         source->name);
    if (x[6] < 1 || x[6] > 3)
        return fault_set(fault, "%s: .npy version %u; 1 to 3 are known", source->name, x[6]);
    size_t n_size = x[6] == 1 ? 2 : 4, n = 0;
    if (source_read(source, x, n_size) < n_size)
        return fault_set(fault, "%s: .npy file of %llu bytes", source->name,
                         (unsigned long long)source->position);
    for (size_t i = n_size; i-- > 0;) n = n << 8 | x[i];
    if (n > MAX_HEADER)
        return fault_set(fault, "%s: .npy header of %zu bytes; more than %d are not read",
                         source->name, n, MAX_HEADER);
    return parse_text(source, n, real, ret, fault);
}

static bool fill_info(const struct npy_header *p, const char *name, size_t max_channels,
                      struct audio_info *info, struct fault *fault)
{
    uint64_t channels = 1, bytes;
    if (p->rank == 0)
        return fault_set(fault, "%s: array without dimensions; a signal has 1 or 2", name);
    if (p->rank > 3)
        return fault_set(fault,
                         "%s: array of more than 3 dimensions; a signal is [frames] or [channels, "
                         "frames], a matrix of filters is [out, in, frames]",
                         name);
    if (p->rank == 3 && p->fortran)
        return fault_set(fault, "%s: matrix in Fortran order; save it with numpy.ascontiguousarray",
                         name);
    for (int i = 0; i < p->rank - 1; i++)
        if (__builtin_mul_overflow(channels, p->shape[i], &channels)) channels = UINT64_MAX;
    info->outputs = p->rank == 3 ? (size_t)p->shape[0] : 0;
    info->encoding = p->encoding;
    info->frames = p->shape[p->rank - 1];
    info->rank = p->rank;
    if (p->rank == 2 && channels > max_channels) // a larger limit would not help if exchanged
        return fault_set(
            fault,
            "%s: %llu channels of %llu frames, more than the %zu of --max-channels; the axes are "
            "[channels, frames], so if these are [frames, channels], save the transpose, x.T",
            name, (unsigned long long)channels, (unsigned long long)info->frames, max_channels);
    if (!container_check_channels(name, channels, max_channels, fault)) return false;
    info->channels = (size_t)channels;
    if (__builtin_mul_overflow(info->frames, channels * encoding_size(info->encoding), &bytes) ||
        bytes >> 62)
        return fault_set(fault, "%s: shape (%llu, %llu) is beyond what a file can hold", name,
                         (unsigned long long)channels, (unsigned long long)info->frames);
    info->planar = channels > 1 && info->frames > 1 &&
                   !p->fortran; // a single frame is the same in both orders
    return true;
}

bool npy_parse(struct source *source, size_t max_channels, struct audio_info *info,
               struct fault *fault)
{
    struct npy_header header;
    *info = (struct audio_info){.container = CONTAINER_NPY};
    if (!npy_header_read(source, false, &header, fault) ||
        !fill_info(&header, source->name, max_channels, info, fault))
        return false;
    info->offset = source->position;
    if (!info->planar || source->seekable) return true;
    return fault_set(fault,
                     "%s: channels lie one after the other, which cannot be streamed; use a file, "
                     "or save with numpy.asfortranarray",
                     source->name);
}
