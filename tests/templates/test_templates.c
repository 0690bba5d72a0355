// SPDX-License-Identifier: MIT
// Matches of templates against direct sums in long double: random lengths, delays, weights, chunks
// and threads, signals with offsets, silent and constant runs and gaps.
#include "support/test.h"

#include <math.h>
#include <stdio.h>

#include "support/allocators.h"

enum { MAX_TEMPLATES = 6, MAX_CHANNELS = 4, MAX_LENGTH = 80, MAX_DELAY = 60, MAX_SAMPLES = 12000 };
enum { TRANSFORM = 4096, MAX_MATCHES = 200000 }; // samples of a transform for such templates

struct world {
    struct partita_match_options options;
    size_t n, lengths[MAX_TEMPLATES], delays[MAX_TEMPLATES * MAX_CHANNELS];
    double weights[MAX_TEMPLATES * MAX_CHANNELS];
    float *x[MAX_CHANNELS], *samples[MAX_TEMPLATES];
    struct partita_match *found;
    size_t n_found;
    struct log_lines lines;
};

static void take(void *context, const struct partita_match *match)
{
    struct world *w = context;
    assert_true(w->n_found < MAX_MATCHES);
    w->found[w->n_found++] = *match;
}

static float uniform(struct random *random)
{
    float x;
    random_samples(random, PARTITA_F32, &x, 1);
    return x;
}

// A signal with an offset, copies of the templates in it, runs of equal samples and gaps.
static void fill_signal(struct world *w, struct random *random)
{
    for (size_t c = 0; c < w->options.channels; c++) {
        const float offset = random_below(random, 2) ? 100 * uniform(random) : 0;
        for (size_t i = 0; i < w->n; i++) w->x[c][i] = uniform(random) + offset;
        for (size_t t = 0; t < w->options.templates; t++)
            for (int copy = 0; copy < 3; copy++) {
                const size_t at = random_below(random, w->n), m = w->lengths[t];
                for (size_t i = 0; i < m && at + i < w->n; i++)
                    w->x[c][at + i] += 2 * w->samples[t][c * m + i];
            }
        for (size_t run = random_below(random, 3); run-- > 0;) {
            const size_t at = random_below(random, w->n);
            const float level = random_below(random, 2) ? offset : 0;
            for (size_t i = at; i < w->n && i < at + 200; i++) w->x[c][i] = level;
        }
        for (size_t gap = random_below(random, 3); gap-- > 0;)
            w->x[c][random_below(random, w->n)] = random_below(random, 2) ? NAN : INFINITY;
    }
}

static struct world random_world(struct random *random)
{
    struct world w = {.n = 1 + random_below(random, random_below(random, 3) ? 3000 : MAX_SAMPLES)};
    w.options = (struct partita_match_options){
        .templates = 1 + random_below(random, MAX_TEMPLATES),
        .channels = 1 + random_below(random, MAX_CHANNELS),
        .zero_mean = random_below(random, 2),
        .threshold = random_below(random, 2) ? 0.02 + 0.3 * fabs((double)uniform(random)) : 0,
        .distance = random_below(random, 3)
                        ? 1 + random_below(random, random_below(random, 9) ? 100 : 20000)
                        : 0,
        .chunk = random_below(random, 2) ? 1 + random_below(random, w.n) : 0,
        .threads = (int)random_below(random, 4),
        .report = take};
    if (w.options.threshold == 0 || random_below(random, 3) == 0)
        w.options.mad = 1 + 3 * fabs((double)uniform(random));
    for (size_t t = 0; t < MAX_TEMPLATES; t++) {
        w.lengths[t] = t && random_below(random, 2) ? w.lengths[t - 1]
                                                    : 2 + random_below(random, MAX_LENGTH - 1);
        w.samples[t] = malloc(MAX_CHANNELS * MAX_LENGTH * sizeof(float));
        random_samples(random, PARTITA_F32, w.samples[t], MAX_CHANNELS * MAX_LENGTH);
    }
    for (size_t i = 0; i < MAX_TEMPLATES * MAX_CHANNELS; i++) {
        w.delays[i] = random_below(random, MAX_DELAY + 1);
        w.weights[i] = i % w.options.channels && random_below(random, 3) == 0
                           ? 0
                           : (double)uniform(random) + (i % 2 ? 1.1 : -1.1);
    }
    for (size_t c = 0; c < MAX_CHANNELS; c++) w.x[c] = malloc(MAX_SAMPLES * sizeof(float));
    fill_signal(&w, random);
    w.found = malloc(MAX_MATCHES * sizeof *w.found);
    return w;
}

// Random pointers are set late: the world is returned by value.
static void search(struct world *w, bool delays, bool weights)
{
    w->options.samples = (const float *const *)w->samples;
    w->options.lengths = w->lengths;
    w->options.delays = delays ? w->delays : NULL;
    w->options.weights = weights ? w->weights : NULL;
    w->options.context = w;
    w->options.log = log_into(&w->lines);
    w->n_found = 0;
    if (partita_match_templates(&w->options, (const float *const *)w->x, w->n))
        fail_msg("%s", w->lines.text);
}

static void drop_world(struct world *w)
{
    for (size_t c = 0; c < MAX_CHANNELS; c++) free(w->x[c]);
    for (size_t t = 0; t < MAX_TEMPLATES; t++) free(w->samples[t]);
    free(w->found);
}

// Energy without the mean, if the templates have none; silent windows have exactly 0.
static long double energy_of(const float *x, size_t n, bool zero_mean)
{
    long double mean = 0, energy = 0;
    bool equal = true;
    for (size_t i = 0; i < n; i++) {
        mean += (long double)x[i] / (long double)n;
        equal = equal && x[i] == x[0];
    }
    if (!zero_mean) mean = 0;
    else if (equal) return 0;
    for (size_t i = 0; i < n; i++) energy += (x[i] - mean) * (x[i] - mean);
    return energy;
}

// The level of a channel as a transform sees it: at most that of all its samples.
static double level_of(const struct world *w, size_t c)
{
    double sum = 0, count = 0, energy = 0;
    for (size_t i = 0; i < w->n; i++)
        if (isfinite(w->x[c][i])) {
            sum += (double)w->x[c][i];
            count++;
        }
    const double mean = w->options.zero_mean && count > 0 ? sum / count : 0;
    for (size_t i = 0; i < w->n; i++)
        if (isfinite(w->x[c][i])) energy += pow((double)w->x[c][i] - mean, 2);
    return sqrt(energy);
}

// The value of a template at time t, NaN if there is none, and its tolerance. A transform spreads
// its error evenly over its outputs, so that of one output is at most the gate (gate_transform)
// times the norm of the samples, over that of the window. Four roundings follow: of the sum of
// squares, its root, its inverse, and the sum over channels.
static double direct(const struct world *w, size_t template, size_t t, const double *levels,
                     double *ret_tolerance)
{
    const size_t m = w->lengths[template], channels = w->options.channels;
    const double gate = gate_transform(PARTITA_F32, TRANSFORM), u = 0x1p-24;
    long double value = 0;
    *ret_tolerance = 0;
    for (size_t c = 0; c < channels; c++) {
        const size_t part = template * channels + c;
        const double weight = w->options.weights ? w->weights[part] : 1 / (double)channels;
        const size_t at = t + (w->options.delays ? w->delays[part] : 0);
        const float *h = w->samples[template] + c * m, *x = w->x[c] + at;
        long double sum = 0, mean[2] = {0};
        if (weight == 0) continue;
        if (at + m > w->n) return (double)NAN;
        for (size_t i = 0; i < m; i++) {
            if (!isfinite(x[i])) return (double)NAN;
            mean[0] += (long double)h[i] / (long double)m;
            mean[1] += (long double)x[i] / (long double)m;
        }
        const long double energy = energy_of(x, m, w->options.zero_mean),
                          norm = sqrtl(energy * energy_of(h, m, w->options.zero_mean));
        if (energy == 0) continue;
        for (size_t i = 0; i < m; i++)
            sum += w->options.zero_mean ? (h[i] - mean[0]) * (x[i] - mean[1])
                                        : (long double)h[i] * x[i];
        value += weight * sum / norm;
        *ret_tolerance += fabs(weight) * (gate * levels[c] / (double)sqrtl(energy) + 4 * u);
    }
    return (double)value;
}

static int compare_doubles(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

// The lower median of magnitudes above 0 of the values first .. end-1; infinity if there are none.
static double median(const double *values, size_t first, size_t end)
{
    double *all = malloc((end - first + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = first; i < end; i++)
        if (fabs(values[i]) > 0) all[n++] = fabs(values[i]);
    qsort(all, n, sizeof *all, compare_doubles);
    const double ret = n ? all[(n - 1) / 2] : (double)INFINITY;
    free(all);
    return ret;
}

// Which of the times of a template are a match beyond doubt (2), or may be one (1).
static void judge(const struct world *w, const double *values, const double *tolerances, char *ret)
{
    size_t longest = 0;
    for (size_t t = 0; t < w->options.templates; t++)
        longest = w->lengths[t] > longest ? w->lengths[t] : longest;
    const size_t distance = w->options.distance ? w->options.distance : longest,
                 hop = TRANSFORM - longest + 1, wanted = w->options.chunk ? w->options.chunk : w->n;
    const size_t parts = (w->n + wanted - 1) / wanted, even = (w->n + parts - 1) / parts,
                 chunk = (even + hop - 1) / hop * hop;
    double threshold = 0, slack = 0;
    for (size_t t = 0; t < w->n; t++) {
        const size_t first = t / chunk * chunk, end = first + chunk < w->n ? first + chunk : w->n;
        if (t == first) {
            threshold = w->options.threshold;
            slack = 0;
            for (size_t i = first; i < end; i++)
                if (!isnan(values[i])) slack = fmax(slack, w->options.mad * tolerances[i]);
            if (w->options.mad > 0)
                threshold = fmax(threshold, w->options.mad * median(values, first, end));
        }
        const double value = fabs(values[t]), doubt_here = tolerances[t];
        ret[t] = 0;
        if (!(value >= threshold - slack - doubt_here)) continue;
        ret[t] = value >= threshold + slack + doubt_here ? 2 : 1;
        const size_t low = t < distance - 1 ? 0 : t - distance + 1;
        for (size_t i = low; i < w->n && i < t + distance && ret[t]; i++) {
            if (i == t || isnan(values[i])) continue;
            const double margin = value - fabs(values[i]), doubt = doubt_here + tolerances[i];
            if (margin < -doubt) ret[t] = 0;
            else if (margin <= doubt) ret[t] = 1;
        }
    }
}

static void matches_are_right(void **state)
{
    size_t n_certain = 0, n_possible = 0;
    (void)state;
    for (size_t k = 0; k < 120; k++) {
        char name[32];
        snprintf(name, sizeof name, "matches %zu", k);
        struct random random = random_start(name);
        struct world w = random_world(&random);
        search(&w, k % 3, k % 4);
        double *values = malloc(w.n * sizeof *values), *tolerances = malloc(w.n * sizeof *values);
        double levels[MAX_CHANNELS];
        char *verdicts = malloc(w.n);
        for (size_t c = 0; c < w.options.channels; c++) levels[c] = level_of(&w, c);
        for (size_t t = 0; t < w.options.templates; t++) {
            for (size_t i = 0; i < w.n; i++) values[i] = direct(&w, t, i, levels, &tolerances[i]);
            judge(&w, values, tolerances, verdicts);
            size_t last = SIZE_MAX;
            for (size_t i = 0; i < w.n_found; i++) {
                const struct partita_match *match = &w.found[i];
                if (match->template_index != t) continue;
                assert_true(match->time < w.n && (last == SIZE_MAX || match->time > last));
                last = match->time;
                if (!verdicts[last] || !(fabs(match->value - values[last]) <= tolerances[last]))
                    fail_msg("%s: template %zu at %zu: value %g, expected %g +- %g, verdict %d",
                             name, t, last, match->value, values[last], tolerances[last],
                             verdicts[last]);
                n_possible += verdicts[last] == 1;
                n_certain += verdicts[last] == 2;
                verdicts[last] = 0;
            }
            for (size_t i = 0; i < w.n; i++)
                if (verdicts[i] == 2)
                    fail_msg("%s: template %zu of %zu samples at %zu of %zu: %g is missing", name,
                             t, w.lengths[t], i, w.n, values[i]);
        }
        free(values);
        free(tolerances);
        free(verdicts);
        drop_world(&w);
    }
    printf("# %zu matches, %zu in doubt\n", n_certain, n_possible);
    assert_true(n_certain > 5000 && n_possible < n_certain / 20);
}

static int compare_matches(const void *a_, const void *b_)
{
    const struct partita_match *a = a_, *b = b_;
    if (a->template_index != b->template_index)
        return a->template_index < b->template_index ? -1 : 1;
    return a->time < b->time ? -1 : a->time > b->time;
}

// With an absolute threshold chunks change nothing either.
static void bits_depend_on_no_chunk_and_no_thread(void **state)
{
    (void)state;
    for (size_t k = 0; k < 20; k++) {
        char name[32];
        snprintf(name, sizeof name, "bits %zu", k);
        struct random random = random_start(name);
        struct world w = random_world(&random);
        w.options.mad = 0;
        w.options.threshold = 0.1;
        w.options.threads = 1;
        w.options.chunk = 0;
        search(&w, true, false);
        qsort(w.found, w.n_found, sizeof *w.found, compare_matches);
        const size_t n = w.n_found;
        struct partita_match *alone = malloc((n + 1) * sizeof *alone);
        memcpy(alone, w.found, n * sizeof *alone);
        w.options.threads = 3;
        w.options.chunk = 1 + random_below(&random, 5000);
        search(&w, true, false);
        qsort(w.found, w.n_found, sizeof *w.found, compare_matches);
        assert_int_equal(w.n_found, n);
        assert_memory_equal(alone, w.found, n * sizeof *alone);
        free(alone);
        drop_world(&w);
    }
}

// One template of 50 samples in 3000 with the given signal; returns the value of the first match.
static double only_match(float *x, const float *h, bool zero_mean, struct world *w)
{
    w->options = (struct partita_match_options){
        .templates = 1, .channels = 1, .threshold = 0.9, .zero_mean = zero_mean, .report = take};
    w->n = 3000;
    w->lengths[0] = 50;
    w->x[0] = x;
    memcpy(w->samples[0], h, 50 * sizeof *h);
    search(w, false, false);
    return w->n_found == 1 ? w->found[0].value : (double)w->n_found + 10;
}

// A quiet copy of a template behind samples that are louder by 2^16 is found; one that is quieter
// by 2^24 than its transform is not, nor is what rounding errors leave of anything else.
static void quiet_windows(void **state)
{
    (void)state;
    struct random random = random_start("quiet");
    static float x[3000], h[50], match[MAX_LENGTH * MAX_CHANNELS];
    struct world w = {.samples = {match}, .found = malloc(MAX_MATCHES * sizeof *w.found)};
    random_samples(&random, PARTITA_F32, h, 50);
    for (int exponent = 10; exponent <= 24; exponent += 14)
        for (int zero_mean = 0; zero_mean < 2; zero_mean++) {
            random_samples(&random, PARTITA_F32, x, 1000);
            for (int i = 0; i < 1000; i++) x[i] = ldexpf(x[i], exponent);
            random_samples(&random, PARTITA_F32, x + 1000, 2000);
            memcpy(x + 2000, h, sizeof h);
            const double value = only_match(x, h, zero_mean, &w);
            if (exponent == 10) {
                assert_true(fabs(value - 1) < 0.01);
                assert_int_equal(w.found[0].time, 2000);
            } else assert_true(w.n_found == 0);
        }
    // Units do not matter, nor does an offset without the mean.
    random_samples(&random, PARTITA_F32, x, 3000);
    memcpy(x + 2000, h, sizeof h);
    const double value = only_match(x, h, true, &w);
    assert_true(fabs(value - 1) < 1e-5);
    for (int i = 0; i < 3000; i++) x[i] = x[i] * 0x1p-40F;
    assert_true(only_match(x, h, true, &w) == value);
    for (int i = 0; i < 3000; i++) x[i] = x[i] * 0x1p40F + 4096;
    assert_true(fabs(only_match(x, h, true, &w) - 1) < 1e-5);
    free(w.found);
}

static void out_of_memory(void **state)
{
    (void)state;
    struct random random = random_start("memory");
    struct world w = random_world(&random);
    struct meter meter = {0};
    w.options.allocator = meter_allocator(&meter);
    search(&w, true, true);
    const size_t n = meter.n_allocated;
    assert_true(n > 0 && meter.n_live == 0);
    for (size_t k = 1; k <= n; k++) {
        meter.fail_at = meter.n_allocated + k;
        assert_int_equal(partita_match_templates(&w.options, (const float *const *)w.x, w.n),
                         PARTITA_ERR_NOMEM);
        assert_int_equal(meter.n_live, 0);
    }
    drop_world(&w);
}

static void expect_refusal(struct world *w, const struct partita_match_options *wrong,
                           const char *says)
{
    struct partita_match_options options = *wrong;
    w->lines = (struct log_lines){0};
    options.log = log_into(&w->lines);
    assert_int_equal(partita_match_templates(&options, (const float *const *)w->x, w->n),
                     PARTITA_ERR_ARG);
    assert_int_equal(w->lines.n_lines, 1);
    if (!strstr(w->lines.text, says)) fail_msg("%s: not %s", w->lines.text, says);
}

// A field out of range is named, and no other one.
static void wrong_fields_are_named(void **state)
{
    (void)state;
    struct random random = random_start("wrong fields");
    struct world w = random_world(&random);
    search(&w, true, true); // completes the options
    struct partita_match_options wrong = w.options;
    wrong.channels = (1 << 16) + 1;
    expect_refusal(&w, &wrong, "channels = 65537: at most 65536");
    wrong = w.options, wrong.distance = (1 << 24) + 1;
    expect_refusal(&w, &wrong, "distance = 16777217: at most 16777216");
    wrong = w.options, wrong.threads = -1;
    expect_refusal(&w, &wrong, "threads = -1: 0 or more");
    wrong = w.options, wrong.threshold = wrong.mad = 0;
    expect_refusal(&w, &wrong, "threshold = 0, mad = 0: at least one above 0");
    wrong = w.options, wrong.mad = (double)NAN;
    expect_refusal(&w, &wrong, "mad = nan");
    wrong = w.options, wrong.report = NULL;
    expect_refusal(&w, &wrong, "report is NULL");
    struct meter meter = {0};
    wrong = w.options, wrong.allocator = meter_allocator(&meter), wrong.allocator.release = NULL;
    expect_refusal(&w, &wrong, "allocator: set both functions or none");
    drop_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_are_right),
        cmocka_unit_test(bits_depend_on_no_chunk_and_no_thread),
        cmocka_unit_test(quiet_windows),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(wrong_fields_are_named),
    };
    return run_all(tests);
}
