// SPDX-License-Identifier: MIT
// What the files of this folder share: formats whose samples lie flat behind a header differ in the
// header alone, so wav_read.c, wav_write.c, npy_read.c and npy_write.c only parse and write
// headers, and flat_read.c and flat_write.c move all samples; raw ones have no header.
#ifndef PARTITA_APPS_FORMATS_H
#define PARTITA_APPS_FORMATS_H

#include <stdio.h>

#include "container.h"
#include "io/bytes/temp.h"
#include "io/samples/samples.h"
#include "npy.h"

struct audio_reader;
struct audio_writer;

struct reader_ops {
    // Up to n frames as scalars of the file's own realness: float for PARTITA_F32/CF32, double for
    // F64/CF64.
    bool (*read)(struct audio_reader *reader, bool as_double, void *scalars, size_t n,
                 size_t *ret_n, struct fault *fault);
    bool (*skip)(struct audio_reader *reader, uint64_t n, struct fault *fault);
    void (*close)(struct audio_reader *reader);
};

struct audio_reader {
    const struct reader_ops *ops;
    struct audio_info info;
    struct source source;
    uint64_t position;   // next frame
    char shortfall[160]; // empty: nothing missing
    unsigned char *raw;  // flat formats: bytes on their way
    size_t raw_capacity, n_carried;
    void *state; // libsndfile's or the text's
};

struct writer_ops {
    bool (*write)(struct audio_writer *writer, bool as_double, const void *scalars, size_t n,
                  struct fault *fault);
    bool (*finish)(struct audio_writer *writer, struct fault *fault); // headers
    void (*close)(struct audio_writer *writer);
};

struct audio_writer {
    const struct writer_ops *ops;
    struct audio_info info;
    struct sink sink;
    struct temp temp;
    uint64_t frames; // written so far
    struct sample_counts counts;
    unsigned char *raw;
    size_t raw_capacity;
    void *state;
};

// Parsers: read the header from the source and fill `info` up to the first sample. A WAV whose
// coding is unknown here fails with info->container = CONTAINER_SNDFILE: libsndfile may know it.
bool wav_parse(struct source *source, size_t max_channels, struct audio_info *info,
               struct fault *fault);
bool npy_parse(struct source *source, size_t max_channels, struct audio_info *info,
               struct fault *fault);
bool raw_layout(const struct source *source, const struct audio_request *request,
                struct audio_info *info, struct fault *fault);

// Header writers: called once before the samples, and once after them where the sink can be
// patched.
bool wav_begin(struct audio_writer *writer, struct fault *fault);
bool wav_end(struct audio_writer *writer, struct fault *fault);
bool npy_begin(struct audio_writer *writer, struct fault *fault);
bool npy_end(struct audio_writer *writer, struct fault *fault);

extern const struct reader_ops flat_reader;
extern const struct writer_ops wav_writer, npy_writer, raw_writer;

// Readers and writers with their own way of moving samples. sndfile_encoding: the nearest encoding
// that the format named by `path` holds.
bool sndfile_open(struct audio_reader *reader, struct fault *fault);
bool sndfile_create(struct audio_writer *writer, const char *path, struct fault *fault);
bool sndfile_encoding(const char *path, struct encoding wish, struct encoding *ret_encoding);
bool text_open(struct audio_reader *reader, struct fault *fault);

// Room for n bytes of samples on their way.
bool raw_reserve(unsigned char **raw, size_t *capacity, size_t n);

#endif
