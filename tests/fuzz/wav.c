// SPDX-License-Identifier: MIT
// Fuzz target: the WAV and RF64 reader. The first byte chooses what precedes the bytes: nothing, a
// RIFF header, also a format chunk, also the start of the data chunk, so that short inputs reach
// the chunks and the samples.
#include "fuzz/read_all.h"

static const uint8_t header[] = {'R', 'I', 'F',  'F',  0xff, 0xff, 0xff, 0xff, 'W',  'A',  'V',
                                 'E', 'f', 'm',  't',  ' ',  16,   0,    0,    0,    1,    0,
                                 2,   0,   0x80, 0xbb, 0,    0,    0,    0,    0,    0,    4,
                                 0,   16,  0,    'd',  'a',  't',  'a',  0xff, 0xff, 0xff, 0xff};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t lengths[] = {0, 12, 36, sizeof header};
    const struct audio_request request = {.path = "fuzz.wav", .max_channels = 64, .wake_fd = -1};
    if (size == 0) return 0;
    uint8_t head[sizeof header];
    memcpy(head, header, sizeof header);
    if (data[0] & 4) memcpy(head, "RF64", 4);
    read_after(head, lengths[data[0] & 3], data + 1, size - 1, &request);
    return 0;
}
