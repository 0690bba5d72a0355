// SPDX-License-Identifier: MIT
// Fuzz target: names of raw sample types, and samples of these types. The first 12 bytes are a
// name, the next is the number of channels, the rest are samples.
#include "fuzz/read_all.h"

static void check_name(struct encoding encoding)
{
    char name[ENCODING_NAME_SIZE];
    struct encoding again;
    // The canonical name gives the same encoding.
    if (!encoding_parse(encoding_name(encoding, name), &again)) abort();
    if (again.kind != encoding.kind || again.bytes != encoding.bytes ||
        again.big_endian != encoding.big_endian || again.is_complex != encoding.is_complex)
        abort();
}

static void read_samples(struct encoding encoding, const uint8_t *data, size_t size)
{
    struct audio_request request = {.path = "fuzz.raw",
                                    .raw = &encoding,
                                    .channels = size ? data[0] : 1,
                                    .max_channels = 64,
                                    .wake_fd = -1};
    read_after("", 0, data, size, &request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"cf32_be", "ri24_le", "cu8",
                                        "ru32_be", "rf64_le", "ci16_be"};
    char name[13] = "";
    size_t n = size < 12 ? size : 12;
    struct encoding encoding;
    if (size == 0) return 0;
    memcpy(name, data, n);
    if (!encoding_parse(name, &encoding) && !encoding_parse(names[data[0] % 6], &encoding)) abort();
    check_name(encoding);
    read_samples(encoding, data + n, size - n);
    return 0;
}
