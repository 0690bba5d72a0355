// SPDX-License-Identifier: MIT
#include "container.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "formats.h"

static const struct {
    const char *suffix;
    enum container container;
} suffixes[] = {
    {".wav", CONTAINER_WAV},   {".wave", CONTAINER_WAV},       {".rf64", CONTAINER_WAV},
    {".bw64", CONTAINER_WAV},  {".npy", CONTAINER_NPY},        {".txt", CONTAINER_TEXT},
    {".taps", CONTAINER_TEXT}, {".raw", CONTAINER_RAW},        {".bin", CONTAINER_RAW},
    {".pcm", CONTAINER_RAW},   {".sigmf-data", CONTAINER_RAW},
};

static const char *suffix_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot : "";
}

// Whether a suffix is in the table, whose formats go before sample types: .rf64 is a WAV.
static bool find_suffix(const char *suffix, enum container *ret_container)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (strcasecmp(suffix, suffixes[i].suffix) != 0) continue;
        *ret_container = suffixes[i].container;
        return true;
    }
    if (!sndfile_major(suffix)) return false;
    *ret_container = CONTAINER_SNDFILE;
    return true;
}

bool container_raw_type(const char *path, struct encoding *ret_encoding)
{
    const char *suffix = suffix_of(path);
    enum container ignored;
    return *suffix && !find_suffix(suffix, &ignored) && encoding_parse(suffix + 1, ret_encoding);
}

enum container container_of_name(const char *path, bool *ret_known)
{
    enum container container = CONTAINER_RAW;
    struct encoding e;
    *ret_known = find_suffix(suffix_of(path), &container) || container_raw_type(path, &e);
    return container;
}

bool container_is_lossy(const char *path)
{
    return path_ends_with(path, ".ogg") || path_ends_with(path, ".oga") ||
           path_ends_with(path, ".opus");
}

bool container_encoding(enum container container, const char *path, struct encoding requested,
                        struct encoding *ret_encoding)
{
    switch (container) {
    case CONTAINER_WAV:
        *ret_encoding = (struct encoding){.kind = requested.kind, .bytes = requested.bytes};
        if (requested.kind != ENCODING_FLOAT)
            ret_encoding->kind = requested.bytes == 1 ? ENCODING_UNSIGNED : ENCODING_SIGNED;
        return !requested.is_complex;
    case CONTAINER_RAW:
        *ret_encoding = requested;
        return true;
    case CONTAINER_SNDFILE:
        return sndfile_encoding(path, requested, ret_encoding);
    case CONTAINER_NPY:
        *ret_encoding = (struct encoding){.bytes = requested.bytes == 8 ? 8 : 4,
                                          .is_complex = requested.is_complex};
        return true;
    case CONTAINER_TEXT:
        *ret_encoding = (struct encoding){.bytes = requested.bytes == 8 ? 8 : 4};
        return !requested.is_complex;
    }
    return false;
}

double container_rate(enum container container, const char *path, double rate)
{
    const double whole = rate < 1 ? 1 : round(rate);
    double max = UINT32_MAX;
    if (rate == 0 || (container != CONTAINER_WAV && container != CONTAINER_SNDFILE)) return rate;
    if (container == CONTAINER_SNDFILE) max = sndfile_max_rate(path);
    return whole < max ? whole : max;
}

bool container_check_channels(const char *name, uint64_t channels, size_t max_channels,
                              struct fault *fault)
{
    if (channels == 0) return fault_set(fault, "%s: 0 channels", name);
    if (channels <= max_channels) return true;
    return fault_set(fault, "%s: %llu channels, more than the %zu of --max-channels", name,
                     (unsigned long long)channels, max_channels);
}
