// SPDX-License-Identifier: MIT
// A strict parser of .npy headers, versions 1 to 3 (NumPy enhancement proposal 1): a dictionary of
// exactly the three known keys, in any order. Object arrays (pickles) are refused unread. One
// dimension is a signal; two are [channels, frames], which in Fortran order are interleaved and can
// be read from a pipe; three are a matrix of filters.
#include <stdlib.h>
#include <string.h>

#include "formats.h"

enum { MAX_HEADER = 65536 };

struct npy {
    const char *name;
    const char *at, *end; // the part of the header that is not parsed yet
    char descr[16];
    unsigned seen; // keys so far, as bits
    struct npy_header header;
};

static void skip_space(struct npy *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t')) p->at++;
}

static bool take_char(struct npy *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool take_word(struct npy *p, const char *word)
{
    size_t n = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

// A quoted string without escapes, of less than `size` characters.
static bool take_string(struct npy *p, char *text, size_t size)
{
    skip_space(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return false;
    char quote = *p->at++;
    size_t n = 0;
    while (p->at < p->end && *p->at != quote) {
        if (n + 1 == size || *p->at == '\\') return false;
        text[n++] = *p->at++;
    }
    text[n] = 0;
    return p->at < p->end && *p->at++ == quote;
}

static bool take_number(struct npy *p, uint64_t *ret_value)
{
    skip_space(p);
    const char *start = p->at;
    uint64_t value = 0;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p->at++ - '0'), &value))
            return false;
    *ret_value = value;
    return p->at > start;
}

static bool parse_shape(struct npy *p, struct fault *fault)
{
    if (!take_char(p, '('))
        return fault_set(fault, "%s: .npy header: shape is not a tuple", p->name);
    while (!take_char(p, ')')) {
        uint64_t n;
        if (!take_number(p, &n))
            return fault_set(fault, "%s: .npy header: shape holds no valid size", p->name);
        if (p->header.rank == NPY_DIMENSIONS)
            return fault_set(fault, "%s: array of more than %d dimensions", p->name,
                             NPY_DIMENSIONS);
        p->header.shape[p->header.rank++] = n;
        if (take_char(p, ',')) continue;
        if (!take_char(p, ')'))
            return fault_set(fault, "%s: .npy header: shape is not a tuple", p->name);
        break;
    }
    return true;
}

static bool parse_entry(struct npy *p, struct fault *fault)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[16];
    unsigned k = 0;
    if (!take_string(p, key, sizeof key) || !take_char(p, ':'))
        return fault_set(fault, "%s: .npy header is not a dictionary of names", p->name);
    while (k < 3 && strcmp(key, keys[k]) != 0) k++;
    if (k == 3) return fault_set(fault, "%s: .npy header: unknown key '%s'", p->name, key);
    if (p->seen & 1u << k) return fault_set(fault, "%s: .npy header: key '%s' twice", p->name, key);
    p->seen |= 1u << k;
    if (k == 2) return parse_shape(p, fault);
    if (k == 0)
        return take_string(p, p->descr, sizeof p->descr) ||
               fault_set(fault, "%s: .npy header: descr is no plain type", p->name);
    p->header.fortran = take_word(p, "True");
    return p->header.fortran || take_word(p, "False") ||
           fault_set(fault, "%s: .npy header: fortran_order is neither True nor False", p->name);
}

static bool parse_dictionary(struct npy *p, struct fault *fault)
{
    if (!take_char(p, '{')) return fault_set(fault, "%s: .npy header is not a dictionary", p->name);
    while (!take_char(p, '}')) {
        if (!parse_entry(p, fault)) return false;
        if (take_char(p, ',')) continue;
        if (!take_char(p, '}'))
            return fault_set(fault, "%s: .npy header is not a dictionary", p->name);
        break;
    }
    skip_space(p);
    if (p->at != p->end)
        return fault_set(fault, "%s: .npy header continues after its dictionary", p->name);
    if (p->seen != 7)
        return fault_set(fault, "%s: .npy header lacks descr, fortran_order or shape", p->name);
    return true;
}

static bool parse_type(const struct npy *p, bool real, struct encoding *ret_encoding,
                       struct fault *fault)
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
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct encoding e = types[i].encoding;
        const char order = p->descr[0];
        if ((e.bytes == 1 ? order != '|' : order != '<' && order != '>') ||
            strcmp(p->descr + 1, types[i].name) != 0)
            continue;
        if (real && e.is_complex)
            return fault_set(fault, "%s: array of complex numbers; layers compute real ones",
                             p->name);
        *ret_encoding = e;
        ret_encoding->big_endian = order == '>';
        return true;
    }
    if (strchr(p->descr, 'O'))
        return fault_set(fault, "%s: array of Python objects, which are never unpickled", p->name);
    return fault_set(fault, "%s: array of type '%s'; save its numbers, x.astype('f8')", p->name,
                     p->descr);
}

static bool parse_text(struct source *source, size_t n, bool real, struct npy_header *ret,
                       struct fault *fault)
{
    char *text = malloc(n + 1);
    if (!text) return fault_set(fault, "out of memory");
    struct npy p = {.name = source->name, .at = text, .end = text + n};
    bool good = source_read(source, text, n) == n ||
                fault_set(fault, "%s: .npy header of %zu bytes ends early", source->name, n);
    good = good && parse_dictionary(&p, fault) && parse_type(&p, real, &p.header.encoding, fault);
    *ret = p.header;
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
