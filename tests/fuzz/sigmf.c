// SPDX-License-Identifier: MIT
// Fuzz target: SigMF recordings. The first byte chooses between metadata beside their samples, an
// archive of both, and an archive of any bytes, whose headers get a right check sum. Metadata end
// with a zero byte; samples are what follows. The second byte moves the samples of an output that
// takes the metadata over.
#include "fuzz/input.h"
#include "fuzz/read_all.h"

#include "io/formats/sigmf.h"
#include "io/formats/sigmf_carry.h"

enum {
    BLOCK = 512,
    MAX_ARCHIVE = 1 << 16,
    NAME = 0,
    SIZE = 124,
    SUM = 148,
    TYPE = 156,
    USTAR = 257
};

// The sum of a header's bytes, of which those of the sum count as spaces.
static void put_sum(uint8_t *header)
{
    char text[12];
    unsigned sum = 0;
    memset(header + SUM, ' ', 8);
    for (int i = 0; i < BLOCK; i++) sum += header[i];
    snprintf(text, sizeof text, "%06o", sum);
    memcpy(header + SUM, text, 7);
}

static size_t put_entry(uint8_t *to, const char *name, const uint8_t *bytes, size_t size)
{
    memset(to, 0, BLOCK);
    strcpy((char *)to + NAME, name);
    snprintf((char *)to + SIZE, 12, "%011o", (unsigned)size);
    to[TYPE] = '0';
    memcpy(to + USTAR,
           "ustar\0"
           "00",
           8);
    put_sum(to);
    const size_t blocks = (size + BLOCK - 1) / BLOCK;
    if (size) memcpy(to + BLOCK, bytes, size);
    memset(to + BLOCK + size, 0, blocks * BLOCK - size);
    return BLOCK + blocks * BLOCK;
}

static void mend_sums(uint8_t *archive, size_t size)
{
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK)
        if (memcmp(archive + at + USTAR, "ustar", 5) == 0) put_sum(archive + at);
}

static void carry(struct audio_reader *reader, uint8_t how)
{
    static const int64_t ups[] = {1, 3, INT64_MAX}, strides[] = {1, 7, INT64_MAX},
                         shifts[] = {0, -50, 1000, INT64_MIN / 2};
    struct fault fault;
    const struct sigmf *sigmf = audio_reader_recording(reader);
    const struct sigmf_origin origin = {.sigmf = sigmf,
                                        .up = ups[how % 3],
                                        .stride = strides[how / 3 % 3],
                                        .shift = shifts[how / 9 % 4],
                                        .tune = how & 128 ? 1e3 : 0,
                                        .total = how & 64 ? 100 : 0};
    if (!sigmf_check_positions(sigmf, &fault)) return;
    json_t *carried = sigmf_carry(&origin, audio_reader_info(reader), 50);
    char *text = sigmf_text(carried);
    if (!text) abort();
    free(text);
    json_decref(carried);
}

static void read_recording(const char *path, size_t size, uint8_t how)
{
    const struct audio_request request = {.path = path, .max_channels = 64, .wake_fd = -1};
    struct audio_reader *reader;
    struct fault fault;
    if (!audio_open(&reader, &request, &fault)) return;
    const struct sigmf_use use = {.end = (int64_t)size, .reach = how, .up = 1 + how % 3};
    sigmf_check_captures(audio_reader_recording(reader), &use, audio_reader_info(reader)->frames,
                         &fault);
    read_frames(reader, PARTITA_F32, size, &request);
    carry(reader, how);
    audio_reader_close(reader);
}

static void read_archive(const uint8_t *archive, size_t size, uint8_t how)
{
    char path[FUZZ_PATH_BYTES];
    fuzz_write("x.sigmf", archive, size, path);
    read_recording(path, size, how);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t archive[MAX_ARCHIVE + 6 * BLOCK];
    if (size < 2 || size > MAX_ARCHIVE) return 0;
    const uint8_t which = data[0] % 4, how = data[1];
    data += 2;
    size -= 2;
    if (which == 0) {
        memcpy(archive, data, size);
        mend_sums(archive, size);
        read_archive(archive, size, how);
        return 0;
    }
    const uint8_t *zero = memchr(data, 0, size), *samples = zero ? zero + 1 : data + size;
    const size_t n_meta = zero ? (size_t)(zero - data) : size,
                 n_samples = size - (size_t)(samples - data);
    if (which == 1) {
        char meta[FUZZ_PATH_BYTES], dataset[FUZZ_PATH_BYTES];
        fuzz_write("x.sigmf-meta", data, n_meta, meta);
        fuzz_write("x.sigmf-data", samples, n_samples, dataset);
        read_recording(meta, size, how); // core:dataset may name the metadata
        unlink(meta);
        unlink(dataset);
        return 0;
    }
    size_t n = 0;
    if (which == 2) n += put_entry(archive, "in/x.sigmf-meta", data, n_meta);
    n += put_entry(archive + n, "in/x.sigmf-data", samples, n_samples);
    if (which == 3) n += put_entry(archive + n, "in/x.sigmf-meta", data, n_meta);
    memset(archive + n, 0, 2 * BLOCK); // the end of an archive
    read_archive(archive, n + 2 * BLOCK, how);
    return 0;
}
