// SPDX-License-Identifier: MIT
// Unit tests of apps/correlate: the peaks of a stream against a search of the whole signal. The
// Python tests of this folder test the program.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/peaks.h"
#include "support/test.h"

static double uniform(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 24) - 0.5;
}

enum { CHANNELS = 2, SAMPLES = 600 };

struct found {
    struct peak peaks[CHANNELS * SAMPLES];
    size_t n;
};

static bool note(void *context, const struct peak *peak, struct fault *fault)
{
    (void)fault;
    struct found *found = context;
    found->peaks[found->n++] = *peak;
    return true;
}

static bool is_maximum(const float *y, size_t i, size_t channel)
{
    const float here = fabsf(y[i * CHANNELS + channel]);
    if (i && fabsf(y[(i - 1) * CHANNELS + channel]) >= here) return false;
    for (size_t j = i + 1; j < SAMPLES && j <= i + PEAKS_MARGIN; j++) {
        const float after = fabsf(y[j * CHANNELS + channel]);
        if (after != here) return after < here;
    }
    return here > 0;
}

static int by_size(const void *a, const void *b)
{
    const struct peak *x = a, *y = b;
    if (x->magnitude != y->magnitude) return x->magnitude < y->magnitude ? 1 : -1;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return (x->channel > y->channel) - (x->channel < y->channel);
}

static int by_place(const void *a, const void *b)
{
    const struct peak *x = a, *y = b;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return (x->channel > y->channel) - (x->channel < y->channel);
}

// All maxima of a channel, sorted by size, are taken in turn against those taken before.
static void search_channel(struct found *ret, const float *y, size_t channel,
                           const struct peaks_request *q)
{
    static struct peak maxima[SAMPLES];
    size_t n = 0, n_taken = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        const double size = fabs((double)y[i * CHANNELS + channel]);
        if (is_maximum(y, i, channel) && size >= q->threshold)
            maxima[n++] = (struct peak){.index = i, .channel = channel, .magnitude = size};
    }
    qsort(maxima, n, sizeof *maxima, by_size);
    for (size_t k = 0; k < n; k++) {
        bool hidden = false;
        for (size_t j = 0; j < n_taken; j++) {
            const uint64_t a = maxima[j].index, b = maxima[k].index;
            hidden = hidden || (a < b ? b - a : a - b) < q->distance;
        }
        if (!hidden) maxima[n_taken++] = maxima[k];
    }
    for (size_t k = 0; k < n_taken; k++)
        if (maxima[k].index >= q->first && maxima[k].index < q->end)
            ret->peaks[ret->n++] = maxima[k];
}

static void search_whole(struct found *ret, const float *y, const struct peaks_request *q)
{
    ret->n = 0;
    for (size_t c = 0; c < CHANNELS; c++) search_channel(ret, y, c, q);
    qsort(ret->peaks, ret->n, sizeof *ret->peaks, by_size);
    if (q->max_count && ret->n > q->max_count) ret->n = q->max_count;
    qsort(ret->peaks, ret->n, sizeof *ret->peaks, by_place);
}

static void search_stream(struct found *ret, const float *y, struct peaks_request q, size_t chunk)
{
    struct peaks *peaks;
    struct fault fault;
    ret->n = 0;
    q.context = ret;
    assert_true(peaks_open(&peaks, &q, &fault));
    for (size_t at = 0; at < SAMPLES; at += chunk)
        assert_true(peaks_add(peaks, y + at * CHANNELS, chunk < SAMPLES - at ? chunk : SAMPLES - at,
                              &fault));
    assert_true(peaks_finish(peaks, &fault));
    peaks_close(peaks);
}

// Small integers, so that there are many equal maxima and plateaus; some rise or fall over the
// whole signal, so that what is decided at one end decides the other.
static void draw(float *y, size_t k, unsigned *seed)
{
    const double range = k % 2 ? 6 : 400, slope = k % 4 == 2 ? 3 : k % 4 == 3 ? -0.1 : 0;
    for (size_t i = 0; i < SAMPLES * CHANNELS; i++)
        y[i] =
            (float)rint(uniform(seed) * range + slope * ((double)(i / CHANNELS) - SAMPLES / 2.0));
}

static void compare(const struct found *got, const struct found *wanted)
{
    assert_int_equal(got->n, wanted->n);
    for (size_t i = 0; i < got->n; i++) {
        assert_int_equal(got->peaks[i].index, wanted->peaks[i].index);
        assert_int_equal(got->peaks[i].channel, wanted->peaks[i].channel);
        assert_true(got->peaks[i].magnitude == wanted->peaks[i].magnitude);
    }
}

static void peaks_equal_those_of_the_whole(void **state)
{
    (void)state;
    static float y[SAMPLES * CHANNELS];
    static struct found wanted, got;
    static const size_t distances[] = {1, 2, 7, 50, 100000}, max_counts[] = {0, 1, 5, 1000},
                        chunks[] = {1, 17, SAMPLES};
    unsigned seed = 9;
    for (size_t k = 0; k < 5 * 4 * 3 * 2; k++) {
        draw(y, k, &seed);
        const struct peaks_request q = {.type = PARTITA_F32,
                                        .channels = CHANNELS,
                                        .max_count = max_counts[k / 2 % 4],
                                        .threshold = k % 3 ? 2 : 0,
                                        .distance = distances[k / 8 % 5],
                                        .first = k % 5 == 0 ? 100 : 0,
                                        .end = k % 5 == 0 ? 500 : UINT64_MAX,
                                        .report = note};
        search_whole(&wanted, y, &q);
        search_stream(&got, y, q, chunks[k / 40]);
        compare(&got, &wanted);
    }
}

// Searches the results from `begin` on for the peaks of q. False if they depend on what is before.
// Stops as soon as it may.
static bool search_part(struct found *ret, const float *y, struct peaks_request q, size_t begin)
{
    struct peaks *peaks;
    struct fault fault;
    ret->n = 0;
    q.context = ret;
    q.continues = begin > 0;
    q.first -= begin;
    q.end -= begin;
    assert_true(peaks_open(&peaks, &q, &fault));
    size_t at = begin;
    for (; at < SAMPLES && !peaks_lost(peaks) && !peaks_settled(peaks); at++)
        assert_true(peaks_add(peaks, y + at * CHANNELS, 1, &fault));
    const size_t n = ret->n;
    const bool settled = peaks_settled(peaks);
    assert_true(peaks_finish(peaks, &fault));
    if (settled && !q.max_count) assert_int_equal(ret->n, n);
    const bool lost = peaks_lost(peaks);
    if (lost) assert_int_equal(ret->n, 0);
    peaks_close(peaks);
    for (size_t i = 0; i < ret->n; i++) ret->peaks[i].index += begin;
    return !lost;
}

// The peaks of a part, of a search that begins before it and is not told what came before that.
static void peaks_of_parts(void **state)
{
    (void)state;
    static float y[SAMPLES * CHANNELS];
    static struct found wanted, got;
    static const size_t distances[] = {1, 2, 7, 50};
    unsigned seed = 10;
    size_t n_found = 0, n_lost = 0, n_peaks = 0;
    for (size_t k = 0; k < 400; k++) {
        draw(y, k, &seed);
        struct peaks_request q = {.type = PARTITA_F32,
                                  .channels = CHANNELS,
                                  .max_count = k % 5 == 0 ? 3 : 0,
                                  .threshold = k % 3 ? 2 : 0,
                                  .distance = distances[k / 4 % 4],
                                  .first = 150 + k % 100,
                                  .end = 300 + k % 200,
                                  .report = note};
        search_whole(&wanted, y, &q);
        size_t margin = 2 * q.distance;
        while (!search_part(&got, y, q, q.first > margin ? q.first - margin : 0)) {
            n_lost++;
            margin *= 2;
        }
        n_found += margin < q.first;
        n_peaks += got.n;
        compare(&got, &wanted);
    }
    // Both ways are taken.
    assert_true(n_found > 100 && n_lost > 100 && n_peaks > 1000);
}

// A burst is not hidden by the side lobe of another.
static void side_lobes_hide_nothing(void **state)
{
    (void)state;
    static float y[SAMPLES * CHANNELS];
    static struct found got;
    memset(y, 0, sizeof y);
    y[20 * CHANNELS] = 3;
    y[26 * CHANNELS] = 4;
    y[34 * CHANNELS] = 9;
    struct peaks_request q = {.type = PARTITA_F32,
                              .channels = CHANNELS,
                              .distance = 10,
                              .end = UINT64_MAX,
                              .report = note};
    search_stream(&got, y, q, 7);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.peaks[0].index, 20);
    assert_int_equal(got.peaks[1].index, 34);
}

// A falling and a rising sequence of maxima: the queue of the second is as long as the signal.
static void long_sequences_of_maxima(void **state)
{
    (void)state;
    static float y[SAMPLES * CHANNELS];
    static struct found got;
    for (size_t i = 0; i < SAMPLES; i++) {
        y[i * CHANNELS] = i % 2 ? 0 : (float)(SAMPLES - i);
        y[i * CHANNELS + 1] = i % 2 ? 0 : (float)(i + 1);
    }
    struct peaks_request q = {.type = PARTITA_F32,
                              .channels = CHANNELS,
                              .distance = 100,
                              .end = UINT64_MAX,
                              .report = note};
    search_stream(&got, y, q, 10);
    assert_int_equal(got.n, 2 * SAMPLES / 100);
    for (size_t k = 0; k < got.n; k++)
        assert_int_equal(got.peaks[k].index, k / 2 * 100 + (k % 2 ? 98 : 0));
}

// sinc(band (t - shift)) fills that part of the band; `limit` is what peaks.h promises.
static void check_positions(double band, double limit)
{
    static float y[2 * SAMPLES * CHANNELS];
    static struct found got;
    for (double shift = -0.5; shift <= 0.5; shift += 0.0625) {
        for (size_t i = 0; i < SAMPLES * CHANNELS; i++) {
            const double t = M_PI * band * ((double)(i / CHANNELS) - 300 - shift);
            const double size = fabs(t) < 1e-9 ? 1 : sin(t) / t;
            y[2 * i] = (float)(size * cos(2));
            y[2 * i + 1] = (float)(size * sin(2));
        }
        struct peaks_request q = {.type = PARTITA_CF32,
                                  .channels = CHANNELS,
                                  .max_count = 2,
                                  .distance = 100,
                                  .end = UINT64_MAX,
                                  .report = note};
        struct peaks *peaks;
        struct fault fault;
        got.n = 0;
        q.context = &got;
        assert_true(peaks_open(&peaks, &q, &fault));
        assert_true(peaks_add(peaks, y, SAMPLES, &fault) && peaks_finish(peaks, &fault));
        assert_int_equal(got.n, 2);
        for (size_t i = 0; i < 2; i++) {
            const double position = (double)got.peaks[i].index + got.peaks[i].shift;
            assert_true(fabs(position - 300 - shift) < limit);
            assert_true(fabs(got.peaks[i].phase - 2) < 1e-6);
        }
        assert_true(fabs(peaks_largest(peaks) - got.peaks[0].magnitude) < 1e-6);
        peaks_close(peaks);
    }
}

static void positions_are_interpolated(void **state)
{
    (void)state;
    check_positions(0.02, 0.001);
    check_positions(0.6, 0.001);
    check_positions(0.8, 0.01);
    check_positions(1, 0.06);
}

static void samples_that_are_not_finite(void **state)
{
    (void)state;
    static float y[SAMPLES * CHANNELS];
    static struct found got;
    memset(y, 0, sizeof y);
    y[100 * CHANNELS] = 3;
    y[101 * CHANNELS] = NAN;
    y[200 * CHANNELS] = INFINITY;
    struct peaks_request q = {.type = PARTITA_F32,
                              .channels = CHANNELS,
                              .distance = 5,
                              .end = UINT64_MAX,
                              .report = note};
    search_stream(&got, y, q, 100);
    assert_int_equal(got.n, 1);
    assert_int_equal(got.peaks[0].index, 100);
    assert_true(got.peaks[0].shift == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_equal_those_of_the_whole),
        cmocka_unit_test(peaks_of_parts),
        cmocka_unit_test(side_lobes_hide_nothing),
        cmocka_unit_test(long_sequences_of_maxima),
        cmocka_unit_test(positions_are_interpolated),
        cmocka_unit_test(samples_that_are_not_finite),
    };
    return run_all(tests);
}
