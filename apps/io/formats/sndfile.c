// SPDX-License-Identifier: MIT
// All other formats, through libsndfile. It reads and writes through struct source and struct sink,
// because libsndfile itself reports no failed write, and integers are rounded and clipped here,
// because libsndfile wraps and converts NaN to full scale.
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "formats.h"

static sf_count_t seek_target(sf_count_t offset, int whence, uint64_t position, uint64_t size)
{
    if (whence == SEEK_CUR) return offset + (sf_count_t)position;
    if (whence == SEEK_END) return offset + (sf_count_t)size;
    return offset;
}

static sf_count_t sndfile_source_length(void *user)
{
    return (sf_count_t)((struct source *)user)->size;
}

static sf_count_t sndfile_source_seek(sf_count_t offset, int whence, void *user)
{
    struct source *s = user;
    sf_count_t to = seek_target(offset, whence, s->position, s->size);
    if (to < 0 || !source_seek(s, (uint64_t)to)) return -1;
    return to;
}

static sf_count_t sndfile_source_read(void *to, sf_count_t n, void *user)
{
    return (sf_count_t)source_read(user, to, (size_t)n);
}

static sf_count_t sndfile_source_tell(void *user)
{
    return (sf_count_t)((struct source *)user)->position;
}

// The sample encoding closest to a libsndfile subtype.
static struct encoding encoding_of_subtype(int format)
{
    switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_S8:
    case SF_FORMAT_PCM_U8:
        return (struct encoding){.kind = ENCODING_SIGNED, .bytes = 1};
    case SF_FORMAT_PCM_24:
    case SF_FORMAT_ALAC_24:
        return (struct encoding){.kind = ENCODING_SIGNED, .bytes = 3};
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_ALAC_32:
        return (struct encoding){.kind = ENCODING_SIGNED, .bytes = 4};
    case SF_FORMAT_DOUBLE:
        return (struct encoding){.kind = ENCODING_FLOAT, .bytes = 8};
    case SF_FORMAT_FLOAT:
    case SF_FORMAT_VORBIS:
    case SF_FORMAT_OPUS:
        return (struct encoding){.kind = ENCODING_FLOAT, .bytes = 4};
    default:
        return (struct encoding){.kind = ENCODING_SIGNED, .bytes = 2};
    }
}

static bool sndfile_read(struct audio_reader *r, bool as_double, void *scalars, size_t n,
                         size_t *ret_n, struct fault *fault)
{
    SNDFILE *file = r->state;
    sf_count_t got = as_double ? sf_readf_double(file, scalars, (sf_count_t)n)
                               : sf_readf_float(file, scalars, (sf_count_t)n);
    if (r->source.error)
        return fault_set(fault, "%s: cannot read: %s", r->source.name, strerror(r->source.error));
    // At the end of a truncated FLAC file the decoder looks for a frame that is not there.
    const bool at_end = r->source.position == r->source.size;
    if (sf_error(file) && !(at_end && strstr(sf_strerror(file), "lost sync")))
        return fault_set(fault, "%s: after %llu frames: %s", r->source.name,
                         (unsigned long long)r->position, sf_strerror(file));
    *ret_n = got > 0 ? (size_t)got : 0;
    r->position += *ret_n;
    if (*ret_n || !n || r->info.frames == SIZE_UNKNOWN || r->position >= r->info.frames)
        return true;
    // libsndfile also ends a file where its decoder has no memory.
    if (r->source.position < r->source.size)
        return fault_set(fault, "%s: after %llu of %llu frames: the decoder stopped",
                         r->source.name, (unsigned long long)r->position,
                         (unsigned long long)r->info.frames);
    reader_ends_after(r, r->position);
    return true;
}

static bool sndfile_skip(struct audio_reader *r, uint64_t n, struct fault *fault)
{
    uint64_t to = r->info.frames - r->position < n ? r->info.frames : r->position + n;
    if (sf_seek(r->state, (sf_count_t)to, SEEK_SET) < 0)
        return fault_set(fault, "%s: cannot seek to frame %llu", r->source.name,
                         (unsigned long long)to);
    r->position = to;
    return true;
}

static void sndfile_close_reader(struct audio_reader *r)
{
    if (r->state) sf_close(r->state);
}

static const struct reader_ops sndfile_reader = {
    .read = sndfile_read, .skip = sndfile_skip, .close = sndfile_close_reader};

// libsndfile treats a truncated file as a shorter one and reports that only in its log: "Size :
// 400046 (should be 200019)", where the first number is the header's and the second the actual
// size. An Ogg file without its last page has no length.
static void check_truncation(struct audio_reader *r, const SF_INFO *sf)
{
    char log[4096] = "";
    unsigned long long claimed, present;
    sf_command(r->state, SFC_GET_LOG_INFO, log, sizeof log);
    const char *mark = strstr(log, " (should be ");
    const char *number = mark;
    while (number && number > log && number[-1] >= '0' && number[-1] <= '9') number--;
    bool is_ogg = (sf->format & SF_FORMAT_TYPEMASK) == SF_FORMAT_OGG;
    if (is_ogg && sf->frames == SF_COUNT_MAX)
        snprintf(r->shortfall, sizeof r->shortfall, "%.80s: ends before its last page",
                 r->source.name);
    if (!number || sscanf(number, "%llu (should be %llu", &claimed, &present) != 2) return;
    // Longer than its header says, or of unknown length, which 32 bits express by their largest
    // values. Formats with sizes of 64 bits write exact ones.
    if (claimed <= present || (claimed >= 0x7FFFF000u && claimed <= UINT32_MAX)) return;
    snprintf(r->shortfall, sizeof r->shortfall,
             "%.80s: its header counts %llu bytes, %llu are there", r->source.name, claimed,
             present);
}

// Texts of libsndfile and their names in a WAV. What names the writing program is not copied.
static const struct {
    const char *id;
    int text;
} texts[] = {
    {"INAM", SF_STR_TITLE},   {"IART", SF_STR_ARTIST},      {"IPRD", SF_STR_ALBUM},
    {"ICRD", SF_STR_DATE},    {"ITRK", SF_STR_TRACKNUMBER}, {"IGNR", SF_STR_GENRE},
    {"ICMT", SF_STR_COMMENT}, {"ICOP", SF_STR_COPYRIGHT},
};
enum { N_TEXTS = sizeof texts / sizeof *texts };

static void read_texts(struct audio_reader *r)
{
    for (size_t i = 0; i < N_TEXTS; i++) {
        const char *text = sf_get_string(r->state, texts[i].text);
        if (text) tags_append_text(&r->tags, texts[i].id, text);
    }
}

// The loudspeakers of FLAC's channels (RFC 9639), for more than two.
static uint32_t flac_mask(const SF_INFO *sf)
{
    static const uint32_t masks[] = {0, 0, 0, 0x7, 0x33, 0x37, 0x3f, 0x70f, 0x63f};
    const bool flac = (sf->format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC;
    return flac && sf->channels <= 8 ? masks[sf->channels] : 0;
}

// What to do with a file of another kind, by the suffix of its name and its first bytes.
static const char *remedy_for(struct source *source)
{
    enum { MAX_SUFFIXES = 7 };
    static const struct {
        const char *remedy, *suffixes[MAX_SUFFIXES];
    } kinds[] = {
        {"save the array with numpy.save, as .npy, and name that file",
         {".npz", ".csv", ".tsv", ".mat", ".h5", ".pt", ".pkl"}},
        {"convert it to .wav or .flac, for example with ffmpeg",
         {".mp3", ".mp4", ".m4a", ".aac", ".wma", ".mov", ".webm"}},
        {"name a configuration with --config, in place of IR", {".conf", ".cfg", ".yml", ".yaml"}},
    };
    const char *dot = strrchr(source->name, '.');
    for (size_t i = 0; dot && i < sizeof kinds / sizeof *kinds; i++)
        for (size_t k = 0; k < MAX_SUFFIXES && kinds[i].suffixes[k]; k++)
            if (strcasecmp(dot, kinds[i].suffixes[k]) == 0) return kinds[i].remedy;
    return source_seek(source, 0) && content_is_text(source)
               ? "it begins like text, whose name ends with .txt"
               : "for raw samples use --format, for example --format cf32";
}

bool sndfile_open(struct audio_reader *reader, struct fault *fault)
{
    SF_VIRTUAL_IO io = {sndfile_source_length, sndfile_source_seek, sndfile_source_read, NULL,
                        sndfile_source_tell};
    SF_INFO sf = {0};
    if (!reader->source.seekable)
        return fault_set(fault,
                         "%s: neither WAV nor .npy, the formats that pipes can carry; for raw "
                         "samples use --format",
                         reader->source.name);
    reader->state = sf_open_virtual(&io, SFM_READ, &sf, &reader->source);
    if (!reader->state) {
        return fault_set(fault, "%s: %llu bytes of no known format; %s", reader->source.name,
                         (unsigned long long)reader->source.size, remedy_for(&reader->source));
    }
    check_truncation(reader, &sf);
    read_texts(reader);
    reader->ops = &sndfile_reader;
    reader->info = (struct audio_info){
        .container = CONTAINER_SNDFILE,
        .encoding = encoding_of_subtype(sf.format),
        .channels = (size_t)sf.channels,
        .rate = sf.samplerate,
        .frames = sf.frames >= 0 && sf.frames < SF_COUNT_MAX ? (uint64_t)sf.frames : SIZE_UNKNOWN,
        .rank = sf.channels > 1 ? 2 : 1,
        .channel_mask = flac_mask(&sf),
    };
    return true;
}

struct major {
    const char *suffix;
    int format;
};

static const struct major majors[] = {
    {"flac", SF_FORMAT_FLAC}, {"ogg", SF_FORMAT_OGG},  {"oga", SF_FORMAT_OGG},
    {"aiff", SF_FORMAT_AIFF}, {"aif", SF_FORMAT_AIFF}, {"caf", SF_FORMAT_CAF},
    {"au", SF_FORMAT_AU},     {"snd", SF_FORMAT_AU},   {"w64", SF_FORMAT_W64},
    {"opus", SF_FORMAT_OGG},
};

int sndfile_major(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof majors / sizeof *majors; i++)
        if (strcasecmp(dot + 1, majors[i].suffix) == 0)
            return majors[i].format | (strcasecmp(dot, ".opus") == 0 ? SF_FORMAT_OPUS : 0);
    return 0;
}

static int sndfile_format(const char *path, struct encoding encoding)
{
    static const int integers[] = {SF_FORMAT_PCM_S8, SF_FORMAT_PCM_16, SF_FORMAT_PCM_24,
                                   SF_FORMAT_PCM_32};
    int major = sndfile_major(path);
    if (major & SF_FORMAT_SUBMASK) return major;
    if (major == SF_FORMAT_OGG) return major | SF_FORMAT_VORBIS;
    if (encoding.kind != ENCODING_FLOAT) return major | integers[encoding.bytes - 1];
    return major | (encoding.bytes == 8 ? SF_FORMAT_DOUBLE : SF_FORMAT_FLOAT);
}

static bool sndfile_can_store(const char *path, struct encoding encoding)
{
    SF_INFO sf = {.samplerate = 48000, .channels = 1, .format = sndfile_format(path, encoding)};
    return sf_format_check(&sf);
}

bool sndfile_is_compressed(const char *path)
{
    const int major = sndfile_major(path) & SF_FORMAT_TYPEMASK;
    return major == SF_FORMAT_FLAC || major == SF_FORMAT_OGG;
}

double sndfile_max_rate(const char *path)
{
    return (sndfile_major(path) & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC ? 655350 : INT32_MAX;
}

bool sndfile_encoding(const char *path, struct encoding requested, struct encoding *ret_encoding)
{
    struct encoding e = {.kind =
                             requested.kind == ENCODING_FLOAT ? ENCODING_FLOAT : ENCODING_SIGNED,
                         .bytes = requested.bytes};
    if (requested.is_complex || !sndfile_major(path)) return false;
    if (e.kind == ENCODING_FLOAT && !sndfile_can_store(path, e))
        e = (struct encoding){.kind = ENCODING_SIGNED, .bytes = 3};
    if (e.kind == ENCODING_SIGNED && e.bytes == 4 && !sndfile_can_store(path, e)) e.bytes = 3;
    *ret_encoding = e;
    return sndfile_can_store(path, e);
}

static sf_count_t sndfile_sink_length(void *user)
{
    return (sf_count_t)((struct sink *)user)->end;
}

static sf_count_t sndfile_sink_seek(sf_count_t offset, int whence, void *user)
{
    struct sink *s = user;
    sf_count_t to = seek_target(offset, whence, s->position, s->end);
    if (to == (sf_count_t)s->position) return to;
    return to >= 0 && s->seekable && sink_seek(s, (uint64_t)to) ? to : -1;
}

static sf_count_t no_read(void *to, sf_count_t n, void *user)
{
    (void)to, (void)n, (void)user;
    return 0;
}

static sf_count_t sndfile_sink_write(const void *from, sf_count_t n, void *user)
{
    return sink_write(user, from, (size_t)n) ? n : 0;
}

static sf_count_t sndfile_sink_tell(void *user)
{
    return (sf_count_t)((struct sink *)user)->position;
}

static bool sndfile_write_integers(struct audio_writer *w, bool as_double, const void *scalars,
                                   size_t n)
{
    size_t n_scalars = n * w->info.channels;
    if (!raw_reserve(&w->raw, &w->raw_capacity, n_scalars * sizeof(int32_t))) return false;
    int32_t *y = (int32_t *)(void *)w->raw;
    if (as_double)
        samples_quantise_f64(y, scalars, n_scalars, 8 * w->info.encoding.bytes, &w->counts);
    else samples_quantise_f32(y, scalars, n_scalars, 8 * w->info.encoding.bytes, &w->counts);
    if (w->digested)
        w->counts.digest = samples_digest(w->counts.digest, y, n * w->info.channels, sizeof *y);
    return sf_writef_int(w->state, y, (sf_count_t)n) == (sf_count_t)n;
}

static bool sndfile_write(struct audio_writer *w, bool as_double, const void *scalars, size_t n,
                          struct fault *fault)
{
    bool good;
    if (w->info.encoding.kind != ENCODING_FLOAT)
        good = sndfile_write_integers(w, as_double, scalars, n);
    else if (as_double) good = sf_writef_double(w->state, scalars, (sf_count_t)n) == (sf_count_t)n;
    else good = sf_writef_float(w->state, scalars, (sf_count_t)n) == (sf_count_t)n;
    if (w->sink.error) return sink_fault(&w->sink, fault);
    if (!good) return fault_set(fault, "%s: cannot write: %s", w->sink.name, sf_strerror(w->state));
    w->frames += n;
    return true;
}

static bool sndfile_finish(struct audio_writer *w, struct fault *fault)
{
    sf_close(w->state);
    w->state = NULL;
    return !w->sink.error || sink_fault(&w->sink, fault);
}

// Compressed formats have no length in their header before the end; libsndfile would write it anew.
static bool sndfile_refresh(struct audio_writer *w, struct fault *fault)
{
    if (!w->sink.seekable || sndfile_is_compressed(w->sink.name)) return true;
    sf_command(w->state, SFC_UPDATE_HEADER_NOW, NULL, 0);
    return !w->sink.error || sink_fault(&w->sink, fault);
}

static void sndfile_close_writer(struct audio_writer *w)
{
    if (w->state) sf_close(w->state);
}

static bool sndfile_begin(struct audio_writer *writer, struct fault *fault)
{
    const char *path = writer->sink.name;
    SF_VIRTUAL_IO io = {sndfile_sink_length, sndfile_sink_seek, no_read, sndfile_sink_write,
                        sndfile_sink_tell};
    const double rate = container_rate(CONTAINER_SNDFILE, path, writer->info.rate);
    SF_INFO sf = {.samplerate = (int)rate,
                  .channels = (int)writer->info.channels,
                  .format = sndfile_format(path, writer->info.encoding)};
    if (rate == 0)
        return fault_set(fault, "%s: needs a sample rate and the input has none; use --rate",
                         writer->sink.name);
    writer->state = sf_open_virtual(&io, SFM_WRITE, &sf, &writer->sink);
    if (!writer->state)
        return fault_set(fault, "%s: cannot write %zu channels at %.0f Hz: %s", writer->sink.name,
                         writer->info.channels, rate, sf_strerror(NULL));
    for (size_t i = 0; i < N_TEXTS; i++) {
        char *text = tags_text(&writer->tags, texts[i].id);
        if (text) sf_set_string(writer->state, texts[i].text, text);
        free(text);
    }
    return true;
}

const struct writer_ops sndfile_writer = {.write = sndfile_write,
                                          .begin = sndfile_begin,
                                          .finish = sndfile_finish,
                                          .refresh = sndfile_refresh,
                                          .close = sndfile_close_writer};
