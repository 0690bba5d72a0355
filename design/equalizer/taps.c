// SPDX-License-Identifier: MIT
// Taps of biquads in series: the response of the recursion, or a symmetric one of its magnitude.
#include <math.h>
#include <string.h>

#include "api/sized.h"
#include "base/sizes.h"
#include "design/bins.h"
#include "equalizer.h"

// A response is followed for MAX_FRAMES. Its tail is known for MAX_TAPS of them.
enum { MAX_FRAMES = 1 << 20, MAX_TAPS = MAX_FRAMES / 4 * 3, MIN_FRAMES = 4096, MAX_BELOW = 60 };
enum { MIN_TAIL = 20, MAX_TAIL = 240, RECURSIVE_TAIL = 160, LINEAR_TAIL = 120 };

// A response from frame 0 on; one of linear phase is symmetric around it.
struct decay {
    const struct taps_job *job;
    size_t band;
    double (*state)[2]; // of the biquads
    double *frames;
    size_t n;
    double energy; // of all frames
    double floor;  // of wanted gains that are compared, dB
    struct partita_equalizer_result *result;
};

static bool is_linear(const struct taps_job *job)
{
    return job->phase == PARTITA_EQUALIZER_LINEAR;
}

static bool check_count(const struct taps_job *job, const char *field, size_t n)
{
    if (n && n <= MAX_TAPS && !(is_linear(job) && n % 2 == 0)) return true;
    return log_line(&job->log, "%s = %zu: must be %sfrom 1 to %d", field, n,
                    is_linear(job) ? "odd, " : "", MAX_TAPS);
}

bool job_resolve(struct taps_job *job)
{
    const struct partita_log *log = &job->log;
    if (job->rate == 0) job->rate = 1;
    if (job->tail == 0) job->tail = is_linear(job) ? LINEAR_TAIL : RECURSIVE_TAIL;
    if (!(job->rate > 0 && isfinite(job->rate)))
        return log_line(log, "%s.rate = %g: must be above 0", job->name, job->rate);
    if ((unsigned)job->phase > PARTITA_EQUALIZER_LINEAR)
        return log_line(log, "%s.phase = %d: there is no such phase", job->name, (int)job->phase);
    if (!(job->tail >= MIN_TAIL && job->tail <= MAX_TAIL))
        return log_line(log, "%s.tail = %g: must be from %d to %d dB", job->name, job->tail,
                        MIN_TAIL, MAX_TAIL);
    if (!job->allocator.allocate != !job->allocator.release)
        return log_line(log, "%s.allocator: needs both functions or none", job->name);
    return !job->taps || check_count(job, "taps", job->taps);
}

// The energy of frames from `first` on, on both sides.
static double energy_from(const struct decay *decay, size_t first)
{
    const double *frames = decay->frames;
    double sum = 0;
    for (size_t i = decay->n; i-- > first;) sum += frames[i] * frames[i]; // small ones first
    if (!is_linear(decay->job)) return sum;
    return 2 * sum - (first ? 0 : frames[0] * frames[0]);
}

// Continues the recursion to decay->n frames.
static void run_recursion(struct decay *decay, size_t begin)
{
    const struct biquad_chain *chain = &decay->job->chain[decay->band];
    if (!begin) memset(decay->state, 0, chain->n * sizeof *decay->state);
    for (size_t t = begin; t < decay->n; t++) {
        double x = t == 0;
        for (size_t i = 0; i < chain->n; i++) {
            const double *b = chain->biquads[i].b, *a = chain->biquads[i].a;
            double *state = decay->state[i];
            const double y = b[0] * x + state[0];
            state[0] = b[1] * x - a[0] * y + state[1];
            state[1] = b[2] * x - a[1] * y;
            x = y;
        }
        decay->frames[t] = x;
    }
}

// Doubles the frames until a hundredth of the tail is left in their last quarter, which then holds
// more than all frames after it, and than their aliases.
static enum partita_status decay_run(struct decay *decay)
{
    const bool linear = is_linear(decay->job);
    const size_t max = linear ? MAX_FRAMES / 2 : MAX_FRAMES;
    const double part = pow(10, -decay->job->tail / 10) / 100;
    enum partita_status status = PARTITA_OK;
    for (size_t begin = 0; status == PARTITA_OK; begin = decay->n) {
        decay->n = size_min(size_max(2 * begin, size_max(MIN_FRAMES, decay->job->taps)), max);
        if (!linear) run_recursion(decay, begin);
        else
            status = design_bins_symmetric(decay->frames, decay->n, 2 * decay->n, chain_gain,
                                           &decay->job->chain[decay->band], &decay->job->allocator);
        decay->energy = energy_from(decay, 0);
        if (decay->n == max || energy_from(decay, decay->n / 4 * 3) <= decay->energy * part) break;
    }
    return status;
}

// The fewest taps with the wanted tail, and the band's delay.
static size_t decay_count(const struct decay *decay)
{
    const size_t sides = is_linear(decay->job) ? 2 : 1;
    const double part = pow(10, -decay->job->tail / 10) / (double)sides;
    size_t n = decay->n;
    for (double left = 0; n > 1; n--) {
        left += decay->frames[n - 1] * decay->frames[n - 1];
        if (left > decay->energy * part) break;
    }
    return sides * (n - 1 + decay->job->delay[decay->band]) + 1;
}

// Writes the taps of a band and adds them to the sum. Returns by how many dB the energy of all
// other frames is below that of all.
static double decay_write(const struct decay *decay, size_t n, double *taps, double *sum)
{
    const bool linear = is_linear(decay->job);
    const size_t first = (linear ? n / 2 : 0) + decay->job->delay[decay->band];
    for (size_t i = 0; i < n; i++) {
        size_t frame = i - first;
        if (i < first) frame = linear ? first - i : decay->n;
        taps[i] = frame < decay->n ? decay->job->factor[decay->band] * decay->frames[frame] : 0;
        sum[i] += taps[i];
    }
    return 10 * log10(decay->energy / energy_from(decay, n > first ? n - first : 0));
}

// Compares the magnitude of the sum of all bands with the wanted one.
static void compare(void *context, double frequency, double gain)
{
    const struct decay *decay = context;
    const struct taps_job *job = decay->job;
    struct partita_equalizer_result *result = decay->result;
    const double wanted = job->bands > 1 ? 0 : 20 * log10(chain_gain(job->chain, frequency));
    const double decibels = 20 * log10(gain), deviation = fabs(decibels - wanted);
    if (decibels > result->gain) {
        result->gain = decibels;
        result->gain_frequency = frequency * job->rate;
    }
    if (wanted >= decay->floor && deviation > result->deviation) {
        result->deviation = deviation;
        result->deviation_frequency = frequency * job->rate;
    }
}

// Computes the response of each band. Writes n taps or, if n is 0, counts them in result->taps.
static enum partita_status run_bands(struct decay *decay, double *taps, size_t n)
{
    const struct taps_job *job = decay->job;
    struct partita_equalizer_result *result = decay->result;
    double *sum = taps + job->bands * n, energy = 0;
    for (size_t i = decay->band = 0; i < job->bands; decay->band = ++i) {
        const enum partita_status status = decay_run(decay);
        if (status) return status;
        if (n) result->tail = fmin(result->tail, decay_write(decay, n, taps + i * n, sum));
        else result->taps = size_max(result->taps, decay_count(decay));
    }
    if (!n && result->taps > MAX_TAPS)
        return log_error(&job->log, PARTITA_ERR_UNSUPPORTED,
                         "%s.tail = %g: needs more than %d taps; use a smaller tail, set taps, or "
                         "use higher frequencies or a lower q",
                         job->name, job->tail, MAX_TAPS);
    if (!n) return PARTITA_OK;
    for (size_t i = 0; i < n; i++) energy += sum[i] * sum[i]; // the mean of squared gains
    decay->floor = 10 * log10(energy) - MAX_BELOW;
    return design_bins_gains(sum, n, 4 * n, &job->allocator, compare, decay);
}

enum partita_status job_run(const struct taps_job *job, double *taps, size_t n,
                            struct partita_equalizer_result *ret_result, size_t result_bytes)
{
    struct partita_equalizer_result result = {
        .taps = taps ? n : job->taps, .tail = INFINITY, .gain = -INFINITY};
    struct decay decay = {.job = job, .result = &result};
    enum partita_status status = PARTITA_ERR_NOMEM;
    size_t max_biquads = 1;
    if (taps && job->taps && n != job->taps)
        return log_error(&job->log, PARTITA_ERR_ARG, "n = %zu: differs from %s.taps = %zu", n,
                         job->name, job->taps);
    if (taps && !check_count(job, "n", n)) return PARTITA_ERR_ARG;
    if (!taps) n = 0;
    for (size_t i = 0; i < job->bands; i++) max_biquads = size_max(max_biquads, job->chain[i].n);
    // All bands and their sum: the caller's taps keep their values if a later step fails.
    double *made = mem_allocate(&job->allocator, (job->bands + 1) * n * sizeof *made + 1);
    decay.state = mem_reserve(&job->allocator, max_biquads * sizeof *decay.state);
    decay.frames = mem_reserve(&job->allocator, MAX_FRAMES * sizeof *decay.frames);
    if (made && decay.state && decay.frames) status = PARTITA_OK;
    if (status == PARTITA_OK && (n || !job->taps)) status = run_bands(&decay, made, n);
    if (status == PARTITA_OK) {
        if (n) memcpy(taps, made, job->bands * n * sizeof *made);
        if (is_linear(job)) result.delay = (double)(result.taps / 2);
        sized_write(ret_result, result_bytes, &result, sizeof result);
    }
    mem_release(&job->allocator, decay.frames);
    mem_release(&job->allocator, decay.state);
    mem_release(&job->allocator, made);
    return status;
}
