// SPDX-License-Identifier: MIT
// Fuzz target: the .npy reader. The first byte chooses what precedes the bytes: nothing, a header
// with the right magic and length without its dictionary, or a valid header.
#include "fuzz/read_all.h"

static const char dictionary[] = "{'descr': '>c8', 'fortran_order': True, 'shape': (3, 7), }\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct audio_request request = {.path = "fuzz.npy", .max_channels = 64, .wake_fd = -1};
    if (size == 0) return 0;
    uint8_t head[10 + sizeof dictionary] = "\x93NUMPY\x01";
    size_t n = size - 1 < 60000 ? size - 1 : 60000;
    size_t length = data[0] % 3 == 1 ? n : sizeof dictionary - 1;
    head[8] = (uint8_t)length;
    head[9] = (uint8_t)(length >> 8);
    memcpy(head + 10, dictionary, sizeof dictionary - 1);
    static const size_t lengths[] = {0, 10, 10 + sizeof dictionary - 1};
    read_after(head, lengths[data[0] % 3], data + 1, n, &request);
    return 0;
}
