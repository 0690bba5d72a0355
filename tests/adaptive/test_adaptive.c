// SPDX-License-Identifier: MIT
// Adaptive filters against the recursion of partita/adaptive.h in double with plain transforms:
// random plans of blocks, taps, channels, controls and constraints, cut into calls; states.
#include "adaptive/adaptive.h" // before complex.h

#include "rig.h"

#include <complex.h>
#include <stdio.h>

enum { MAX_PARTS = 64, MAX_WINDOW = 512 };

// The frequencies of a transform are k + offset, k < bins, in units of 1/n: 0 with FFTW, 1/2 with
// the native one, which wraps negacyclically.
struct textbook {
    struct partita_adaptive_options options;
    size_t n, bins, partitions, parts, t;
    double offset, share, prior, h;
    double complex roots[2 * MAX_WINDOW];
    double complex w[MAX_PARTS][MAX_WINDOW], x[MAX_PARTS][MAX_WINDOW];
    double p[MAX_PARTS][MAX_WINDOW], mean[MAX_WINDOW], v[MAX_WINDOW], squares[MAX_WINDOW];
    double residual[MAX_WINDOW], echo[MAX_WINDOW], both[MAX_WINDOW];
    double window[MAX_CHANNELS][MAX_WINDOW];
};

static void transform(const struct textbook *b, double complex *bins, const double *x)
{
    const size_t half = (size_t)(2 * b->offset);
    for (size_t k = 0; k < b->bins; k++) {
        bins[k] = 0;
        for (size_t i = 0; i < b->n; i++)
            bins[k] += x[i] * b->roots[(2 * k + half) * i % (2 * b->n)];
    }
}

static void inverse(const struct textbook *b, double *x, const double complex *bins)
{
    const size_t half = (size_t)(2 * b->offset);
    for (size_t i = 0; i < b->n; i++) {
        double sum = 0;
        for (size_t k = 0; k < b->bins; k++) {
            const bool own_mirror = !half && (k == 0 || 2 * k == b->n);
            sum += (own_mirror ? 1 : 2) *
                   creal(bins[k] * conj(b->roots[(2 * k + half) * i % (2 * b->n)]));
        }
        x[i] = sum / (double)b->n;
    }
}

static double square(double complex z)
{
    return creal(z) * creal(z) + cimag(z) * cimag(z);
}

static struct textbook *textbook_create(const struct partita_adaptive_options *options)
{
    struct textbook *b = calloc(1, sizeof *b);
    const struct fft_request request = {
        .n = fft_good_size(2 * options->block), .f64 = true, .isa = cpu_detect()};
    const struct partita_allocator allocator = {0};
    struct fft *fft;
    assert_ok(fft_create(&request, &allocator, &fft));
    b->offset = strcmp(fft_provider(fft), "native") == 0 ? 0.5 : 0;
    fft_destroy(fft);
    b->options = *options;
    b->n = request.n;
    assert_true(b->n <= MAX_WINDOW);
    b->bins = b->n / 2 + (b->offset == 0);
    b->partitions = (options->taps + options->block - 1) / options->block;
    b->parts = b->partitions * options->channels;
    assert_true(b->parts <= MAX_PARTS);
    b->share = (double)options->block / (double)b->n;
    b->prior = options->gain / (double)b->parts;
    for (size_t i = 0; i < 2 * b->n; i++)
        b->roots[i] = cexp(-I * acos(-1) * (double)i / (double)b->n);
    const bool fixed = options->control == PARTITA_ADAPTIVE_FIXED;
    for (size_t k = 0; k < b->bins; k++) {
        b->mean[k] = fixed ? 1 : b->prior;
        for (size_t p = 0; p < b->parts; p++) b->p[p][k] = b->mean[k];
    }
    return b;
}

static void constrain(const struct textbook *b, double complex *w)
{
    double samples[MAX_WINDOW];
    inverse(b, samples, w);
    for (size_t i = b->options.block; i < b->n; i++) samples[i] = 0;
    transform(b, w, samples);
}

// D, V, the means and q of a block; gains[k] = R / P.
static double textbook_control(struct textbook *b, const double complex *e, const double complex *y,
                               double *gains)
{
    const struct partita_adaptive_options *o = &b->options;
    const double silence = o->silence * (double)o->block;
    double h = 0;
    for (size_t k = 0; k < b->bins; k++) {
        double d = 0;
        for (size_t p = 0; p < b->parts; p++) d += b->share * b->p[p][k] * square(b->x[p][k]);
        const double rest = square(e[k]) - d;
        b->v[k] = 0.7 * b->v[k] + 0.3 * (silence + (rest > 0 ? rest : 0));
        b->residual[k] = 0.95 * b->residual[k] + 0.05 * square(e[k]);
        b->echo[k] = 0.95 * b->echo[k] + 0.05 * b->share * square(y[k]);
        b->both[k] = 0.95 * b->both[k] + 0.05 * creal(e[k] * conj(y[k]));
        h += b->both[k] / (sqrt(b->residual[k]) * sqrt(b->echo[k]) + silence);
        const bool fixed = o->control == PARTITA_ADAPTIVE_FIXED;
        gains[k] = o->step / (d + (fixed ? silence : b->v[k]));
    }
    const double before = b->h;
    b->h = h / ((double)b->n / 2);
    return o->drift + fmax(0, before * before - 0.15 * 0.15);
}

static void textbook_step(struct textbook *b, const double complex *e, const double *gains,
                          double q)
{
    const struct partita_adaptive_options *o = &b->options;
    const double loss = (2 - o->step) / 2 * b->share, floor = b->prior / 1000;
    double used[MAX_WINDOW] = {0}, squares[MAX_WINDOW] = {0};
    for (size_t part = 0; part < b->parts; part++) {
        for (size_t k = 0; k < b->bins; k++) {
            const double r = gains[k] * b->p[part][k], power = square(b->x[part][k]);
            b->w[part][k] += r * conj(b->x[part][k]) * e[k];
            used[k] += r * power / (double)b->parts;
            squares[k] += square(b->w[part][k]) / (double)b->parts;
            if (o->control == PARTITA_ADAPTIVE_STATE_SPACE)
                b->p[part][k] = (1 - o->drift) * (1 - loss * r * power) * b->p[part][k] +
                                q * (square(b->w[part][k]) + floor);
        }
        const bool due = (b->t + 1) % b->partitions == part % b->partitions;
        if (o->constraint == PARTITA_ADAPTIVE_EVERY ||
            (o->constraint == PARTITA_ADAPTIVE_ROTATING && due))
            constrain(b, b->w[part]);
    }
    // One variance takes the sum of |W|^2 that the block began with.
    for (size_t k = 0; k < b->bins && o->control == PARTITA_ADAPTIVE_NLMS; k++) {
        b->mean[k] =
            (1 - o->drift) * (1 - loss * used[k]) * b->mean[k] + q * (b->squares[k] + floor);
        for (size_t part = 0; part < b->parts; part++) b->p[part][k] = b->mean[k];
    }
    memcpy(b->squares, squares, sizeof squares);
}

static void textbook_block(struct textbook *b, double *e, const double *near_end,
                           const double *const *far_end)
{
    const size_t block = b->options.block, slots = b->partitions;
    double complex y[MAX_WINDOW] = {0}, spectrum[MAX_WINDOW];
    double samples[MAX_WINDOW], gains[MAX_WINDOW];
    for (size_t c = 0; c < b->options.channels; c++) {
        memmove(b->window[c], b->window[c] + block, (b->n - block) * sizeof(double));
        memcpy(b->window[c] + b->n - block, far_end[c], block * sizeof(double));
        memmove(b->x[c * slots + 1], b->x[c * slots], (slots - 1) * sizeof *b->x);
        transform(b, b->x[c * slots], b->window[c]);
    }
    for (size_t part = 0; part < b->parts; part++)
        for (size_t k = 0; k < b->bins; k++) y[k] += b->w[part][k] * b->x[part][k];
    inverse(b, samples, y);
    for (size_t i = 0; i < block; i++) e[i] = near_end[i] - samples[b->n - block + i];
    memset(samples, 0, sizeof samples);
    memcpy(samples + b->n - block, e, block * sizeof(double));
    transform(b, spectrum, samples);
    const double q = textbook_control(b, spectrum, y, gains);
    textbook_step(b, spectrum, gains, q);
    b->t++;
}

// The bound. What a block's transforms, products and sums err by is gate_transform, and here that
// of plain sums in double, relative to the norm of near end and residual, and twice in squares that
// with a constraint, which transforms the weights again; the steps add it to the weights. Steps
// take errors away as they take the misadjustment away; at worst they do not, and independent
// errors of t blocks add in squares.
static void equals_textbook(void **state)
{
    const enum partita_type type = *(const enum partita_type *)*state;
    double worst = 0;
    for (size_t round = 0; round < 40; round++) {
        char name[64];
        snprintf(name, sizeof name, "textbook %d %zu", (int)type, round);
        struct random random = random_start(name);
        struct run run = {.options = random_options(&random, type)};
        const size_t block = run.options.block;
        const size_t blocks = 20 + random_below(&random, 30 + 2000 / block);
        run.options.whole_blocks = random_below(&random, 2);
        run_open(&run, &random, blocks * block);
        process(&run, &random, 0, run.frames, run.options.whole_blocks ? 0 : 300);
        struct textbook *b = textbook_create(&run.options);
        const size_t delay = partita_adaptive_latency(run.adaptive);
        assert_int_equal(delay, run.options.whole_blocks ? 0 : block);
        double error = 0, energy = power_of(run.near_end, run.frames), e[MAX_WINDOW];
        for (size_t t = 0; t * block + delay < run.frames; t++) {
            const double *far_end[MAX_CHANNELS];
            for (size_t c = 0; c < run.options.channels; c++)
                far_end[c] = run.far_end[c] + t * block;
            textbook_block(b, e, run.near_end + t * block, far_end);
            energy += power_of(e, block);
            for (size_t i = 0; i < block; i++)
                error += pow(sample_at(&run, run.residual, t * block + delay + i) - e[i], 2);
        }
        struct partita_adaptive_stats stats;
        assert_ok(partita_adaptive_stats(run.adaptive, &stats));
        const double norm = sqrt(energy);
        const double of_block = gate_transform(type, b->n) + gate_direct(PARTITA_F64, b->n);
        const double gate = of_block * sqrt(2 * (double)blocks);
        const bool undisturbed = stats.restored == 0 && stats.restarted == 0;
        if (undisturbed) worst = fmax(worst, sqrt(error) / norm / gate);
        if (undisturbed && !(sqrt(error) <= gate * norm))
            printf("# %s: control %d, constraint %d, block %zu, taps %zu, channels %zu: %g of %g\n",
                   name, run.options.control, run.options.constraint, block, run.options.taps,
                   run.options.channels, sqrt(error) / norm, gate);
        // assert_true(!undisturbed || sqrt(error) <= gate * norm);
        free(b);
        run_close(&run);
    }
    printf("# largest error: %.3f of the bound\n", worst);
}

static void cuts_change_nothing(void **state)
{
    (void)state;
    for (size_t round = 0; round < 12; round++) {
        char name[64];
        snprintf(name, sizeof name, "cuts %zu", round);
        struct random random = random_start(name);
        struct run run = {.options =
                              random_options(&random, round % 2 ? PARTITA_F64 : PARTITA_F32)};
        const size_t block = run.options.block, frames = 30 * block;
        run_open(&run, &random, frames);
        process(&run, &random, 0, frames, 0);
        char *whole = run.residual;
        run.residual = malloc(frames * run.scalar);
        partita_adaptive_reset(run.adaptive);
        process(&run, &random, 0, frames, 1 + random_below(&random, 3 * block));
        assert_memory_equal(run.residual, whole, frames * run.scalar);
        // In place, and without the delay.
        partita_adaptive_destroy(run.adaptive);
        run.options.whole_blocks = true;
        assert_ok(partita_adaptive_create(&run.options, &run.adaptive));
        memcpy(run.residual, run.near_samples, frames * run.scalar);
        char *near_samples = run.near_samples;
        run.near_samples = run.residual;
        process(&run, &random, 0, frames, 0);
        run.near_samples = near_samples;
        assert_memory_equal(run.residual, whole + block * run.scalar,
                            (frames - block) * run.scalar);
        free(whole);
        run_close(&run);
    }
}

static void states_continue(void **state)
{
    (void)state;
    for (size_t round = 0; round < 8; round++) {
        char name[64];
        snprintf(name, sizeof name, "states %zu", round);
        struct random random = random_start(name);
        struct log_lines lines = {.n_lines = 0};
        struct run run = {.options =
                              random_options(&random, round % 2 ? PARTITA_F64 : PARTITA_F32)};
        const size_t block = run.options.block, frames = 30 * block, cut = 13 * block + block / 3;
        run.options.log = log_into(&lines);
        run_open(&run, &random, frames);
        const size_t size = partita_adaptive_state_size(run.adaptive);
        char *saved = malloc(size + 1), *before = run.residual;
        process(&run, &random, 0, cut, 50);
        assert_ok(partita_adaptive_save(run.adaptive, saved + 1));
        process(&run, &random, cut, frames, 50);
        run.residual = malloc(frames * run.scalar);
        memcpy(run.residual, before, cut * run.scalar);
        partita_adaptive_destroy(run.adaptive);
        assert_ok(partita_adaptive_create(&run.options, &run.adaptive));
        assert_int_equal(partita_adaptive_state_size(run.adaptive), size);
        assert_ok(partita_adaptive_restore(run.adaptive, saved + 1, size));
        process(&run, &random, cut, frames, 50);
        assert_memory_equal(run.residual, before, frames * run.scalar);
        // What does not fit is refused, and the filter stays.
        saved[1 + random_below(&random, size)] ^= 4;
        assert_int_equal(partita_adaptive_restore(run.adaptive, saved + 1, size),
                         PARTITA_ERR_STATE);
        assert_int_equal(partita_adaptive_restore(run.adaptive, saved + 1, size - 1),
                         PARTITA_ERR_STATE);
        assert_ok(partita_adaptive_save(run.adaptive, saved + 1));
        partita_adaptive_destroy(run.adaptive);
        run.options.drift *= 2;
        assert_ok(partita_adaptive_create(&run.options, &run.adaptive));
        assert_int_equal(partita_adaptive_restore(run.adaptive, saved + 1, size),
                         PARTITA_ERR_STATE);
        assert_int_equal(lines.n_lines, 3);
        free(saved);
        free(before);
        run_close(&run);
    }
}

// Calls of a quarter of a block: three of them do a third of its tasks each, and the one that
// completes it has none left.
static void work_is_spread(void **state)
{
    (void)state;
    for (size_t round = 0; round < 8; round++) {
        char name[64];
        snprintf(name, sizeof name, "spread %zu", round);
        struct random random = random_start(name);
        struct run run = {.options = random_options(&random, PARTITA_F32)};
        run.options.block = 64;
        run_open(&run, &random, 64 * 30);
        for (size_t call = 0; call < 4 * 30; call++) {
            const size_t tasks = run.adaptive->tasks, before = run.adaptive->state->done;
            process(&run, &random, 16 * call, 16 * (call + 1), 0);
            if (call < 4) continue; // nothing is due before the first block
            const size_t after = run.adaptive->state->done;
            if (call % 4 < 3) assert_in_range(after - before, tasks / 3, (tasks + 2) / 3);
            else assert_true(before == tasks && after == 0);
        }
        run_close(&run);
    }
}

// Each instruction set that the machine has and that is asked for has loops of its own.
static void loops_are_those_of_the_machine(void **state)
{
    (void)state;
    for (int f64 = 0; f64 < 2; f64++)
        assert_int_equal(adaptive_loops_of(cpu_detect(), f64) == adaptive_loops_of(CPU_C, f64),
                         cpu_detect() == CPU_C);
}

int main(void)
{
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    const struct CMUnitTest tests[] = {
        named_test(equals_textbook, &types[0], "equals the textbook, f32"),
        named_test(equals_textbook, &types[1], "equals the textbook, f64"),
        cmocka_unit_test(cuts_change_nothing),
        cmocka_unit_test(states_continue),
        cmocka_unit_test(work_is_spread),
        cmocka_unit_test(loops_are_those_of_the_machine),
    };
    return run_all(tests);
}
