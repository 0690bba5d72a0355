// SPDX-License-Identifier: MIT
// liquid-dsp as a second reference: firfilt, fftfilt and firdecim of each type with random lengths
// against streams. Both compute in f32, so that the limit is the sum of both gates. liquid's
// algorithm is a direct sum (firfilt, firdecim) or a transform of twice the block (fftfilt).

#include "support/rig.h"

#include <liquid/liquid.h>
#include <math.h>
#include <stdio.h>

enum { ROUNDS = 25 };

struct peer {
    const char *name;
    enum partita_type signal, taps;
    // y = liquid's output for all of x; block is the transform block or the decimation.
    void (*run)(void *y, const void *x, size_t n, const void *h, size_t m, size_t block);
    bool transform, decimate;
};

// liquid's objects have no common type: one macro for each family, used once for each type.
#define FILTER(kind, sample, tap)                                                                  \
    static void firfilt_##kind##_all(void *y, const void *x, size_t n, const void *h, size_t m,    \
                                     size_t block)                                                 \
    {                                                                                              \
        (void)block;                                                                               \
        firfilt_##kind q = firfilt_##kind##_create((tap *)(uintptr_t)h, (unsigned)m);              \
        firfilt_##kind##_execute_block(q, (sample *)(uintptr_t)x, (unsigned)n, (sample *)y);       \
        firfilt_##kind##_destroy(q);                                                               \
    }                                                                                              \
    static void fftfilt_##kind##_all(void *y, const void *x, size_t n, const void *h, size_t m,    \
                                     size_t block)                                                 \
    {                                                                                              \
        fftfilt_##kind q =                                                                         \
            fftfilt_##kind##_create((tap *)(uintptr_t)h, (unsigned)m, (unsigned)block);            \
        for (size_t i = 0; i + block <= n; i += block) {                                           \
            fftfilt_##kind##_execute(q, (sample *)(uintptr_t)x + i, (sample *)y + i);              \
        }                                                                                          \
        fftfilt_##kind##_destroy(q);                                                               \
    }                                                                                              \
    static void firdecim_##kind##_all(void *y, const void *x, size_t n, const void *h, size_t m,   \
                                      size_t block)                                                \
    {                                                                                              \
        firdecim_##kind q =                                                                        \
            firdecim_##kind##_create((unsigned)block, (tap *)(uintptr_t)h, (unsigned)m);           \
        for (size_t i = 0; i < n / block; i++) {                                                   \
            firdecim_##kind##_execute(q, (sample *)(uintptr_t)x + i * block, (sample *)y + i);     \
        }                                                                                          \
        firdecim_##kind##_destroy(q);                                                              \
    }

FILTER(rrrf, float, float)
FILTER(crcf, float complex, float)
FILTER(cccf, float complex, float complex)

static const struct peer peers[] = {
    {"firfilt_rrrf", PARTITA_F32, PARTITA_F32, firfilt_rrrf_all, false, false},
    {"firfilt_crcf", PARTITA_CF32, PARTITA_F32, firfilt_crcf_all, false, false},
    {"firfilt_cccf", PARTITA_CF32, PARTITA_CF32, firfilt_cccf_all, false, false},
    {"fftfilt_rrrf", PARTITA_F32, PARTITA_F32, fftfilt_rrrf_all, true, false},
    {"fftfilt_crcf", PARTITA_CF32, PARTITA_F32, fftfilt_crcf_all, true, false},
    {"fftfilt_cccf", PARTITA_CF32, PARTITA_CF32, fftfilt_cccf_all, true, false},
    {"firdecim_rrrf", PARTITA_F32, PARTITA_F32, firdecim_rrrf_all, false, true},
    {"firdecim_crcf", PARTITA_CF32, PARTITA_F32, firdecim_crcf_all, false, true},
    {"firdecim_cccf", PARTITA_CF32, PARTITA_CF32, firdecim_cccf_all, false, true},
};
enum { N_PEERS = sizeof peers / sizeof *peers };

struct peer_case {
    const char *engine;
    const struct peer *peer;
};

// Feeds all of x to a stream; y has n_y outputs without the latency.
static void stream_all(const struct partita_problem *problem, const char *engine, void *y,
                       size_t n_y, const void *x, size_t n, const void *h, double *ret_gate)
{
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    assert_ok(partita_plan_create(problem, &(struct partita_options){.engine = engine}, &plan));
    assert_ok(partita_filter_create(plan, h, &filter));
    assert_ok(partita_stream_open(plan, filter, &stream));
    size_t bytes = partita_type_size(problem->signal), late = partita_stream_latency(stream);
    size_t before = partita_stream_output_frames(stream, n);
    char *all = malloc((before + late + 1) * bytes);
    partita_stream_process(stream, &(void *){all}, &(const void *){x}, n);
    partita_stream_process(stream, &(void *){all + before * bytes}, NULL, late);
    memcpy(y, all + late / problem->stride[0] * bytes, n_y * bytes);
    *ret_gate = plan_gate(plan, problem, n_y);
    free(all);
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

static void one_round(const struct peer_case *c, struct random *random)
{
    const struct peer *peer = c->peer;
    size_t m = 1 + random_below(random, random_below(random, 4) ? 64 : 600);
    size_t block = peer->transform ? m + random_below(random, 200) : 2 + random_below(random, 9);
    size_t n = 1000 + random_below(random, 3000), bytes = partita_type_size(peer->signal);
    if (peer->transform || peer->decimate) n -= n % block;
    size_t n_y = peer->decimate ? n / block : n;
    void *x = malloc(n * bytes), *h = malloc(m * partita_type_size(peer->taps)),
         *y = malloc(n * bytes), *theirs = malloc(n * bytes);
    random_samples(random, peer->signal, x, n);
    random_samples(random, peer->taps, h, m);
    struct partita_problem problem = {LENGTH(PARTITA_UNBOUNDED), TYPE_PAIR(peer), KERNEL(m),
                                      LATENCY(PARTITA_UNBOUNDED),
                                      STRIDE(peer->decimate ? block : 1)};
    double gate;
    stream_all(&problem, c->engine, y, n_y, x, n, h, &gate);
    peer->run(theirs, x, n, h, m, block);
    double complex *expected = malloc(n_y * sizeof *expected);
    for (size_t i = 0; i < n_y; i++) expected[i] = reference_sample(peer->signal, theirs, i);
    double limit = gate + (peer->transform ? gate_transform(peer->signal, 2 * block)
                                           : gate_direct(peer->signal, m));
    double error = error_against(peer->signal, y, expected, n_y, typical_output(&problem));
    if (!(error <= limit))
        fail_msg("%zu taps, block %zu: error %.3g above %.3g", m, block, error, limit);
    free(expected);
    free(theirs);
    free(y);
    free(h);
    free(x);
}

static void agrees(void **state)
{
    const struct peer_case *c = *state;
    struct random random = random_start(c->peer->name);
    for (int i = 0; i < ROUNDS; i++) one_round(c, &random);
}

int main(void)
{
    static struct peer_case cases[N_STREAM_ENGINES][N_PEERS];
    struct CMUnitTest tests[N_STREAM_ENGINES * N_PEERS];
    size_t n = 0;
    for (size_t e = 0; e < N_STREAM_ENGINES; e++) {
        for (size_t p = 0; p < N_PEERS; p++) {
            cases[e][p] = (struct peer_case){engine_names[e], &peers[p]};
            tests[n++] = named_test(agrees, &cases[e][p], "%s/%s", engine_names[e], peers[p].name);
        }
    }
    return run_test_list(tests, n);
}
