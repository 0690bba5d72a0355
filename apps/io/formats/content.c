// SPDX-License-Identifier: MIT
// The formats that begin with known bytes. No row has fewer than four: raw samples begin like one
// of them by chance less often than once in 2^27 files.
#include <string.h>

#include "formats.h"

#define SAVE "save the array with numpy.save, as .npy"
#define CONVERT "convert it to .wav or .flac, for example with ffmpeg"

static const struct {
    size_t at, n; // of the magic bytes
    const char *magic;
    const char *form; // four bytes from the eighth on; NULL: any
    struct content content;
} rows[] = {
    {0, 4, "RIFF", "WAVE", {"WAV", "name it .wav", CONTAINER_WAV, false}},
    {0, 4, "RF64", "WAVE", {"RF64", "name it .rf64", CONTAINER_WAV, false}},
    {0, 4, "BW64", "WAVE", {"BW64", "name it .bw64", CONTAINER_WAV, false}},
    {0, 4, "RIFX", "WAVE", {"RIFX", "name it .wav", CONTAINER_SNDFILE, false}},
    {0, 6, "\x93NUMPY", NULL, {".npy", "name it .npy", CONTAINER_NPY, false}},
    {0, 4, "fLaC", NULL, {"FLAC", "name it .flac", CONTAINER_SNDFILE, false}},
    {0, 4, "OggS", NULL, {"Ogg", "name it .ogg", CONTAINER_SNDFILE, false}},
    {0, 4, "FORM", "AIFF", {"AIFF", "name it .aiff", CONTAINER_SNDFILE, false}},
    {0, 4, "FORM", "AIFC", {"AIFF", "name it .aiff", CONTAINER_SNDFILE, false}},
    {0, 4, "caff", NULL, {"CAF", "name it .caf", CONTAINER_SNDFILE, false}},
    {0, 4, ".snd", NULL, {"AU", "name it .au", CONTAINER_SNDFILE, false}},
    {0, 8, "riff\x2e\x91\xcf\x11", NULL, {"W64", "name it .w64", CONTAINER_SNDFILE, false}},
    {0, 4, "ID3\x03", NULL, {"MP3", "name it .mp3", CONTAINER_SNDFILE, false}},
    {0, 4, "ID3\x04", NULL, {"MP3", "name it .mp3", CONTAINER_SNDFILE, false}},
    {0, 8, "\x89HDF\r\n\x1a\n", NULL, {"HDF5", "name it .sofa if it is SOFA", CONTAINER_RAW, true}},
    {0, 4, "PK\x03\x04", NULL, {"a ZIP, as .npz files do", SAVE, CONTAINER_NPY, true}},
    {0, 4, "\x89PNG", NULL, {"PNG", "name a file of samples", CONTAINER_RAW, true}},
    {0, 5, "%PDF-", NULL, {"PDF", "name a file of samples", CONTAINER_RAW, true}},
    {0, 4, "\x1f\x8b\x08\x00", NULL, {"gzip", "unpack it", CONTAINER_RAW, true}},
    {0, 4, "\x1f\x8b\x08\x08", NULL, {"gzip", "unpack it", CONTAINER_RAW, true}},
    {4, 4, "ftyp", NULL, {"MP4", CONVERT, CONTAINER_RAW, true}},
    {0, 4, "\x1a\x45\xdf\xa3", NULL, {"Matroska", CONVERT, CONTAINER_RAW, true}},
};

static bool has_bytes(struct source *source, size_t at, const char *bytes, size_t n)
{
    const unsigned char *x;
    return source_peek(source, at + n, &x) == at + n && memcmp(x + at, bytes, n) == 0;
}

const struct content *content_of(struct source *source)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (has_bytes(source, rows[i].at, rows[i].magic, rows[i].n) &&
            (!rows[i].form || has_bytes(source, 8, rows[i].form, 4)))
            return &rows[i].content;
    return NULL;
}

bool content_is_text(struct source *source)
{
    enum { CHARACTERS = 32 };
    const unsigned char *x;
    const size_t n = source_peek(source, CHARACTERS, &x);
    size_t i = n >= 3 && memcmp(x, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (i < n && ((x[i] >= ' ' && x[i] <= '~') || (x[i] && strchr("\t\r\n", x[i])))) i++;
    return n && i == n;
}
