// SPDX-License-Identifier: MIT
// Outputs of channelizers against direct sums in long double, of random signals, rates, taps and
// centres, and their bits.
#include "channel_world.h"

// Error of the formula: transforms (gate_transform), one rounding of each response, and four of the
// rotation. A transform of the block adds errors in proportion to all of its samples, of which the
// first blocks have fewer: typical is that of the whole signal.
static void outputs_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < 160; i++) {
        char name[32];
        snprintf(name, sizeof name, "channel %zu", i);
        struct random random = random_start(name);
        const enum partita_type signal = (enum partita_type)(PARTITA_F32 + i % 4);
        struct world w = random_world(&random, signal);
        open_world(&w);
        const size_t block = partita_channelizer_block(w.channelizer);
        const size_t overlap = partita_channelizer_overlap(w.channelizer);
        w.n = block * (block > 3000 ? 2 : 4 + overlap / block);
        assert_true(w.n <= MAX_INPUTS);
        const size_t n = w.n * or_one(w.channel.up) / or_one(w.channel.stride);
        const enum partita_type type = output_type(&w);
        char *y = malloc(n * partita_type_size(type));
        assert_int_equal(process(&w, w.slot, &random, y, w.n), n);
        enum { CHECKED = 300 };
        static double complex expected[CHECKED], got[CHECKED];
        double energy = 0;
        const size_t checked = n < CHECKED ? n : CHECKED;
        for (size_t k = 0; k < checked; k++) {
            const size_t m = n < CHECKED ? k : random_below(&random, n);
            expected[k] = direct(&w, m, 0, w.n);
            got[k] = reference_sample(type, y, m);
        }
        for (size_t t = 0; t < w.channel.n_taps; t++)
            energy += pow(cabs(reference_sample(w.channel.taps_type, w.taps, t)), 2);
        const double typical =
            sqrt(energy / (double)or_one(w.channel.up) * (type_is_complex(signal) ? 2.0 : 1.0) / 3);
        const double u = type_is_f64(signal) ? 0x1p-53 : 0x1p-24;
        const double gate =
            gate_for_outputs(gate_transform(signal, block + overlap) + 8 * u, checked);
        const double error = error_against(PARTITA_CF64, got, expected, checked, typical);
        if (!(error <= gate))
            fail_msg("%s: type %d, N %zu + %zu, taps %zu, rate %zu/%zu, centre %.17g: error %.3g "
                     "above %.3g",
                     name, (int)signal, overlap, block, w.channel.n_taps, or_one(w.channel.up),
                     or_one(w.channel.stride), w.centre, error, gate);
        free(y);
        drop_world(&w);
    }
}

// The bits of a channel with other cuts, threads and channels, and of one that opens late.
static void bits_depend_on_the_channel_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof name, "bits %zu", i);
        struct random random = random_start(name);
        struct world w = random_world(&random, (enum partita_type)(PARTITA_F32 + i % 4));
        w.options.threads = 1;
        open_world(&w);
        const size_t block = partita_channelizer_block(w.channelizer);
        w.n = block * (MAX_INPUTS / block < 6 ? MAX_INPUTS / block : 6);
        const size_t each = block * or_one(w.channel.up) / or_one(w.channel.stride);
        const size_t n = w.n / block * each, sample = partita_type_size(output_type(&w));
        char *alone = malloc(n * sample), *among = malloc(n * sample);
        assert_int_equal(process(&w, w.slot, NULL, alone, w.n), n);
        close_world(&w);

        w.options.threads = 3;
        open_world(&w);
        struct partita_channel other = w.channel;
        struct partita_channel_filter *filter;
        size_t slot, late;
        other.n_taps = 1;
        assert_ok(partita_channel_filter_create(w.channelizer, &other, &filter));
        for (int k = 0; k < 20; k++)
            assert_ok(partita_channelizer_open(w.channelizer, k % 2 ? filter : w.filter,
                                               w.centre / (k + 1), &slot));
        assert_int_equal(process(&w, w.slot, &random, among, w.n), n);
        assert_memory_equal(alone, among, n * sample);
        assert_ok(partita_channelizer_reset(w.channelizer, 0));
        assert_int_equal(process(&w, w.slot, &random, among, block), each);
        assert_ok(partita_channelizer_open(w.channelizer, w.filter, w.centre, &late));
        w.x = (char *)w.x + block * partita_type_size(w.options.signal);
        const size_t rest = process(&w, late, &random, among, w.n - block);
        w.x = (char *)w.x - block * partita_type_size(w.options.signal);
        assert_int_equal(rest, n - each);
        assert_memory_equal(alone + each * sample, among, rest * sample);
        partita_channel_filter_destroy(filter);
        free(alone);
        free(among);
        drop_world(&w);
    }
}

// Sample numbers near 2^50: the phase is exact, and a reset continues a run.
static void phase_is_exact_after_years(void **state)
{
    (void)state;
    struct random random = random_start("years");
    for (int i = 0; i < 6; i++) {
        struct world w = random_world(&random, i % 2 ? PARTITA_F64 : PARTITA_CF64);
        w.options.sample_rate = 64.8e6;
        w.centre = 1234567.0 * (i + 1) * (i % 3 ? -1 : 1);
        w.channel.up = 1;
        if (w.channel.n_taps > w.options.n_taps) w.channel.n_taps = w.options.n_taps;
        open_world(&w);
        const size_t block = partita_channelizer_block(w.channelizer);
        const uint64_t start = ((uint64_t)1 << 50) / w.options.stride * w.options.stride;
        const size_t stride = or_one(w.channel.stride), n = block / stride;
        double complex *y = malloc(n * sizeof *y);
        assert_ok(partita_channelizer_reset(w.channelizer, start));
        assert_int_equal(process(&w, w.slot, &random, (char *)y, block), n);
        assert_true(partita_channelizer_position(w.channelizer) == start + block);
        for (size_t m = 0; m < n; m += n / 20 + 1) {
            const double complex expected = direct(&w, start / stride + m, start, start + block);
            if (cabs(y[m] - expected) > 1e-12 * sqrt((double)w.channel.n_taps))
                fail_msg("output %zu: error %g", m, cabs(y[m] - expected));
        }
        free(y);
        drop_world(&w);
    }
}

// With a bandwidth the bins outside are left out. By the inequality of Cauchy and Schwarz an output
// differs by at most the norm of the samples of a transform times the norm of the response at these
// bins, divided by sqrt(N).
static void a_bandwidth_removes_bins(void **state)
{
    enum { TAPS = 65, BLOCK = 192, STRIDE = 8, N = 256 };
    (void)state;
    static double taps[TAPS], x[4 * N];
    static double complex exact[4 * BLOCK / STRIDE], cut[4 * BLOCK / STRIDE];
    struct random random = random_start("bandwidth");
    for (int t = 0; t < TAPS; t++) {
        const double at = (t - 32) / 8.0, window = 0.54 + 0.46 * cos(2 * M_PI * (t - 32) / 64.0);
        taps[t] = (at == 0 ? 1 : sin(M_PI * at) / (M_PI * at)) * window / 8;
    }
    random_samples(&random, PARTITA_F64, x, 4 * N);
    struct world w = {
        .options = {.signal = PARTITA_F64,
                    .channels = 2,
                    .n_taps = TAPS,
                    .stride = STRIDE,
                    .block = BLOCK},
        .channel = {.taps = taps, .n_taps = TAPS, .taps_type = PARTITA_F64, .stride = STRIDE},
        .centre = 0.1234,
        .x = x};
    open_world(&w);
    const size_t n = process(&w, w.slot, NULL, (char *)exact, 4 * BLOCK);
    close_world(&w);
    w.channel.bandwidth = 0.3;
    open_world(&w);
    const size_t length = BLOCK + partita_channelizer_overlap(w.channelizer);
    assert_int_equal(length % N, 0);
    assert_int_equal(process(&w, w.slot, NULL, (char *)cut, 4 * BLOCK), n);
    double removed = 0, largest = 0, bound;
    for (size_t k = 0; k < length; k++) // of the finest grid, half a bin wide, which has both kinds
        for (int half = 0; half < 2; half++) {
            const double f = ((double)k + half * 0.5) / (double)length - 0.5;
            double complex sum = 0;
            for (int t = 0; t < TAPS; t++) sum += taps[t] * cexp(-2 * M_PI * I * f * t);
            if (fabs(f) > 0.15 - 1.0 / (double)length) removed += pow(cabs(sum), 2);
        }
    bound = sqrt((double)length / 3 * 1.5) * sqrt(removed / (double)length);
    for (size_t m = 0; m < n; m++) largest = fmax(largest, cabs(cut[m] - exact[m]));
    if (!(largest <= bound) || !(largest > bound / 1000))
        fail_msg("differs by %g, bound %g", largest, bound);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_right),
        cmocka_unit_test(bits_depend_on_the_channel_alone),
        cmocka_unit_test(phase_is_exact_after_years),
        cmocka_unit_test(a_bandwidth_removes_bins),
    };
    return run_all(tests);
}
