// SPDX-License-Identifier: MIT
// Shared by the files of this folder. WAV, .npy and raw files differ only in their headers:
// wav_read.c, wav_write.c, npy_read.c and npy_write.c parse and write headers, flat_read.c and
// flat_write.c transfer the samples of all three.
#ifndef PARTITA_APPS_FORMATS_H
#define PARTITA_APPS_FORMATS_H

#include "container.h"
#include "io/bytes/temp.h"
#include "io/samples/samples.h"
#include "npy.h"

struct audio_reader;
struct audio_writer;

struct reader_ops {
    // Reads up to n frames as float or double scalars; complex only if the file is.
    bool (*read)(struct audio_reader *reader, bool as_double, void *scalars, size_t n,
                 size_t *ret_n, struct fault *fault);
    bool (*skip)(struct audio_reader *reader, uint64_t n, struct fault *fault);
    void (*close)(struct audio_reader *reader); // NULL: memory_free of the state
};

struct audio_reader {
    const struct reader_ops *ops;
    struct audio_info info;
    struct source source;
    uint64_t position;              // of the next frame
    char shortfall[160];            // which part of the file is missing; empty: none
    unsigned char *raw;             // flat formats: buffer of undecoded bytes, freed at the end
    size_t raw_capacity, n_carried; // n_carried: bytes of an incomplete frame
    void *state;                    // of libsndfile or the text reader
    SHA2_CTX digest;                // of the bytes read
    const char *expected;           // its text, as metadata state it
    struct sigmf *recording;        // NULL: none
    struct tags tags;
};

struct writer_ops {
    bool (*write)(struct audio_writer *writer, bool as_double, const void *scalars, size_t n,
                  struct fault *fault);
    // The others are NULL where there is nothing to do. begin: headers before the samples; refresh:
    // headers tell what is written so far.
    bool (*begin)(struct audio_writer *writer, struct fault *fault);
    bool (*finish)(struct audio_writer *writer, struct fault *fault); // headers
    bool (*refresh)(struct audio_writer *writer, struct fault *fault);
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
    struct tags tags;
    bool digested;           // audio_digest_begin
    unsigned char *dithered; // buffer of doubles
    size_t dithered_capacity;
};

// Parsers: read the header, up to the first sample, and fill `info`. A WAV with another coding than
// PCM or float fails with info->container = CONTAINER_SNDFILE: libsndfile may read it. Appends what
// it finds to `tags`.
bool wav_parse(struct source *source, size_t max_channels, struct audio_info *info,
               struct tags *tags, struct fault *fault);
bool npy_parse(struct source *source, size_t max_channels, struct audio_info *info,
               struct fault *fault);
bool raw_layout(const struct source *source, const struct audio_request *request,
                struct audio_info *info, struct fault *fault);

// Says in reader->shortfall that it has fewer frames than its header counts.
void reader_ends_after(struct audio_reader *reader, uint64_t frames);

// After wav_parse or npy_parse: reduces info.frames to what a regular file holds, and says in
// reader->shortfall if the header counts more. Shards, memory and skips then rely on the file's
// length only.
void flat_limit_frames(struct audio_reader *reader);

// Header writers: *_begin is called before the samples, *_end after them, *_refresh in between. An
// .npy that is refreshed is one whose end is now.
bool wav_begin(struct audio_writer *writer, struct fault *fault);
bool wav_end(struct audio_writer *writer, struct fault *fault);
bool wav_refresh(struct audio_writer *writer, struct fault *fault);
bool npy_begin(struct audio_writer *writer, struct fault *fault);
bool npy_end(struct audio_writer *writer, struct fault *fault);

extern const struct reader_ops flat_reader;
extern const struct writer_ops wav_writer, npy_writer, raw_writer, text_writer, sndfile_writer;

// Readers and writers that transfer samples themselves. sndfile_encoding: the closest encoding that
// the format of `path` can store. sndfile_is_compressed: whether the size of its samples varies.
bool sndfile_open(struct audio_reader *reader, struct fault *fault);
bool sndfile_encoding(const char *path, struct encoding requested, struct encoding *ret_encoding);
// The format of libsndfile that a suffix names, with which files are written; 0: none.
int sndfile_major(const char *path);
bool sndfile_is_compressed(const char *path);
double sndfile_max_rate(const char *path); // Hz
bool text_open(struct audio_reader *reader, uint64_t skip_lines, struct fault *fault);

// What a file is by its first bytes, whatever its name says.
struct content {
    const char *name;         // "FLAC"
    const char *remedy;       // for users whose file has another name: "name it .flac"
    enum container container; // that reads it
    bool foreign;             // nothing here reads it
};

// NULL: none of the known ones. The next bytes are looked at without consuming them.
const struct content *content_of(struct source *source);

// Whether the next bytes are ASCII characters of a text, and there are some.
bool content_is_text(struct source *source);

// Grows *raw to at least n bytes.
bool raw_reserve(unsigned char **raw, size_t *capacity, size_t n);

#endif
