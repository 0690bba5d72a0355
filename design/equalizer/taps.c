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
enum { MAX_DELAY = 1 << 16, MAX_STATES = 2 * SECTION_MAX_BIQUADS * MAX_SECTIONS };

bool job_resolve(struct taps_job *job)
{
    struct partita_crossover *c = &job->given;
    const size_t n = job->result.taps = job->taps ? job->n : c->taps;
    job->linear = c->phase == PARTITA_EQUALIZER_LINEAR;
    if (c->rate == 0) c->rate = 1;
    if (c->tail == 0) c->tail = job->linear ? LINEAR_TAIL : RECURSIVE_TAIL;
    if (!(c->rate > 0 && isfinite(c->rate)))
        return log_line(&c->log, "%s.rate = %g: must be above 0", job->name, c->rate);
    if ((unsigned)c->phase > PARTITA_EQUALIZER_LINEAR)
        return log_line(&c->log, "%s.phase = %d: there is no such phase", job->name, (int)c->phase);
    if (!(c->tail >= MIN_TAIL && c->tail <= MAX_TAIL))
        return log_line(&c->log, "%s.tail = %g: must be from %d to %d dB", job->name, c->tail,
                        MIN_TAIL, MAX_TAIL);
    if (!c->allocator.allocate != !c->allocator.release)
        return log_line(&c->log, "%s.allocator: needs both functions or none", job->name);
    if (job->taps && c->taps && n != c->taps)
        return log_line(&c->log, "n = %zu: differs from %s.taps = %zu", n, job->name, c->taps);
    if ((job->taps && !n) || n > MAX_TAPS || (n && job->linear && n % 2 == 0))
        return log_line(&c->log, "%s = %zu: must be %sfrom 1 to %d", job->taps ? "n" : "taps", n,
                        job->linear ? "odd, " : "", MAX_TAPS);
    for (size_t i = 0; i < c->bands; i++)
        if (!(fabs(c->gain[i]) <= MAX_DECIBELS && c->delay[i] <= MAX_DELAY))
            return log_line(
                &c->log, "%s.gain[%zu] = %g, .delay[%zu] = %zu: must be within %d dB and %d frames",
                job->name, i, c->gain[i], i, c->delay[i], MAX_DECIBELS, MAX_DELAY);
    return true;
}

// Continues the recursion to n frames. All biquads run frame by frame, which a processor overlaps.
static void run_recursion(struct taps_job *job, const struct biquad_chain *chain, size_t n)
{
    double(*state)[2] = (double(*)[2])(job->left + MAX_FRAMES + 1);
    if (!job->n_frames) memset(state, 0, chain->n * sizeof *state);
    for (size_t t = job->n_frames; t < n; t++) {
        double x = t == 0;
        for (size_t i = 0; i < chain->n; i++) {
            const double *b = chain->biquads[i].b, *a = chain->biquads[i].a;
            const double y = b[0] * x + state[i][0];
            state[i][0] = b[1] * x - a[0] * y + state[i][1];
            state[i][1] = b[2] * x - a[1] * y;
            x = y;
        }
        job->frames[t] = x;
    }
}

// Doubles the frames until a hundredth of the tail is left in their last quarter, which then holds
// more than all frames after it, and than their aliases. Without n, counts the fewest taps with the
// tail and the band's delay.
static enum partita_status run_band(struct taps_job *job, size_t band)
{
    const struct biquad_chain *chain = &job->chain[band];
    const size_t max = job->linear ? MAX_FRAMES / 2 : MAX_FRAMES, sides = job->linear ? 2 : 1;
    double *frames = job->frames, *left = job->left, tail = 0;
    job->n_frames = 0;
    for (size_t n = size_max(MIN_FRAMES, job->given.taps);; n *= 2) {
        enum partita_status status = PARTITA_OK;
        n = size_min(n, max);
        if (!job->linear) run_recursion(job, chain, n);
        else
            status =
                design_bins_symmetric(frames, n, 2 * n, chain_gain, chain, &job->given.allocator);
        if (status) return status;
        job->n_frames = n;
        left[n] = 0;
        for (size_t i = n; i-- > 0;)
            left[i] = left[i + 1] + (double)(i ? sides : 1) * frames[i] * frames[i];
        tail = left[0] * pow(10, -job->given.tail / 10);
        if (n == max || left[n / 4 * 3] <= tail / 100) break;
    }
    size_t count = job->n_frames;
    while (count > 1 && left[count - 1] <= tail) count--;
    count = sides * (count - 1 + job->given.delay[band]) + 1;
    if (!job->n) job->result.taps = size_max(job->result.taps, count);
    return PARTITA_OK;
}

// Writes the taps of a band, adds them to the sum, and takes the tail: by how many dB the energy of
// all other frames is below that of all.
static void write_taps(struct taps_job *job, size_t band, double *taps, double *sum)
{
    const double sign = job->given.inverted[band] ? -1 : 1;
    const double factor = sign * pow(10, job->given.gain[band] / 20);
    const size_t first = (job->linear ? job->n / 2 : 0) + job->given.delay[band];
    for (size_t i = 0; i < job->n; i++) { // without linear phase i - first is huge below `first`
        const size_t frame = job->linear && i < first ? first - i : i - first;
        taps[i] = frame < job->n_frames ? factor * job->frames[frame] : 0;
        sum[i] += taps[i];
    }
    const size_t end = job->n > first ? size_min(job->n - first, job->n_frames) : 0;
    job->result.tail = fmin(job->result.tail, 10 * log10(job->left[0] / job->left[end]));
}

// Compares the magnitude of the sum of all bands with the wanted one.
static void compare(void *context, double frequency, double gain)
{
    struct taps_job *job = context;
    const double wanted = job->given.bands > 1 ? 0 : 20 * log10(chain_gain(job->chain, frequency));
    const double decibels = 20 * log10(gain), deviation = fabs(decibels - wanted);
    if (decibels > job->result.gain) {
        job->result.gain = decibels;
        job->result.gain_frequency = frequency * job->given.rate;
    }
    if (wanted >= job->floor && deviation > job->result.deviation) {
        job->result.deviation = deviation;
        job->result.deviation_frequency = frequency * job->given.rate;
    }
}

// Writes n taps of each band, and their sum, or counts them in the result if n is 0.
static enum partita_status run_bands(struct taps_job *job, double *taps)
{
    const struct partita_crossover *c = &job->given;
    double *sum = taps + c->bands * job->n, energy = 0;
    memset(sum, 0, job->n * sizeof *sum);
    for (size_t i = 0; i < c->bands; i++) {
        const enum partita_status status = run_band(job, i);
        if (status) return status;
        if (job->n) write_taps(job, i, taps + i * job->n, sum);
    }
    if (job->result.taps > MAX_TAPS)
        return log_error(&c->log, PARTITA_ERR_UNSUPPORTED,
                         "%s.tail = %g: needs more than %d taps; use a smaller tail, set taps, or "
                         "use higher frequencies or a lower q",
                         job->name, c->tail, MAX_TAPS);
    if (!job->n) return PARTITA_OK;
    for (size_t i = 0; i < job->n; i++) energy += sum[i] * sum[i]; // the mean of squared gains
    job->floor = 10 * log10(energy) - MAX_BELOW;
    return design_bins_gains(sum, job->n, 4 * job->n, &c->allocator, compare, job);
}

enum partita_status job_run(struct taps_job *job, struct partita_equalizer_result *ret_result,
                            size_t result_bytes)
{
    const struct partita_crossover *c = &job->given;
    job->result.tail = INFINITY;
    job->result.gain = -INFINITY;
    // Also all bands and their sum: the caller's taps keep their values if a later step fails.
    const size_t doubles = 2 * MAX_FRAMES + 1 + MAX_STATES + (c->bands + 1) * job->n;
    job->frames = mem_reserve(&c->allocator, doubles * sizeof *job->frames);
    if (!job->frames) return PARTITA_ERR_NOMEM;
    job->left = job->frames + MAX_FRAMES;
    double *made = job->left + MAX_FRAMES + 1 + MAX_STATES;
    const enum partita_status status = job->n || !c->taps ? run_bands(job, made) : PARTITA_OK;
    if (status == PARTITA_OK) {
        if (job->n) memcpy(job->taps, made, c->bands * job->n * sizeof *made);
        if (job->linear) job->result.delay = (double)(job->result.taps / 2);
        sized_write(ret_result, result_bytes, &job->result, sizeof job->result);
    }
    mem_release(&c->allocator, job->frames);
    return status;
}
