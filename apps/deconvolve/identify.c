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

// Of bands of a third of an octave: points; lines that the response resolves below the highest one.
enum { POINTS = 16, MIN_LINES = 8, MAX_BANDS = 64 };

// Spectra have lines that are finer than those of the response, which lie between the tones of
// signals, by this factor.
enum { FINER = 4 };

static const double DEFAULT_SECONDS = 0.5, DEFAULT_RATE = 48000;
static const double SAME = 0.99; // a residual of this part of the one before is no improvement
static const double ALIKE = 0.9; // correlation from which on errors of two paths are 10 dB larger
static const double MEASURED = 4, DEVIATIONS = 3; // see add_point; of a mean, for a warning
static const double LEAK = 1e-12;                 // see correlate
static const double CLOSE = 2; // residuals of less than this ratio, 3 dB, are those at the end

struct identify {
    struct deconvolve *d;
    struct partita_adaptive *adaptive;
    size_t block, lead, recorded, frames; // blocks before and of the recording; frames of a pass
    size_t passes;                        // that were needed
    double power;                         // of the signals together
    double *far_end, *near_end;           // [channels][frames], [frames]; scaled to power 1
    double *residual, *energies;          // [frames]; of residuals, [MAX_PASSES][recorded]
    double *lags;                         // see find_coverage
};

// What a recording tells of a response, by points of frequency in bands of a third of an octave.
struct coverage {
    double share;                 // of the power of the residual that the estimate takes from noise
    size_t bands, covered;        // those with most points measured; others, of the sample rate
    double missing[MAX_BANDS][2]; // and from high to low
    size_t n_missing;
    double sum, points, lines; // since the last octave, of points that are measured, and all paths
    bool settled;              // see end_octave
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
    const size_t unknowns = size_max(r->frames * d->signal.channels, LANES); // at least a block
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
    const size_t arrays = (x->channels + 2) * job->frames + MAX_PASSES * job->recorded +
                          (x->channels + 2 * FINER) * 2 * taps;
    job->far_end = memory_allocate_zeros(arrays * sizeof(double));
    if (!job->far_end) return memory_fault(fault, "%zu frames", job->frames);
    job->near_end = job->far_end + x->channels * job->frames;
    job->residual = job->near_end + job->frames;
    job->energies = job->residual + job->frames;
    job->lags = job->energies + MAX_PASSES * job->recorded;
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
        partita_adaptive_process(job->adaptive, job->residual + at, job->near_end + at, far_end,
                                 job->block);
        if (k >= job->recorded) continue; // or before it
        energies[k] = frames_energy(job->residual + at, job->block);
        sum += energies[k];
    }
    return sum;
}

// Learns the paths to a channel of the recording, which has this energy. Returns that of the
// residual, which the taps of the end leave of all of it; *ret_converged: frames after which,
// counted in all passes, no block has a residual that is larger than the one that it has in the
// last pass.
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
    partita_adaptive_freeze(job->adaptive, true);
    return pass(job, job->energies);
}

// Correlations of a with b at the lags -n .. n-1, each half under a raised cosine; those of a with
// itself under a Gaussian that ends at LEAK: this part of the sum of all lags leaks from a line
// into others at most.
static bool correlate(const struct identify *job, double *lags, const double *a, const double *b,
                      size_t n)
{
    const struct partita_options options = {.allocator = memory_allocator()};
    const bool good = !partita_correlate(
        PARTITA_F64, lags, a, job->frames, b, job->frames,
        &(struct partita_slice){PARTITA_RANGE, -(ptrdiff_t)n, (ptrdiff_t)n}, &options);
    for (size_t i = 0; good && i < 2 * n; i++) {
        const double share = (double)i / (double)n; // 1: at lag 0
        lags[i] *= a == b ? pow(LEAK, pow(share - 1, 2)) : 1 - cos(2 * M_PI * share);
    }
    return good;
}

static double magnitude_at(const double *lags, size_t n, double frequency)
{
    double h[2];
    partita_design_response(lags, n, frequency, h);
    return hypot(h[0], h[1]);
}

// Whether a point is measured. Of noise, the power of the recording above that of the residual is
// what the estimate fits to it: in the mean `share`, as a mean of two squares at least, which is
// MEASURED times as large in e^-4 of the points. What exceeds that has an error of -6 dB at most.
static bool add_point(const struct identify *job, struct coverage *found, double frequency)
{
    const size_t taps = job->d->response.frames, n = FINER * taps;
    const double all = magnitude_at(job->lags, 2 * n, frequency);
    const double left = magnitude_at(job->lags + 2 * n, 2 * n, frequency);
    if (!(all - left > MEASURED * found->share * left && all > LEAK * (double)n * job->lags[n]))
        return false;
    for (size_t c = 0; c < job->d->signal.channels; c++) {
        const double *lags = job->lags + 4 * n + c * 2 * taps;
        const double before = magnitude_at(lags, taps, frequency);
        const double within = magnitude_at(lags + taps, taps, frequency);
        found->sum += within > 0 ? 1 / (1 + pow(before / within, 2)) : 0;
        found->points++;
    }
    return true;
}

static void add_band(const struct identify *job, struct coverage *found, double low, double high)
{
    int measured = 0;
    for (int i = 0; i < POINTS; i++)
        measured += add_point(job, found, low + (high - low) * (i + 0.5) / POINTS);
    found->lines += (high - low) * (double)(job->d->response.frames * job->d->signal.channels) / 2;
    found->bands++;
    if (2 * measured > POINTS) {
        found->covered++;
        return;
    }
    if (!found->n_missing || found->missing[found->n_missing - 1][0] > high)
        found->missing[found->n_missing++][1] = high;
    found->missing[found->n_missing - 1][0] = low;
}

// A residual of noise alone correlates with the signal at the lags of the response as it does
// before them, or less, since noise was fitted there: the share of its power there is uniform
// within 0 .. 1, or less. Lines of two bins are independent.
static void end_octave(struct coverage *found)
{
    const double deviation = 1 / sqrt(12 * fmin(found->points, found->lines));
    if (found->sum > (0.5 + DEVIATIONS * deviation) * found->points) found->settled = false;
    found->sum = found->points = found->lines = 0;
}

// Of the residual that the taps of the end leave. The recording and the residual fade in and out,
// so that their ends have no skirts beside the lines of tones; outside they are silence.
static bool find_coverage(struct identify *job, struct coverage *ret)
{
    const size_t taps = job->d->response.frames, n = FINER * taps;
    const size_t frames = job->recorded * job->block;
    for (size_t i = 0; i < job->frames; i++) {
        const size_t k = i - job->lead * job->block;
        const double share = ((double)k + 0.5) / (double)frames;
        const double fade = k < frames ? 1 - cos(2 * M_PI * share) : 0;
        job->near_end[i] *= fade;
        job->residual[i] *= fade;
    }
    bool good = correlate(job, job->lags, job->near_end, job->near_end, n) &&
                correlate(job, job->lags + 2 * n, job->residual, job->residual, n);
    for (size_t c = 0; good && c < job->d->signal.channels; c++)
        good = correlate(job, job->lags + 4 * n + c * 2 * taps, job->residual,
                         job->far_end + c * job->frames, taps);
    ret->settled = true;
    for (double high = 0.5; good && high * (double)taps > MIN_LINES; high *= cbrt(0.5)) {
        add_band(job, ret, high * cbrt(0.5), high);
        if (ret->bands % 3 == 0) end_octave(ret);
    }
    return good;
}

// Warns of bands that are not measured. Returns them in Hz, or as parts of an unknown rate.
static json_t *report_missing(const struct identify *job, const struct coverage *found,
                              size_t channel)
{
    const struct settings *s = &job->d->settings;
    const double rate = job->d->response.rate > 0 ? job->d->response.rate : 1;
    json_t *bands = json_array();
    char list[160] = "";
    size_t used = 0;
    for (size_t i = found->n_missing; i-- > 0;) {
        const double low = rate * found->missing[i][0], high = rate * found->missing[i][1];
        json_array_append_new(bands, json_pack("[f, f]", low, high));
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.4g to %.4g",
                                     used ? ", " : "", low, high);
    }
    if (used)
        report_warning(s, "%s: channel %zu: nothing is measured from %s %s, where %s is too weak",
                       operand_name(s, 1), channel + 1, list,
                       job->d->response.rate > 0 ? "Hz" : "of the rate", operand_name(s, 0));
    return bands;
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
    // A least-squares fit takes from the noise one number of all for each of its own numbers: the
    // error of the estimate has this part of the energy of the noise.
    struct coverage found = {.share = (double)(r->frames * paths) / useful_frames(d)};
    partita_adaptive_stats(job->adaptive, &stats);
    if (any && !find_coverage(job, &found))
        return memory_fault(fault, "spectra of %zu frames", job->frames);
    const bool settled =
        any && found.settled && job->passes < MAX_PASSES && !stats.restored && !stats.restarted;
    const bool known = settled && 2 * found.covered > found.bands;
    if (!(power > 0))
        report_warning(&d->settings, "%s: channel %zu is silent", operand_name(&d->settings, 1),
                       channel + 1);
    else if (!settled)
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
    const double erle = any ? 10 * log10((double)n / left) : NAN;
    const double misadjustment = known ? 10 * log10(found.share * left / ((double)n - left)) : NAN;
    const double seconds = any && r->rate > 0 ? (double)converged / r->rate : NAN;
    char level[32] = "unknown", text[128];
    if (known) snprintf(level, sizeof level, "%.1f dB", misadjustment);
    snprintf(text, sizeof text,
             "ERLE %.1f dB; misadjustment %s; converged after %.*f %s; %zu passes", erle, level,
             r->rate > 0, r->rate > 0 ? seconds : (double)converged, r->rate > 0 ? "s" : "frames",
             job->passes);
    deconvolve_print(d, channel, any ? d->first + (int64_t)peak : NOT_GIVEN,
                     json_pack("{s:o, s:o, s:o, s:o, s:I}", "not_measured",
                               report_missing(job, &found, channel), "erle_db", json_finite(erle),
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
