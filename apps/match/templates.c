// SPDX-License-Identifier: MIT
// `partita correlate --templates`: where many templates of all channels are in a signal. Memory
// holds templates, spectra and a piece of the signal; a signal of unknown length as a whole.
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../lib/base/sizes.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "convolve/shard.h"
#include "convolve/usage.h"
#include "correlate/search.h"
#include "io/bytes/temp.h"
#include "io/formats/npy.h"
#include "io/frames.h"
#include "signals.h"

struct template
{
    char *name;     // without folder and suffix
    float *samples; // [channels][length]
    size_t length;
};

struct job {
    struct settings settings;
    struct signals signals; // the channels of IN
    size_t frames;
    const float **x; // [channels], for a piece
    struct template *templates;
    const char **names; // of all templates
    size_t n_templates, capacity;
    const float **samples; // of those that are searched
    size_t *lengths;
    // Of several processes: of the templates one in n_shares, n_shared, are searched by this one.
    size_t share, n_shares, n_shared;
    size_t piece_from, begin, end; // the first frame of the piece; matches count from begin to end
    struct processes processes;
    struct search search;   // .channel of peaks: index of the template
    struct fault log, lack; // of memory for what was found
};

// Templates of one length follow each other, so that norms are computed once.
static int compare_templates(const void *a, const void *b)
{
    const struct template *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool check_template(const struct job *job, const struct audio_info *info, const char *path,
                           struct fault *fault)
{
    const double rate = audio_reader_info(job->signals.in[0])->rate;
    const char *in = operand_name(&job->settings, 1);
    if (info->encoding.is_complex)
        return fault_set(fault, "%s: has complex samples; those of templates are real", path);
    if (info->channels != 1 && info->channels != job->signals.n)
        return fault_set(fault,
                         "%s: has %zu channels; a template for %s has %zu, or one for all of them",
                         path, info->channels, in, job->signals.n);
    return !(info->rate > 0 && rate > 0) || rates_agree(info->rate, rate) ||
           fault_set(fault,
                     "%s: sample rate %.12g Hz differs from the %.12g Hz of %s; convert one of "
                     "them to the rate of the other",
                     path, info->rate, rate, in);
}

static bool take_template(struct job *job, const struct frames *f, const char *path,
                          struct fault *fault)
{
    struct template *grown =
        memory_append(job->templates, job->n_templates, &job->capacity, sizeof *grown);
    if (!grown) return fault_set(fault, "out of memory");
    job->templates = grown;
    struct template *t = &grown[job->n_templates++];
    *t = (struct template){strdup(path_base(path)),
                           memory_allocate(job->signals.n * f->n * sizeof *t->samples), f->n};
    if (!t->name || !t->samples) return memory_fault(fault, "%s: a template", path);
    char *suffix = strrchr(t->name, '.');
    if (suffix && suffix != t->name) *suffix = 0;
    for (size_t c = 0; c < job->signals.n; c++)
        frames_copy_channel(f, c % f->channels, t->samples + c * f->n);
    return true;
}

// A file, or the bytes of one in an .npz.
static bool add_file(void *context, const char *path, const void *bytes, size_t n,
                     struct fault *fault)
{
    struct job *job = context;
    const struct audio_request request = {
        .path = path, .max_channels = options_max_channels(&job->settings), .wake_fd = -1};
    struct audio_reader *reader;
    struct frames f = {0};
    if (!(bytes ? audio_open_memory(&reader, bytes, n, false, &request, fault)
                : audio_check_regular(path, fault) && audio_open(&reader, &request, fault)))
        return false;
    const bool good = check_template(job, audio_reader_info(reader), path, fault) &&
                      frames_read(&f, reader, PARTITA_F32, path, fault) &&
                      take_template(job, &f, path, fault);
    frames_release(&f);
    audio_reader_close(reader);
    return good;
}

static bool add_folder(struct job *job, const char *folder, struct fault *fault)
{
    struct dirent **entries;
    bool good = true, known;
    const int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0) return fault_set(fault, "%s: cannot read: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        const char *name = entries[i]->d_name;
        container_of_name(name, &known);
        if (good && known && *name != '.') {
            if (asprintf(&path, "%s/%s", folder, name) < 0) path = NULL;
            good = path ? add_file(job, path, NULL, 0, fault) : fault_set(fault, "out of memory");
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return good;
}

static bool load_templates(struct job *job, struct fault *fault)
{
    const char *path = job->settings.operands[0];
    struct stat st;
    if (stat(path, &st)) return fault_set(fault, "%s: cannot open: %s", path, strerror(errno));
    if (!(S_ISDIR(st.st_mode)            ? add_folder(job, path, fault)
          : path_ends_with(path, ".npz") ? npz_visit(path, add_file, job, fault)
                                         : add_file(job, path, NULL, 0, fault)))
        return false;
    if (!job->n_templates)
        return fault_set(fault, "%s: holds no templates; they are files such as .npy and .wav",
                         path);
    qsort(job->templates, job->n_templates, sizeof *job->templates, compare_templates);
    job->samples = calloc(job->n_templates, sizeof *job->samples);
    job->lengths = calloc(job->n_templates, sizeof *job->lengths);
    job->names = calloc(job->n_templates, sizeof *job->names);
    if (!job->samples || !job->lengths || !job->names) return fault_set(fault, "out of memory");
    for (size_t i = 0; i < job->n_templates; i++) job->names[i] = job->templates[i].name;
    return true;
}

static bool open_signal(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    struct signals *signals = &job->signals;
    signals->in = calloc(1, sizeof(struct audio_reader *));
    if (!signals->in) return fault_set(fault, "out of memory");
    *signals = (struct signals){.in = signals->in, .n_in = 1, .may_end = true};
    if (!usage_open_signal(signals->in, s, fault)) return false;
    const struct audio_info *in = audio_reader_info(signals->in[0]);
    if (in->encoding.is_complex)
        return fault_set(fault, "%s: has complex samples; --templates are searched in real ones",
                         operand_name(s, 1));
    signals->n = in->channels;
    job->x = calloc(in->channels, sizeof *job->x);
    if (!job->x) return fault_set(fault, "out of memory");
    return options_resolve_times(&job->settings, in->rate, fault);
}

// The length of a pipe is known when all of it is in memory.
static bool measure_signal(struct job *job, struct fault *fault)
{
    struct signals *signals = &job->signals;
    uint64_t frames = audio_reader_info(signals->in[0])->frames;
    for (size_t room = 1 << 20; frames == SIZE_UNKNOWN; room *= 2) {
        if (!signals_reserve(signals, room, fault) || !signals_hold(signals, 0, room, fault))
            return false;
        if (signals->to < room) frames = signals->to;
    }
    job->frames = (size_t)frames;
    return true;
}

// The number among all templates of one that this process searches.
static size_t number_of(const struct job *job, size_t i)
{
    return i < job->n_shared ? job->share + i * job->n_shares : job->n_templates - 1;
}

static void take_match(void *context, const struct partita_match *match)
{
    struct job *job = context;
    const size_t time = job->piece_from + match->time;
    if (match->template_index >= job->n_shared || time < job->begin || time >= job->end) return;
    const struct peak peak = {.index = time,
                              .channel = number_of(job, match->template_index),
                              .magnitude = fabs(match->value),
                              .phase = match->value < 0 ? M_PI : 0,
                              .level = fabs(match->value)};
    search_collect(&job->search, &peak, &job->lack);
}

// The library names templates by their numbers.
static bool explain(const struct job *job, enum partita_status status, struct fault *fault)
{
    size_t template, channel;
    if (sscanf(job->log.text, "templates[%zu], channel %zu:", &template, &channel) == 2)
        return fault_set(fault, "%s: channel %zu of template %s is %s; leave it out",
                         job->settings.operands[0], channel, job->names[number_of(job, template)],
                         job->settings.normalised == NORMALISED_ZERO_MEAN ? "constant" : "silent");
    return option_words_of_status(fault, COMMAND_CORRELATE, status, &job->log);
}

// Of several processes each searches every n-th template, and the longest, which determines bits.
static size_t share_templates(struct job *job)
{
    const size_t all = job->n_templates, left = all - size_min(job->share, all);
    job->n_shared = ceil_div(left, job->n_shares);
    const size_t n = size_min(job->n_shared + 1, all);
    for (size_t i = 0; i < n; i++) {
        const struct template *t = &job->templates[number_of(job, i)];
        job->samples[i] = t->samples;
        job->lengths[i] = t->length;
    }
    return n;
}

// Searches the pieces from `first` on, before `last`. Of the frames around a piece, matches in it
// depend on those that are closer than the distance, and on what is under templates there.
static bool search_pieces(struct job *job, const struct partita_match_options *options,
                          const size_t pieces[2], size_t size, struct fault *fault)
{
    struct signals *signals = &job->signals;
    const size_t before = options->distance, after = before + job->lengths[options->templates - 1];
    if (pieces[0] < pieces[1] && !signals->x &&
        !signals_reserve(signals, size_min(before + size + after, job->frames), fault))
        return false;
    for (size_t i = pieces[0]; i < pieces[1]; i++) {
        job->begin = i * size;
        job->end = job->begin + size;
        job->piece_from = job->begin - size_min(job->begin, before);
        const size_t to = size_min(job->end + after, job->frames);
        if (to > signals->to && !signals_hold(signals, job->piece_from, to, fault)) return false;
        const size_t n = size_min(to, signals->to) - job->piece_from;
        for (size_t c = 0; c < signals->n; c++)
            job->x[c] = signals->x + c * signals->pitch + (job->piece_from - signals->from);
        const enum partita_status status = partita_match_templates(options, job->x, n);
        if (status) return explain(job, status, fault);
        if (*job->lack.text) return fault_set(fault, "%s", job->lack.text);
    }
    return true;
}

// Pieces, whose sizes depend on no process, are those of partita.signal.match_templates. Processes
// share time as far as there are pieces, and then templates.
static bool find_matches(struct job *job, struct fault *fault)
{
    enum { PIECE = 1 << 22 };
    const struct settings *s = &job->settings;
    const size_t last = job->n_templates - 1, longest = job->templates[last].length;
    if (longest > job->frames)
        return fault_set(fault, "%s: template %s has %zu frames, %s only %zu", s->operands[0],
                         job->names[last], longest, operand_name(s, 1), job->frames);
    const size_t distance = s->min_distance ? (size_t)s->min_distance : longest,
                 around = 2 * distance + longest, max = size_max(PIECE, 16 * around),
                 size = size_split_even(job->frames, job->frames > max ? max - around : max),
                 n_pieces = ceil_div(job->frames, size);
    uint64_t part = job->processes.rank + 1, parts = size_max(job->processes.n, 1), periods;
    if (s->range && !shard_parse(s->range, &part, &parts, fault)) return false;
    for (periods = parts; !s->range && (periods > n_pieces || parts % periods);) periods--;
    job->n_shares = parts / periods;
    job->share = (part - 1) % job->n_shares;
    const size_t period = (part - 1) / job->n_shares;
    const struct partita_match_options options = {
        .templates = share_templates(job),
        .channels = job->signals.n,
        .samples = job->samples,
        .lengths = job->lengths,
        .zero_mean = s->normalised == NORMALISED_ZERO_MEAN,
        .threshold = isnan(s->threshold) ? 0 : s->threshold,
        .mad = s->mad,
        .distance = distance,
        .threads = (int)s->threads,
        .report = take_match,
        .context = job,
        .log = {option_words_log, &job->log},
        .allocator = memory_allocator(),
    };
    const size_t pieces[2] = {n_pieces * period / periods, n_pieces * (period + 1) / periods};
    return search_pieces(job, &options, pieces, size, fault);
}

static bool print_matches(struct job *job, struct fault *fault)
{
    struct search *search = &job->search;
    search->settings = &job->settings;
    search->in = job->signals.in[0];
    search->processes = &job->processes;
    search->names = job->names;
    const bool good = search_combine(search, fault);
    if (good && !search->n) report_warning(&job->settings, "no template reaches the threshold");
    return good;
}

static void release(struct job *job)
{
    for (size_t i = 0; i < job->n_templates; i++) {
        free(job->templates[i].name);
        memory_free(job->templates[i].samples);
    }
    free(job->x);
    free(job->templates);
    free(job->samples);
    free(job->lengths);
    free(job->names);
    search_close(&job->search);
    signals_release(&job->signals);
}

int correlate_main(const struct settings *settings, struct fault *fault)
{
    struct job job = {.settings = *settings};
    if (!settings->templates) return convolve_main(settings, fault);
    bool good = usage_begin(&job.settings, &job.processes, fault) && open_signal(&job, fault) &&
                load_templates(&job, fault) && measure_signal(&job, fault) &&
                find_matches(&job, fault);
    good = processes_agree(&job.processes, good, fault) && print_matches(&job, fault);
    int status = fault->usage ? EXIT_USAGE : EXIT_FAILED;
    if (good) {
        const struct audio_reader *in = job.signals.in[0];
        const bool interrupted = audio_interrupted(in),
                   degraded = report_input(&job.settings, in) || interrupted;
        if (interrupted) report_warning(&job.settings, "interrupted after %zu frames", job.frames);
        status = degraded ? EXIT_DEGRADED : EXIT_DONE;
    }
    if (job.processes.rank) *fault->text = 0;                // the first speaks for all
    status = report_fault(COMMAND_CORRELATE, fault, status); // while all processes run
    release(&job);
    processes_end(&job.processes);
    return status;
}
