// SPDX-License-Identifier: MIT
// The transforms alone: forward and inverse by every provider in this build, FFTW with estimated
// and with measured plans. White-box: it links the library's private symbols. An item is a sample,
// transformed in both directions.
#include <math.h>
#include <stdlib.h>

#include "fft/fft.h"
#include "kernels/kernels.h"
#include "ours/ours.h"

static const struct partita_allocator default_allocator;

struct transform {
    struct fft *fft;
    char *spectrum, *result, *scratch;
};

// A filter of the single tap 1: the result must be the input.
static void set_unit_tap(struct workload *w)
{
    if (type_is_f64(w->taps)) *(double *)w->h = 1;
    else *(float *)w->h = 1;
    if (type_is_complex(w->taps)) *(float *)(w->h + sizeof(float)) = 0;
}

static void transform_close(void *state)
{
    struct transform *t = state;
    fft_destroy(t->fft);
    free(t->spectrum);
    free(t->result);
    free(t->scratch);
    free(t);
}

static double transform_pass(void *state, const struct workload *w, double *calls)
{
    struct transform *t = state;
    const double start = bench_now();
    fft_forward(t->fft, t->spectrum, w->x, t->scratch);
    fft_inverse(t->fft, t->result, t->spectrum, t->scratch);
    const double seconds = bench_now() - start;
    if (calls) calls[0] = seconds;
    return seconds;
}

static bool transform_fetch(void *state, struct workload *w)
{
    const struct transform *t = state;
    const size_t reals = w->n_frames * (type_is_complex(w->signal) ? 2 : 1);
    kernels_select(CPU_C, type_is_f64(w->signal))->scale(w->y, t->result, 1 / t->fft->gain, reals);
    return true;
}

static bool transform_open(struct contender *contender, const struct workload *w,
                           const char *provider, bool measure)
{
    const struct fft_request request = {.n = w->n_frames,
                                        .f64 = type_is_f64(w->signal),
                                        .complex = type_is_complex(w->signal),
                                        .measure = measure,
                                        .isa = cpu_detect(),
                                        .provider = provider};
    struct transform *t = bench_allocate(sizeof *t);
    *t = (struct transform){0};
    if (fft_create(&request, &default_allocator, &t->fft) != PARTITA_OK) {
        free(t);
        return false;
    }
    t->spectrum = aligned_alloc(MEM_ALIGN, t->fft->spectrum_bytes);
    t->result = aligned_alloc(MEM_ALIGN, mem_round(w->n_frames * partita_type_size(w->signal)));
    t->scratch = aligned_alloc(MEM_ALIGN, mem_round(t->fft->scratch_bytes + 1));
    contender->state = t;
    contender->pass = transform_pass;
    contender->fetch = transform_fetch;
    contender->close = transform_close;
    contender->gate = gate_transform(w);
    return true;
}

static bool open_native(struct contender *contender, const struct workload *w)
{
    return transform_open(contender, w, "native", false);
}

static bool open_fftw_estimate(struct contender *contender, const struct workload *w)
{
    return transform_open(contender, w, "fftw", false);
}

static bool open_fftw_measure(struct contender *contender, const struct workload *w)
{
    return transform_open(contender, w, "fftw", true);
}

#define FFT(name_, type_, n_)                                                                      \
    {                                                                                              \
        .name = name_, .signal = PARTITA_##type_, .taps = PARTITA_##type_, .n_taps = 1,            \
        .n_frames = n_, .shape = set_unit_tap                                                      \
    }

static const struct workload cases[] = {
    FFT("fft-f32-n1024", F32, 1 << 10),   FFT("fft-f32-n4096", F32, 1 << 12),
    FFT("fft-f32-n16384", F32, 1 << 14),  FFT("fft-f32-n65536", F32, 1 << 16),
    FFT("fft-f32-n262144", F32, 1 << 18), FFT("fft-f32-n1048576", F32, 1 << 20),
    FFT("fft-cf32-n4096", CF32, 1 << 12), FFT("fft-cf32-n65536", CF32, 1 << 16),
    FFT("fft-f64-n4096", F64, 1 << 12),   FFT("fft-f64-n65536", F64, 1 << 16),
};

static const struct contender contenders[] = {
    {.name = "native", .threads = 1, .open = open_native},
    {.name = "fftw-estimate", .threads = 1, .open = open_fftw_estimate},
    {.name = "fftw-measure", .threads = 1, .open = open_fftw_measure},
};

int main(int argc, char **argv)
{
    static const struct suite suite = {
        .program = "bench_fft",
        .cases = cases,
        .n_cases = sizeof cases / sizeof *cases,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .prepare = ours_calibrate,
        .repetitions = 31,
        .thread_counts = {1, 0},
    };
    return bench_main(argc, argv, &suite);
}
