// SPDX-License-Identifier: MIT
// Fuzz target: taps as text. If the first byte is odd, the others choose characters of numbers,
// comments and line breaks, so that short inputs have many lines that are right or nearly so.
#include "fuzz/read_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char characters[] = "0123456789+-.eE# \t\r\n\n\n\n,nafix";
    const struct audio_request request = {.path = "fuzz.txt", .max_channels = 64, .wake_fd = -1};
    if (size == 0) return 0;
    uint8_t *text = malloc(size);
    if (!text) return 0;
    for (size_t i = 1; i < size; i++)
        text[i - 1] =
            data[0] & 1 ? (uint8_t)characters[data[i] % (sizeof characters - 1)] : data[i];
    read_after("", 0, text, size - 1, &request);
    free(text);
    return 0;
}
