// SPDX-License-Identifier: MIT
// `partita identify`: the responses of the paths between signals of any kind, such as music, and
// their recording. An adaptive filter passes over them until that improves nothing.
#include <math.h>
#include <string.h>

#include "../../lib/base/sizes.h"
#include "base/json_values.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "deconvolve.h"
#include "io/frames.h"
#include "io/samples/samples.h"

// Blocks as long as the response: bins so narrow tell the tones of music apart, with shorter blocks
// the estimate converges slowly between them. Longer responses have partitions. Blocks are
// multiples of LANES, for the vectors of transforms.
enum { MAX_BLOCK = 16384, LANES = 64, MAX_PASSES = 16 };

// OUT begins before the earliest peak by this part of its length, since a limited band rings.
enum { LEAD_PART = 8 };

// Frames for each tap. The error of the estimate is 1 / ratio of the noise.
enum { MIN_RATIO = 2, GOOD_RATIO = 10 };

static const double DEFAULT_SECONDS = 0.5, DEFAULT_RATE = 48000;
static const double SAME = 0.99; // a residual of this part of the one before is no improvement
static const double ALIKE = 0.9; // correlation from which on errors of two paths are 10 dB larger
static const double CLOSE = 2;   // residuals of less than this ratio, 3 dB, are those at the end

struct identify {
    struct deconvolve *d;
    struct partita_adaptive *adaptive;
    size_t block, lead, recorded, frames; // blocks before and of the recording; frames of a pass
    size_t passes;                        // that were needed
    double power;                         // of the signals together
    double *far_end, *near_end;           // [channels][frames], [frames]; scaled to power 1
    double *residual, *energies;          // [block]; of residuals, [MAX_PASSES][recorded]
};

// Finds the latencies of the channels of the recording by deconvolution with the sum of the
// signals. The recording may have begun late: as much silence precedes it as the signal has frames.
static bool find_first(struct deconvolve *d, struct fault *fault)
{
    const struct measured *x = &d->signal, *y = &d->recording;
    const size_t n = x->frames + y->frames;
    int64_t earliest = INT64_MAX, latest = INT64_MIN;
    double *const sum = memory_allocate_zeros(x->frames * sizeof *sum);
    d->channel = memory_allocate(n * sizeof *d->channel);
    d->unit_peak = 1;
    bool good = (sum && d->channel) || memory_fault(fault, "%zu frames", n);
    for (size_t i = 0; good && i < x->channels * x->frames; i++)
        sum[i % x->frames] += x->samples[i];
    for (size_t c = 0; good && c < y->channels; c++) {
        memset(d->channel, 0, x->frames * sizeof *d->channel);
        memcpy(d->channel + x->frames, y->samples + c * y->frames, y->frames * sizeof *d->channel);
        good = deconvolve_divide(d, n, sum, x->frames, fault);
        const struct found found = deconvolve_peak(d, d->channel, n);
        const int64_t latency = (int64_t)found.latency - (int64_t)x->frames;
        if (found.level > 0 && latency < earliest) earliest = latency;
        if (found.level > 0 && latency > latest) latest = latency;
    }
    memory_free(sum);
    const int64_t taps = (int64_t)d->response.frames;
    d->first = earliest - taps / LEAD_PART;
    if (good && latest < earliest)
        return fault_set(fault, "%s: no response to %s was found in it",
                         operand_name(&d->settings, 1), operand_name(&d->settings, 0));
    if (good && latest >= d->first + taps)
        report_warning(&d->settings,
                       "%s: a channel has its peak at frame %lld, and OUT ends before; "
                       "use a longer --ir-length",
                       operand_name(&d->settings, 1), (long long)latest);
    return good;
}

// Of the recording, those that depend on the signal.
static double useful_frames(const struct deconvolve *d)
{
    const double begin = fmax(0, (double)d->first);
    const double end = (double)d->first + (double)(d->signal.frames + d->response.frames);
    return fmax(0, fmin((double)d->recording.frames, end) - begin);
}

static bool choose_length(struct deconvolve *d, struct fault *fault)
{
    const struct settings *s = &d->settings;
    struct measured *r = &d->response;
    r->channels = d->signal.channels * d->recording.channels;
    r->frames = (size_t)ceil(DEFAULT_SECONDS * (r->rate > 0 ? r->rate : DEFAULT_RATE));
    if (s->ir_length) r->frames = (size_t)s->ir_length;
    r->samples = memory_allocate_zeros(r->channels * r->frames * sizeof *r->samples);
    if (!r->samples) return memory_fault(fault, "%zu frames", r->frames);
    if (!(frames_energy(d->signal.samples, d->signal.channels * d->signal.frames) > 0))
        return fault_set(fault, "%s: is silent", operand_name(s, 0));
    d->first = s->first;
    if (s->first == NOT_GIVEN && !find_first(d, fault)) return false;
    const size_t unknowns = r->frames * d->signal.channels;
    const double useful = useful_frames(d);
    fault_set(fault,
              "%s: %.0f frames of it depend on %s; for %zu taps record at least %zu, or use a "
              "shorter --ir-length",
              operand_name(s, 1), useful, operand_name(s, 0), unknowns, GOOD_RATIO * unknowns);
    if (useful < (double)(MIN_RATIO * unknowns)) return false;
    report_line(s, !s->quiet && useful < (double)(GOOD_RATIO * unknowns), "%s", fault->text);
    return true;
}

// Warns of signals that are nearly the same, which tell little of each path.
static void warn_of_equal(const struct deconvolve *d)
{
    const size_t n = d->signal.frames;
    for (size_t i = 0; i < d->signal.channels; i++)
        for (size_t j = 0; j < i; j++) {
            const double *a = d->signal.samples + i * n, *b = d->signal.samples + j * n;
            double both = 0;
            for (size_t k = 0; k < n; k++) both += a[k] * b[k];
            if (fabs(both) > ALIKE * sqrt(frames_energy(a, n) * frames_energy(b, n)))
                report_warning(&d->settings,
                               "%s: channels %zu and %zu are nearly equal, so that their "
                               "paths cannot be told apart well; play one after the other",
                               operand_name(&d->settings, 0), j + 1, i + 1);
        }
}

// In whole blocks: the part of the signals that precedes the recording, for which the filter rests;
// both; and silence as long as the response, since the next pass begins with it.
static bool open_signals(struct identify *job, struct fault *fault)
{
    const struct deconvolve *d = job->d;
    const struct measured *x = &d->signal;
    const size_t taps = d->response.frames, parts = ceil_div(taps, MAX_BLOCK);
    const size_t before = d->first < 0 ? (size_t)-d->first : 0;
    job->block = LANES * ceil_div(taps, parts * LANES);
    job->lead = ceil_div(before < taps ? before : taps, job->block);
    job->recorded = d->recording.frames / job->block;
    const size_t played = (job->lead + job->recorded) * job->block;
    job->frames = played + parts * job->block;
    const size_t arrays = (x->channels + 1) * job->frames + job->block + MAX_PASSES * job->recorded;
    job->far_end = memory_allocate_zeros(arrays * sizeof(double));
    if (!job->far_end) return memory_fault(fault, "%zu frames", job->frames);
    job->near_end = job->far_end + x->channels * job->frames;
    job->residual = job->near_end + job->frames;
    job->energies = job->residual + job->block;
    job->power = frames_energy(x->samples, x->channels * x->frames) / (double)x->frames;
    const int64_t delay = d->first + (int64_t)(job->lead * job->block);
    for (size_t i = 0; i < x->channels * played; i++) {
        const size_t c = i / played, k = i % played;
        const int64_t from = (int64_t)k - delay;
        if (from >= 0 && from < (int64_t)x->frames)
            job->far_end[c * job->frames + k] =
                x->samples[c * x->frames + (size_t)from] / sqrt(job->power);
    }
    return true;
}

static bool open_filter(struct identify *job, struct fault *fault)
{
    struct fault log = {.text = ""};
    const struct partita_adaptive_options options = {
        .type = PARTITA_F64,
        .constraint = PARTITA_ADAPTIVE_EVERY,
        .whole_blocks = true,
        .channels = job->d->signal.channels,
        .taps = job->d->response.frames,
        .block = job->block,
        .drift = 1e-12, // none: the path stays
        .silence = 1e-12,
        .log = {option_words_log, &log},
        .allocator = memory_allocator(),
    };
    const enum partita_status status = partita_adaptive_create(&options, &job->adaptive);
    return option_words_of_status(fault, COMMAND_IDENTIFY, status, &log);
}

// Returns the energy of the residual.
static double pass(struct identify *job, double *energies)
{
    const void *far_end[1024];
    double sum = 0;
    for (size_t at = 0; at < job->frames; at += job->block) {
        const size_t k = at / job->block - job->lead; // of the recording
        for (size_t c = 0; c < job->d->signal.channels; c++)
            far_end[c] = job->far_end + c * job->frames + at;
        partita_adaptive_process(job->adaptive, job->residual, job->near_end + at, far_end,
                                 job->block);
        if (k >= job->recorded) continue; // or before it
        energies[k] = frames_energy(job->residual, job->block);
        sum += energies[k];
    }
    return sum;
}

// Learns the paths to a channel of the recording, which has this energy. Returns that of the
// residual in the last pass; *ret_converged: frames after which, counted in all passes, no block
// has a residual that is larger than the one that it has in the last pass.
static double learn(struct identify *job, double near_energy, size_t *ret_converged)
{
    const size_t n = job->recorded;
    double before = INFINITY, left = near_energy;
    partita_adaptive_reset(job->adaptive);
    for (job->passes = 0; job->passes < MAX_PASSES && left < SAME * before; job->passes++) {
        before = job->passes ? left : INFINITY;
        left = pass(job, job->energies + job->passes * n);
    }
    *ret_converged = 0;
    for (size_t k = 0; k < job->passes * n; k++)
        if (job->energies[k] > CLOSE * job->energies[(job->passes - 1) * n + k % n])
            *ret_converged = (k + 1) * job->block;
    return left;
}

static bool identify_channel(struct identify *job, size_t channel, struct fault *fault)
{
    struct deconvolve *d = job->d;
    const struct measured *y = &d->recording, *r = &d->response;
    const size_t n = job->recorded * job->block, paths = d->signal.channels;
    double *const near_end = job->near_end + job->lead * job->block;
    double *const response = r->samples + channel * paths * r->frames;
    size_t converged = 0;
    memcpy(near_end, y->samples + channel * y->frames, n * sizeof *near_end);
    const double power = frames_energy(near_end, n) / (double)n;
    if (power > 0) samples_scale(near_end, n, true, 1 / sqrt(power));
    const double left = power > 0 ? learn(job, (double)n, &converged) : (double)n;
    const bool any = left < (double)n;
    struct partita_adaptive_stats stats;
    partita_adaptive_stats(job->adaptive, &stats);
    if (!(power > 0))
        report_warning(&d->settings, "%s: channel %zu is silent", operand_name(&d->settings, 1),
                       channel + 1);
    else if (!any || job->passes == MAX_PASSES || stats.restored || stats.restarted)
        report_warning(&d->settings,
                       "%s: channel %zu: the estimate does not settle; it needs signals with many "
                       "frequencies at any time, such as noise and most music; for a sweep use "
                       "partita deconvolve",
                       operand_name(&d->settings, 1), channel + 1);
    for (size_t c = 0; any && c < paths; c++)
        if (partita_adaptive_taps(job->adaptive, c, response + c * r->frames))
            return fault_set(fault, "cannot read the taps");
    samples_scale(response, paths * r->frames, true, sqrt(power / job->power));
    const size_t peak = frames_peak(response, paths * r->frames) % r->frames;
    // A least-squares fit takes from the noise one number of all for each of its own numbers: the
    // error of the estimate has this part of the energy of the noise.
    const double error = (double)(r->frames * paths) / useful_frames(d) * left;
    const double erle = any ? 10 * log10((double)n / left) : NAN;
    const double misadjustment = any ? 10 * log10(error / ((double)n - left)) : NAN;
    const double seconds = any && r->rate > 0 ? (double)converged / r->rate : NAN;
    char text[128];
    snprintf(text, sizeof text,
             r->rate > 0
                 ? "ERLE %.1f dB; misadjustment %.1f dB; converged after %.1f s; %zu passes"
                 : "ERLE %.1f dB; misadjustment %.1f dB; converged after %.0f frames; %zu passes",
             erle, misadjustment, r->rate > 0 ? seconds : (double)converged, job->passes);
    deconvolve_print(d, channel, any ? d->first + (int64_t)peak : NOT_GIVEN,
                     json_pack("{s:o, s:o, s:o, s:I}", "erle_db", json_finite(erle),
                               "misadjustment_db", json_finite(misadjustment), "converged_seconds",
                               json_finite(seconds), "passes", (json_int_t)job->passes),
                     text);
    return true;
}

static bool identify(struct deconvolve *d, struct fault *fault)
{
    struct identify job = {.d = d};
    memory_free(d->channel);
    d->channel = NULL;
    warn_of_equal(d);
    bool good = open_signals(&job, fault) && open_filter(&job, fault);
    for (size_t c = 0; good && c < d->recording.channels; c++)
        good = identify_channel(&job, c, fault);
    partita_adaptive_destroy(job.adaptive);
    memory_free(job.far_end);
    return good;
}

int identify_main(const struct settings *settings, struct fault *fault)
{
    static const struct deconvolve_method method = {choose_length, identify};
    return deconvolve_run(settings, &method, fault);
}
