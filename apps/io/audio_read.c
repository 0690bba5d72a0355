// SPDX-License-Identifier: MIT
// Opens a signal of any format, detects which, and reads frames in the caller's sample type.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/base/hash.h"
#include "audio.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/sample_type.h"
#include "io/formats/formats.h"
#include "io/formats/sigmf.h"
#include "io/formats/sofa.h"

// WAV, .npy, and the formats of libsndfile.
static bool open_as(struct audio_reader *r, enum container container, size_t max_channels,
                    struct fault *fault)
{
    if (container == CONTAINER_SNDFILE)
        return sndfile_open(r, fault) &&
               container_check_channels(r->source.name, r->info.channels, max_channels, fault);
    if (container == CONTAINER_WAV ? wav_parse(&r->source, max_channels, &r->info, &r->tags, fault)
                                   : npy_parse(&r->source, max_channels, &r->info, fault)) {
        flat_limit_frames(r);
        return true;
    }
    // Memory is for tests of our own readers, not of libsndfile.
    if (r->info.container != CONTAINER_SNDFILE || !r->source.seekable || r->source.fd < 0)
        return false;
    return source_seek(&r->source, 0) && sndfile_open(r, fault);
}

static bool open_raw(struct audio_reader *r, const struct audio_request *request,
                     struct fault *fault)
{
    const struct content *content = request->headed ? NULL : content_of(&r->source);
    if (content)
        return fault_set(fault, "%s: begins like %s, not with raw samples; %s", r->source.name,
                         content->name,
                         strcmp(request->path, "-") == 0 ? "leave out --format" : content->remedy);
    return raw_layout(&r->source, request, &r->info, fault);
}

// Files whose first bytes say what they are, whatever their name says.
static bool open_content(struct audio_reader *r, const struct content *content,
                         const struct audio_request *request, struct fault *fault)
{
    const char *name = r->source.name;
    if (content->foreign || sofa_is_named(request->path))
        return fault_set(fault, "%s: begins like %s; %s", name, content->name, content->remedy);
    if (content->container == CONTAINER_SNDFILE && !r->source.seekable)
        return fault_set(fault,
                         "%s: begins like %s, which is read from files; pipes can carry WAV, .npy "
                         "and, with --format, raw samples",
                         name, content->name);
    return open_as(r, content->container, request->max_channels, fault);
}

// Files that begin like none of the known formats, and those whose format has no first bytes.
static bool open_by_name(struct audio_reader *r, const struct audio_request *request,
                         struct fault *fault)
{
    const char *name = r->source.name;
    struct audio_request typed = *request;
    struct encoding encoding;
    bool known;
    const enum container named = container_of_name(request->path, &known);
    typed.raw = &encoding;
    if (container_raw_type(request->path, &encoding)) return open_raw(r, &typed, fault);
    if (known && named == CONTAINER_TEXT) return text_open(r, 0, fault);
    const unsigned char *x;
    if (!source_peek(&r->source, 1, &x) && !r->source.error)
        return fault_set(fault, "%s: is empty", name);
    if (known && named == CONTAINER_WAV && content_is_text(&r->source))
        return fault_set(fault, "%s: not a WAV: begins like text; name it .txt", name);
    return open_as(r, known && named != CONTAINER_RAW ? named : CONTAINER_SNDFILE,
                   request->max_channels, fault);
}

static bool open_by_content(struct audio_reader *r, const struct audio_request *request,
                            struct fault *fault)
{
    const struct content *content = content_of(&r->source);
    struct encoding ignored;
    const bool is_sofa = sofa_is_named(request->path);
    if (is_sofa && (!content || content->container == CONTAINER_RAW))
        return fault_set(fault,
                         "%s: is a SOFA file, whose responses are filters: it can only be IR of "
                         "convolve and live",
                         r->source.name);
    if (!is_sofa && (!content || container_raw_type(request->path, &ignored)))
        return open_by_name(r, request, fault);
    return open_content(r, content, request, fault);
}

static bool open_any(struct audio_reader *r, const struct audio_request *request,
                     struct fault *fault)
{
    bool good = request->is_text ? text_open(r, request->skip_lines, fault)
                : request->raw   ? open_raw(r, request, fault)
                                 : open_by_content(r, request, fault);
    if (r->source.error)
        return fault_set(fault, "%s: cannot read: %s", r->source.name, strerror(r->source.error));
    if (good && request->rate > 0 && r->info.rate > 0 && !rates_agree(r->info.rate, request->rate))
        return fault_set(fault, "--rate %.12g: %s has %.12g Hz; leave out --rate", request->rate,
                         r->source.name, r->info.rate);
    if (good && r->info.rate == 0) r->info.rate = request->rate;
    return good;
}

static bool finish_open(struct audio_reader **ret_reader, struct audio_reader *r,
                        const struct audio_request *request, struct fault *fault)
{
    r->ops = &flat_reader; // of most formats
    if (!open_any(r, request, fault)) {
        audio_reader_close(r);
        return false;
    }
    if (r->tags.n) r->info.tags = &r->tags;
    *ret_reader = r;
    return true;
}

// recording: its samples are in the file; NULL: the file is read by itself.
static bool audio_open_file(struct audio_reader **ret_reader, const struct audio_request *request,
                            const struct sigmf *recording, struct fault *fault)
{
    struct audio_reader *r = calloc(1, sizeof *r);
    if (!r) return fault_set(fault, "out of memory");
    bool good = source_open(&r->source, request->path, request->wake_fd, fault);
    if (good && recording && recording->sha512 && r->source.seekable) {
        r->expected = recording->sha512;
        SHA512Init(&r->digest);
        r->source.digest = &r->digest;
    }
    struct fault said;
    if (good && recording && !source_restrict(&r->source, &recording->part, &said)) {
        source_close(&r->source);
        good = fault_set(fault, "%s: %s", recording->meta, said.text);
    }
    if (good) return finish_open(ret_reader, r, request, fault);
    free(r);
    return false;
}

static bool open_recording(struct audio_reader **ret_reader, const struct audio_request *request,
                           struct fault *fault)
{
    struct sigmf *sigmf = calloc(1, sizeof *sigmf);
    struct audio_request raw = *request;
    if (!sigmf) return fault_set(fault, "out of memory");
    bool good = sigmf_read(request->path, sigmf, fault);
    if (good && request->rate > 0 && sigmf->rate > 0 && !rates_agree(request->rate, sigmf->rate))
        good = fault_set(fault, "--rate %.12g: %s has %.12g Hz; leave out --rate", request->rate,
                         request->path, sigmf->rate);
    raw.path = sigmf->data;
    raw.raw = &sigmf->encoding;
    raw.channels = sigmf->channels;
    raw.headed = sigmf->part.n_gaps > 0;
    if (sigmf->rate > 0) raw.rate = sigmf->rate;
    if (!good || !audio_open_file(ret_reader, &raw, sigmf, fault)) {
        sigmf_release(sigmf);
        free(sigmf);
        return false;
    }
    (*ret_reader)->source.name = request->path;
    (*ret_reader)->recording = sigmf;
    return true;
}

bool audio_open(struct audio_reader **ret_reader, const struct audio_request *request,
                struct fault *fault)
{
    const bool by_name = !request->raw && !request->is_text;
    if (by_name && sigmf_is_recording(request->path))
        return open_recording(ret_reader, request, fault);
    if (by_name && sofa_is_named(request->path) && !audio_check_regular(request->path, fault))
        return false;
    return audio_open_file(ret_reader, request, NULL, fault);
}

bool audio_check_regular(const char *path, struct fault *fault)
{
    char buffer[PATH_MAX];
    const char *samples = sigmf_samples(path, buffer);
    struct stat st;
    return stat(samples, &st) != 0 || S_ISREG(st.st_mode) ||
           fault_set(fault, "%s: is not a regular file, as it must be here", samples);
}

bool audio_open_memory(struct audio_reader **ret_reader, const void *bytes, size_t size,
                       bool as_pipe, const struct audio_request *request, struct fault *fault)
{
    struct audio_reader *r = calloc(1, sizeof *r);
    if (!r) return fault_set(fault, "out of memory");
    source_from_memory(&r->source, bytes, size);
    r->source.name = request->path;
    r->source.seekable = !as_pipe;
    return finish_open(ret_reader, r, request, fault);
}

const struct audio_info *audio_reader_info(const struct audio_reader *reader)
{
    return &reader->info;
}

bool audio_pair_channels(struct audio_reader *reader, bool wanted, struct fault *fault)
{
    struct audio_info *info = &reader->info;
    const bool pair = info->channels == 2 && !info->encoding.is_complex &&
                      (info->container == CONTAINER_WAV || info->container == CONTAINER_SNDFILE);
    info->iq = pair && (info->iq || wanted);
    if (wanted && !pair && !info->encoding.is_complex)
        return fault_set(fault,
                         "%s: --iq needs I and Q in the two channels of a WAV; raw samples have a "
                         "complex type, as in --format ci16",
                         reader->source.name);
    if (!info->iq) return true;
    info->channels = 1;
    info->encoding.is_complex = true;
    info->rank = 1;
    info->channel_mask = 0;
    return true;
}

bool audio_reader_is_pipe(const struct audio_reader *reader)
{
    return !reader->source.seekable;
}

bool audio_reader_state(const struct audio_reader *reader, uint64_t *ret_bytes, int64_t *ret_time)
{
    struct stat st;
    if (reader->source.fd < 0 || fstat(reader->source.fd, &st)) return false;
    *ret_bytes = (uint64_t)st.st_size;
    *ret_time = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return true;
}

bool audio_reader_fingerprint(const struct audio_reader *reader, uint64_t *ret_hash,
                              struct fault *fault)
{
    enum { PROBES = 128, PROBE_BYTES = 32768 }; // about a second of a disk that seeks
    const struct source *s = &reader->source;
    unsigned char *block = malloc(PROBE_BYTES);
    if (!block) return fault_set(fault, "out of memory");
    const uint64_t after = s->size > PROBE_BYTES ? s->size - PROBE_BYTES : 0;
    const uint64_t n = s->size / PROBE_BYTES < PROBES ? s->size / PROBE_BYTES + 1 : PROBES;
    ssize_t got = 0;
    uint64_t hash = hash_bytes(HASH_BEGIN, &s->size, sizeof s->size);
    for (uint64_t i = 0; got >= 0 && i < n; i++) {
        const uint64_t at = n > 1 ? after / (n - 1) * i + after % (n - 1) * i / (n - 1) : 0;
        got = pread(s->fd, block, PROBE_BYTES, (off_t)(s->base + at));
        if (got > 0) hash = hash_words(hash, block, (size_t)got);
    }
    free(block);
    *ret_hash = hash;
    return got >= 0 || fault_set(fault, "%s: cannot read: %s", s->name, strerror(errno));
}

const struct sigmf *audio_reader_recording(const struct audio_reader *reader)
{
    return reader->recording;
}

// Gives n real scalars an imaginary part of 0, in place and therefore from the last to the first.
static void make_complex(void *x, size_t n, bool as_double)
{
    double *d = x;
    float *f = x;
    for (size_t i = n; i-- > 0;) {
        if (as_double) {
            d[2 * i] = d[i];
            d[2 * i + 1] = 0;
        } else {
            f[2 * i] = f[i];
            f[2 * i + 1] = 0;
        }
    }
}

// After the last byte of samples that were read without gaps.
static bool check_digest(struct audio_reader *r, struct fault *fault)
{
    char text[SHA512_DIGEST_STRING_LENGTH];
    if (!r->source.digest || r->source.position < r->source.size) return true;
    source_digest_rest(&r->source);
    SHA512End(&r->digest, text);
    r->source.digest = NULL;
    if (strcasecmp(text, r->expected) == 0) return true;
    return fault_set(fault, "%s: its samples do not have the sum of core:sha512", r->source.name);
}

bool audio_read(struct audio_reader *reader, enum partita_type type, void *frames, size_t n,
                size_t *ret_n, struct fault *fault)
{
    bool as_double = type_is_double(type);
    if (!reader->ops->read(reader, as_double, frames, n, ret_n, fault) ||
        !check_digest(reader, fault))
        return false;
    bool promote = type_is_complex(type) && !reader->info.encoding.is_complex;
    if (promote) make_complex(frames, *ret_n * reader->info.channels, as_double);
    return true;
}

bool audio_skip(struct audio_reader *reader, uint64_t n, struct fault *fault)
{
    return reader->ops->skip(reader, n, fault);
}

uint64_t audio_position(const struct audio_reader *reader)
{
    return reader->position;
}

const char *audio_shortfall(const struct audio_reader *reader)
{
    return reader->shortfall[0] ? reader->shortfall : NULL;
}

bool audio_interrupted(const struct audio_reader *reader)
{
    return reader->source.interrupted;
}

void audio_reader_close(struct audio_reader *reader)
{
    if (!reader) return;
    if (reader->ops && reader->ops->close) reader->ops->close(reader);
    else memory_free(reader->state);
    free(reader->raw);
    source_close(&reader->source);
    if (reader->recording) sigmf_release(reader->recording);
    free(reader->recording);
    tags_release(&reader->tags);
    free(reader);
}
