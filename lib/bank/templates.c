// SPDX-License-Identifier: MIT
// A chunk of the signal is transformed in blocks, each of which gives the correlations of `hop`
// windows. Blocks begin at multiples of `hop`, so that a value has the same bits in every chunk.
// One thread computes a template over the whole chunk, so that its values can be ranked.
#include <math.h>
#include <partita/templates.h>
#include <pthread.h>
#include <string.h>

#include "api/sized.h"
#include "base/thread.h"
#include "core/arguments.h"
#include "fft/fft.h"
#include "kernels/kernels.h"

enum { MAX_CHANNELS = 1 << 16, MAX_SIZE = 1 << 24, KEY_BITS = 16 };

struct match_worker {
    void *product, *scratch; // a spectrum
    float *samples, *values; // [n], [blocks * hop]
    float *norms;            // [channels][blocks * hop] under `length` samples
    size_t length;
    uint32_t *bins; // [2^KEY_BITS]
};

struct matcher {
    struct partita_match_options options;
    const struct kernels *kernels;
    struct fft *fft;
    const float *const *x; // [channels][n]
    size_t n, hop, blocks; // blocks of a chunk
    size_t lead, chunk;    // windows that begin in it are decided, after `lead` others
    int64_t first;         // number of the first sample of the first block
    char *taps, *spectra; // [templates][channels] of reversed samples of norm 1; [channels][blocks]
    struct match_worker *workers;
    pthread_mutex_t reporting;
};

// The magnitude as an integer in the same order; 0 if it is not finite.
static inline uint32_t key_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= INT32_MAX;
    return bits < (uint32_t)0xff << 23 ? bits : 0;
}

// The lower median of the magnitudes from 2^-126 on, of normal numbers; infinity if there are none.
static double median_of(const float *x, size_t n, uint32_t *bins)
{
    uint32_t key = 0;
    size_t rank = 0;
    for (int shift = KEY_BITS; shift >= 0; shift -= KEY_BITS) {
        uint32_t bin = 0;
        memset(bins, 0, sizeof *bins << KEY_BITS);
        for (size_t i = 0; i < n; i++) {
            const uint32_t upper = key_of(x[i]) >> shift;
            if (upper >> KEY_BITS == key) bins[upper & UINT16_MAX]++;
        }
        if (shift > 0 && bins[0] == n) return (double)INFINITY;
        if (shift > 0) rank = bins[0] + (n - bins[0] - 1) / 2;
        while (rank >= bins[bin]) rank -= bins[bin++];
        key = key << KEY_BITS | bin;
    }
    float median;
    memcpy(&median, &key, sizeof median);
    return (double)median;
}

// Whether the magnitude of *x is at least the threshold, larger than those of the distance-1 values
// before and not smaller than those of the distance-1 after. NaN is smaller than any number.
static inline bool is_match(const float *x, size_t distance, double threshold)
{
    const float value = fabsf(*x);
    size_t k = (double)value >= threshold ? 1 : distance + 1;
    while (k < distance && !(fabsf(x[-(ptrdiff_t)k]) >= value) && !(fabsf(x[k]) > value)) k++;
    return k == distance;
}

// Block `task` of all blocks of all channels, without its mean if the templates have none. Samples
// that are not finite or do not exist are NaN.
static float *load_block(const struct matcher *matcher, float *block, size_t task)
{
    const float *x = matcher->x[task / matcher->blocks];
    const int64_t at = matcher->first + (int64_t)(task % matcher->blocks * matcher->hop);
    double sum = 0, count = 0;
    for (size_t i = 0; i < matcher->fft->n; i++) {
        const int64_t j = at + (int64_t)i;
        block[i] = j >= 0 && j < (int64_t)matcher->n && isfinite(x[j]) ? x[j] : NAN;
        sum += isnan(block[i]) ? 0 : (double)block[i]; // of equal samples exact, as the mean is
        count += !isnan(block[i]);
    }
    const double mean = matcher->options.zero_mean && count > 0 ? sum / count : 0;
    for (size_t i = 0; i < matcher->fft->n; i++) block[i] = (float)((double)block[i] - mean);
    return block;
}

static void transform_signal(void *context, size_t task, int thread)
{
    struct matcher *matcher = context;
    const struct match_worker *worker = &matcher->workers[thread];
    float *x = load_block(matcher, worker->samples, task);
    for (size_t i = 0; i < matcher->fft->n; i++) x[i] = isnan(x[i]) ? 0 : x[i];
    fft_forward(matcher->fft, matcher->spectra + task * matcher->fft->spectrum_bytes, x,
                worker->scratch);
}

// y[i] = 1 / the norm of x[i .. i+m-1], i < count; NaN if a sample is. The sums slide through one
// block alone. Their rounding errors are some 2^-50 of the largest energy in it, and where less
// than 2^-36 of that is left, a transform's errors are all there is, so y is 0.
static void invert_norms(float *y, const float *x, size_t m, size_t count, bool zero_mean)
{
    double sum = 0, square = 0, largest = 0;
    ptrdiff_t unknown = 0;
    for (size_t i = 0; i < m - 1 + count; i++) {
        const double enters = isnan(x[i]) ? 0 : (double)x[i];
        sum += enters;
        square += enters * enters;
        unknown += isnan(x[i]);
        if (i + 1 < m) continue;
        const size_t first = i + 1 - m;
        const double energy = square - (zero_mean ? sum * sum / (double)m : 0),
                     leaves = isnan(x[first]) ? 0 : (double)x[first];
        y[first] = unknown ? NAN : (float)energy;
        largest = fmax(largest, energy);
        sum -= leaves;
        square -= leaves * leaves;
        unknown -= isnan(x[first]);
    }
    for (size_t i = 0; i < count; i++)
        if (!isnan(y[i])) y[i] = (double)y[i] > largest * 0x1p-36 ? 1 / sqrtf(y[i]) : 0;
}

// Adds correlations of a template with a block of a channel. part: template * channels + channel.
static void add_correlations(const struct matcher *matcher, const struct match_worker *worker,
                             size_t part, size_t block)
{
    const struct partita_match_options *options = &matcher->options;
    const struct fft *fft = matcher->fft;
    const size_t hop = matcher->hop, at = block * hop,
                 length = options->lengths[part / options->channels],
                 task = part % options->channels * matcher->blocks + block,
                 delay = options->delays ? options->delays[part] : 0,
                 skipped = delay > at ? delay - at : 0;
    const double share = options->weights ? options->weights[part] : 1 / (double)options->channels;
    const float weight = (float)(share / fft->gain);
    if (skipped >= hop || weight == 0) return;
    assert(length <= fft->n - hop + 1);
    matcher->kernels->cmac(worker->product, matcher->spectra + task * fft->spectrum_bytes, 0,
                           matcher->taps + part * fft->spectrum_bytes, 0, 1, fft->lines);
    fft_inverse(fft, worker->samples, worker->product, worker->scratch);
    for (size_t i = skipped; i < hop; i++)
        worker->values[at + i - delay] +=
            worker->samples[length - 1 + i] * worker->norms[task * hop + i] * weight;
}

static void run_template(void *context, size_t template, int thread)
{
    struct matcher *matcher = context;
    const struct partita_match_options *options = &matcher->options;
    struct match_worker *worker = &matcher->workers[thread];
    const size_t lead = matcher->lead, end = lead + matcher->chunk,
                 length = options->lengths[template];
    assert(end + options->distance <= matcher->blocks * matcher->hop);
    for (size_t i = 0; length != worker->length && i < options->channels * matcher->blocks; i++)
        invert_norms(worker->norms + i * matcher->hop, load_block(matcher, worker->samples, i),
                     length, matcher->hop, options->zero_mean);
    worker->length = length;
    memset(worker->values, 0, matcher->blocks * matcher->hop * sizeof(float));
    for (size_t block = 0; block < matcher->blocks; block++)
        for (size_t c = 0; c < options->channels; c++)
            add_correlations(matcher, worker, template * options->channels + c, block);
    for (int64_t i = 0; i < -matcher->first; i++) worker->values[i] = NAN; // before the signal
    const double median =
        options->mad > 0 ? median_of(worker->values + lead, matcher->chunk, worker->bins) : 0;
    const double threshold = fmax(options->threshold, options->mad * median);
    for (size_t i = lead; i < end; i++) {
        if (!is_match(worker->values + i, options->distance, threshold)) continue;
        const struct partita_match match = {template, (size_t)(matcher->first + (int64_t)i),
                                            (double)worker->values[i]};
        pthread_mutex_lock(&matcher->reporting);
        options->report(options->context, &match);
        pthread_mutex_unlock(&matcher->reporting);
    }
}

// Checks the options; the sizes of chunks and blocks, and the transform.
static enum partita_status prepare(struct matcher *matcher)
{
    enum { CHUNK = 1 << 18, SHARE = 12, MIN_LENGTH = 1 << 12 };
    struct partita_match_options *options = &matcher->options;
    const struct partita_log *log = &options->log;
    size_t longest = 0, span = 0;
    bool good = false;
    if (!options->channels) options->channels = 1;
    if (options->channels > MAX_CHANNELS)
        log_line(log, "channels = %zu: at most %d", options->channels, MAX_CHANNELS);
    else if (options->distance > MAX_SIZE)
        log_line(log, "distance = %zu: at most %d", options->distance, MAX_SIZE);
    else if (!(options->threshold >= 0 && options->mad >= 0 &&
               options->threshold + options->mad > 0))
        log_line(log, "threshold = %g, mad = %g: at least one above 0", options->threshold,
                 options->mad);
    else if (options->threads < 0) log_line(log, "threads = %d: 0 or more", options->threads);
    else if (!options->report) log_line(log, "report is NULL");
    else if (!options->allocator.allocate != !options->allocator.release)
        log_line(log, "allocator: set both functions or none");
    else good = true;
    if (!good) return PARTITA_ERR_ARG;
    for (size_t i = 0; i < options->templates * options->channels; i++) {
        const size_t template = i / options->channels, length = options->lengths[template];
        longest = size_max(longest, length);
        span = size_max(span, options->delays ? options->delays[i] : 0);
        if (!options->samples[template] || !matcher->x[i % options->channels] || length < 1 ||
            longest > MAX_SIZE || span > MAX_SIZE)
            return log_error(log, PARTITA_ERR_ARG,
                             "templates[%zu]: length and delays to %d; samples and x not NULL",
                             template, MAX_SIZE);
    }
    options->distance = size_min(options->distance ? options->distance : longest, matcher->n);
    options->threads = thread_bound(options->threads ? options->threads : 1);
    const struct fft_request request = {.n = fft_good_size(size_max(SHARE * longest, MIN_LENGTH)),
                                        .isa = cpu_detect()};
    const size_t hop = matcher->hop = request.n - longest + 1;
    matcher->kernels = kernels_select(request.isa, false);
    matcher->lead = size_round_up(options->distance, hop);
    matcher->chunk =
        size_round_up(size_split_even(matcher->n, options->chunk ? options->chunk : CHUNK), hop);
    matcher->blocks =
        (matcher->lead + matcher->chunk) / hop + ceil_div(options->distance + span, hop);
    return fft_create(&request, &options->allocator, &matcher->fft);
}

// The spectrum of a channel of a template.
static bool transform_template(const struct matcher *matcher, size_t part)
{
    const struct partita_match_options *options = &matcher->options;
    const struct match_worker *worker = &matcher->workers[0];
    const struct fft *fft = matcher->fft;
    const size_t template = part / options->channels, m = options->lengths[template];
    const float *h = options->samples[template] + part % options->channels * m;
    const double weight = options->weights ? options->weights[part] : 1;
    double mean = 0, energy = 0;
    for (size_t i = 0; i < m && options->zero_mean; i++) mean += (double)h[i] / (double)m;
    for (size_t i = 0; i < m; i++) energy += ((double)h[i] - mean) * ((double)h[i] - mean);
    memset(worker->samples, 0, fft->n * sizeof(float));
    for (size_t i = 0; i < m; i++)
        worker->samples[m - 1 - i] = (float)(((double)h[i] - mean) / sqrt(energy));
    fft_forward(fft, matcher->taps + part * fft->spectrum_bytes, worker->samples, worker->scratch);
    return weight == 0 ||
           (energy > 0x1p-80 * mean * mean * (double)m && isfinite(energy + weight)) ||
           log_line(&options->log,
                    "templates[%zu], channel %zu: %s or not finite; weight 0 omits it", template,
                    part % options->channels, options->zero_mean ? "constant" : "0");
}

enum partita_status partita_match_templates_sized(const struct partita_match_options *options,
                                                  size_t options_bytes, const float *const *x,
                                                  size_t n)
{
    const struct partita_log log = log_given(options);
    struct matcher matcher = {.x = x, .n = n, .reporting = PTHREAD_MUTEX_INITIALIZER};
    struct partita_match_options *known = &matcher.options;
    struct arena arena = {0};
    if (!arguments_given(log, options, x)) return PARTITA_ERR_ARG;
    if (!sized_read(known, sizeof *known, options, options_bytes, &log, "options"))
        return PARTITA_ERR_UNSUPPORTED;
    known->log = log;
    if (n == 0 || known->templates == 0) return PARTITA_OK;
    if (!arguments_given(log, known->samples, known->lengths)) return PARTITA_ERR_ARG;
    enum partita_status status = prepare(&matcher);
    if (status != PARTITA_OK) return status;
    const size_t n_bytes = matcher.fft->n * sizeof(float), bytes = matcher.fft->spectrum_bytes,
                 values = matcher.blocks * matcher.hop * sizeof(float);
    for (int pass = 0; pass < 2; pass++) {
        const size_t parts = size_mul(known->templates, known->channels);
        matcher.taps = arena_take(&arena, size_mul(parts, bytes));
        matcher.spectra = arena_take(&arena, size_mul(known->channels * matcher.blocks, bytes));
        matcher.workers = arena_take(&arena, (size_t)known->threads * sizeof *matcher.workers);
        for (int i = 0; i < known->threads; i++) {
            const struct match_worker worker = {
                .product = arena_take(&arena, bytes),
                .scratch = arena_take(&arena, matcher.fft->scratch_bytes),
                .samples = arena_take(&arena, n_bytes),
                .values = arena_take(&arena, values),
                .norms = arena_take(&arena, size_mul(known->channels, values)),
                .bins = arena_take(&arena, sizeof(uint32_t) << KEY_BITS)};
            if (pass) matcher.workers[i] = worker;
        }
        if (pass == 0 && !arena_reserve(&arena, &known->allocator))
            return fft_destroy(matcher.fft), PARTITA_ERR_NOMEM;
    }
    for (size_t i = 0; status == PARTITA_OK && i < known->templates * known->channels; i++)
        if (!transform_template(&matcher, i)) status = PARTITA_ERR_ARG;
    for (size_t at = 0; status == PARTITA_OK && at < n; at += matcher.chunk) {
        matcher.first = (int64_t)at - (int64_t)matcher.lead;
        for (int i = 0; i < known->threads; i++) matcher.workers[i].length = 0;
        thread_loop(known->threads, known->channels * matcher.blocks, transform_signal, &matcher);
        thread_loop(known->threads, known->templates, run_template, &matcher);
    }
    mem_release(&known->allocator, arena.base);
    fft_destroy(matcher.fft);
    return status;
}
