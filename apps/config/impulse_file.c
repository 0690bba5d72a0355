// SPDX-License-Identifier: MIT
#include "impulse_file.h"

#include <string.h>

#include "base/memory.h"
#include "cli/option_words.h"
#include "io/formats/sofa.h"

static bool open_file(struct audio_reader **ret, const struct impulse *impulse, size_t max_channels,
                      struct fault *fault)
{
    if (strcmp(impulse->path, "-") == 0)
        return fault_set(
            fault,
            "-: taps of a configuration or a chain are in files, like those of `partita live`, not "
            "in standard input");
    if (impulse->source == IMPULSE_FILE && sofa_is_named(impulse->path))
        return fault_set(fault, "%s: is a SOFA file: give it as IR, not in --config",
                         impulse->path);
    // A pipe could keep `partita live` waiting for ever.
    if (!audio_check_regular(impulse->path, fault)) return false;
    const struct audio_request request = {
        .path = impulse->path,
        .raw = impulse->source == IMPULSE_RAW ? &impulse->raw : NULL,
        .headed = impulse->offset > 0,
        .is_text = impulse->source == IMPULSE_TEXT,
        .skip_lines = impulse->skip_lines,
        .max_channels = max_channels,
        .wake_fd = -1,
    };
    return audio_open(ret, &request, fault);
}

static bool is_same_file(const struct impulse *a, const struct impulse *b)
{
    return a->source == b->source && strcmp(a->path, b->path) == 0 &&
           a->skip_lines == b->skip_lines &&
           (a->source != IMPULSE_RAW || memcmp(&a->raw, &b->raw, sizeof a->raw) == 0);
}

static bool read_whole(struct impulse_file *file, const struct impulse *impulse,
                       struct fault *fault)
{
    struct audio_reader *reader;
    if (file->kept && is_same_file(file->kept, impulse)) return true;
    impulse_file_release(file);
    if (!open_file(&reader, impulse, file->max_channels, fault)) return false;
    bool good =
        !audio_reader_info(reader)->encoding.is_complex ||
        fault_set(fault, "%s: complex taps, which configurations, chains and sound do not have",
                  impulse->path);
    good = good && frames_read(&file->frames, reader, PARTITA_F64, impulse->path, fault);
    if (good && audio_shortfall(reader)) {
        snprintf(file->notes.shortfall, NOTE_SIZE, "%s", audio_shortfall(reader));
        good = file->may_be_short || fault_set(fault, "%s", audio_shortfall(reader));
    }
    if (!good) frames_release(&file->frames);
    file->rate = audio_reader_info(reader)->rate;
    if (good && *audio_reader_info(reader)->note)
        snprintf(file->notes.note, NOTE_SIZE, "%s", audio_reader_info(reader)->note);
    audio_reader_close(reader);
    if (good) file->kept = impulse;
    return good;
}

// The frames of an impulse within the file, which must have them.
static bool choose_frames(const struct impulse_file *file, const struct network *network,
                          const struct impulse *impulse, size_t *ret_n, struct fault *fault)
{
    const size_t n = file->frames.n, channels = file->frames.channels,
                 first = network->first_channel;
    if (impulse->channel >= channels)
        return fault_set(fault, "%s: has %zu channel%s; channel %zu is not from %zu to %zu",
                         impulse->path, channels, channels == 1 ? "" : "s",
                         first + impulse->channel, first, first + channels - 1);
    if (impulse->offset >= n)
        return fault_set(fault, "%s: has %zu frames; an offset of %zu leaves none", impulse->path,
                         n, impulse->offset);
    *ret_n = n - impulse->offset;
    if (impulse->length && impulse->length < *ret_n) *ret_n = impulse->length;
    return true;
}

static bool allocate_taps(struct frames *ret, size_t n, struct fault *fault)
{
    *ret = (struct frames){memory_allocate(n * sizeof(double)), n, 1, PARTITA_F64};
    return ret->data || memory_fault(fault, "%zu taps", n);
}

static bool read_impulse(struct impulse_file *file, const struct network *network,
                         const struct impulse *impulse, struct frames *ret, struct fault *fault)
{
    size_t n = 0;
    if (!read_whole(file, impulse, fault) || !choose_frames(file, network, impulse, &n, fault) ||
        !allocate_taps(ret, n, fault))
        return false;
    const size_t step = file->frames.channels;
    const double *from =
        (const double *)file->frames.data + impulse->offset * step + impulse->channel;
    for (size_t i = 0; i < n; i++) ((double *)ret->data)[i] = from[i * step];
    return true;
}

// The taps of sections in series. Coefficients belong to the rate of the network, other sections to
// any.
static bool make_taps(const struct impulse *impulse, double rate, struct frames *ret,
                      struct fault *fault)
{
    struct fault log = {0};
    struct partita_equalizer_result result;
    const struct partita_equalizer equalizer = {.rate = rate,
                                                .sections = impulse->sections,
                                                .n_sections = impulse->n_sections,
                                                .tail = INNER_TAIL,
                                                .log = {option_words_log, &log},
                                                .allocator = memory_allocator()};
    enum partita_status status = partita_equalizer_taps(&equalizer, NULL, 0, &result);
    if (!status && !allocate_taps(ret, result.taps, fault)) return false;
    if (!status) status = partita_equalizer_taps(&equalizer, ret->data, ret->n, &result);
    if (!status) return true;
    frames_release(ret);
    if (status == PARTITA_ERR_NOMEM) return memory_fault(fault, "taps of a recursive filter");
    if (status == PARTITA_ERR_UNSUPPORTED)
        return fault_set(fault, "decays too slowly for taps; use higher frequencies or a lower q");
    const char *field = strchr(log.text, ']'); // after the name of a section
    return fault_set(fault, "%s", field ? field + 1 + strspn(field + 1, ".: ") : log.text);
}

bool impulse_file_read(struct impulse_file *file, const struct network *network,
                       const struct impulse *impulse, struct frames *ret, double *ret_rate,
                       struct fault *fault)
{
    struct fault said;
    bool good;
    *ret_rate = 0;
    if (impulse->values) {
        good = allocate_taps(ret, impulse->n_values, &said);
        if (good) memcpy(ret->data, impulse->values, ret->n * sizeof *impulse->values);
    } else if (impulse->sections) {
        const bool fixed = impulse->sections->kind == PARTITA_SECTION_BIQUAD;
        *ret_rate = file->signal_rate > 0 && !fixed ? file->signal_rate : network->rate;
        good = make_taps(impulse, *ret_rate, ret, &said);
    } else {
        good = read_impulse(file, network, impulse, ret, &said);
        *ret_rate = file->rate;
    }
    return good || network_fault(network, impulse->line, fault, "%.500s", said.text);
}

void impulse_file_release(struct impulse_file *file)
{
    frames_release(&file->frames);
    file->kept = NULL;
}

bool impulse_file_info(const struct impulse *impulse, size_t max_channels, struct audio_info *ret,
                       struct fault *fault)
{
    struct audio_reader *reader;
    if (!open_file(&reader, impulse, max_channels, fault)) return false;
    *ret = *audio_reader_info(reader);
    ret->tags = NULL; // which the reader has
    audio_reader_close(reader);
    return true;
}
