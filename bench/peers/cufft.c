// SPDX-License-Identifier: MIT
// Convolution as it is written with cuFFT, on arrays in the device's memory: of causal lines, all padded to twice their
// length, with complex transforms of lines and filters in each call, as comparisons of fast convolution take it for
// their baseline, and with real ones of the lines alone, the filters' being kept; of a complex signal with several
// filters, in blocks.
#include <cufft.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../layer.h"
#include "../resident.h"
#include "gpu_kernels.h"

enum { BLOCK_POINTS = 8192 }; // which runs fastest with cuFFT: K. Adamek et al. (2020)

struct cufft {
    const struct resident *arrays;
    cufftHandle forward, backward, filters; // `filters` of as many transforms as there are filters
    struct line lines, taps;
    struct windows windows;
    void *spectra, *filter_spectra, *products;
};

static bool plan(cufftHandle *ret, cufftType type, size_t points, size_t batch)
{
    long long n = (long long)points, real = n + 2, half = n / 2 + 1;
    long long in = type == CUFFT_R2C ? real : type == CUFFT_C2R ? half : n;
    long long out = type == CUFFT_R2C ? half : type == CUFFT_C2R ? real : n;
    size_t bytes;
    return cufftCreate(ret) == CUFFT_SUCCESS &&
           cufftMakePlanMany64(*ret, 1, &n, &in, 1, in, &out, 1, out, type, (long long)batch, &bytes) == CUFFT_SUCCESS;
}

static void close_cufft(void *state)
{
    struct cufft *c = state;
    if (c->forward) cufftDestroy(c->forward);
    if (c->backward) cufftDestroy(c->backward);
    if (c->filters) cufftDestroy(c->filters);
    cudaFree(c->spectra);
    cudaFree(c->filter_spectra);
    cudaFree(c->products);
    if (c->arrays) resident_close();
    free(c);
}

// Waits for all that was queued; seconds since `start`, NAN if anything failed.
static double finish(double start, bool fine)
{
    fine &= cudaDeviceSynchronize() == cudaSuccess && cudaGetLastError() == cudaSuccess;
    return fine ? bench_now() - start : NAN;
}

static double complex_pass(void *state, const struct workload *w, double *calls)
{
    struct cufft *c = state;
    float2 *x = c->spectra, *h = c->filter_spectra;
    const size_t points = c->lines.padded;
    (void)w;
    (void)calls;
    const double start = bench_now();
    pad_to_complex(h, c->arrays->h, c->taps, true);
    pad_to_complex(x, c->arrays->x, c->lines, false);
    bool fine = cufftExecC2C(c->filters, h, h, CUFFT_FORWARD) == CUFFT_SUCCESS &&
                cufftExecC2C(c->forward, x, x, CUFFT_FORWARD) == CUFFT_SUCCESS;
    multiply_rows(x, h, c->lines.rows, points, c->taps.rows, 1 / (float)points);
    fine &= cufftExecC2C(c->forward, x, x, CUFFT_INVERSE) == CUFFT_SUCCESS;
    crop_complex(c->arrays->y, x, c->lines);
    return finish(start, fine);
}

static double real_pass(void *state, const struct workload *w, double *calls)
{
    struct cufft *c = state;
    const size_t points = c->lines.padded;
    (void)w;
    (void)calls;
    const double start = bench_now();
    pad_to_real(c->spectra, c->arrays->x, c->lines, false);
    bool fine = cufftExecR2C(c->forward, c->spectra, c->spectra) == CUFFT_SUCCESS;
    multiply_rows(c->spectra, c->filter_spectra, c->lines.rows, points / 2 + 1, c->taps.rows, 1 / (float)points);
    fine &= cufftExecC2R(c->backward, c->spectra, c->spectra) == CUFFT_SUCCESS;
    crop_real(c->arrays->y, c->spectra, c->lines);
    return finish(start, fine);
}

static double blocks_pass(void *state, const struct workload *w, double *calls)
{
    struct cufft *c = state;
    (void)w;
    (void)calls;
    const double start = bench_now();
    gather_windows(c->spectra, c->arrays->x, c->windows);
    bool fine = cufftExecC2C(c->forward, c->spectra, c->spectra, CUFFT_FORWARD) == CUFFT_SUCCESS;
    multiply_windows(c->products, c->spectra, c->filter_spectra, c->windows);
    fine &= cufftExecC2C(c->backward, c->products, c->products, CUFFT_INVERSE) == CUFFT_SUCCESS;
    scatter_windows(c->arrays->y, c->products, c->windows);
    return finish(start, fine);
}

static bool open_cufft(struct contender *contender, const struct workload *w, struct cufft *c, bool ready,
                       pass_fn *pass)
{
    if (!ready || cudaDeviceSynchronize() != cudaSuccess) {
        snprintf(contender->reason, sizeof contender->reason, "no memory on the device, or cuFFT failed");
        cudaGetLastError();
        close_cufft(c);
        return false;
    }
    contender->state = c;
    contender->pass = pass;
    contender->fetch = resident_fetch;
    contender->close = close_cufft;
    contender->gate = gate_peer(w);
    return true;
}

static bool allocate(void **memory, size_t bytes)
{
    return cudaMalloc(memory, bytes) == cudaSuccess;
}

// Whether a workload is one of causal lines, run forward.
static bool lines_of(const struct workload *w, struct line *ret_lines, struct line *ret_taps)
{
    if (w->layer == NULL || w->layer->direction != PARTITA_FORWARD || w->layer->problem.rank != 1) return false;
    const struct partita_problem p = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&p);
    if (p.groups != s.in || s.in != s.out || s.taps != s.plane || s.outputs != s.plane) return false;
    *ret_lines = (struct line){s.batch * s.in, s.plane, 2 * s.plane};
    *ret_taps = (struct line){s.in, s.plane, 2 * s.plane};
    return true;
}

bool peer_cufft_complex(struct contender *contender, const struct workload *w)
{
    struct cufft *c = bench_allocate(sizeof *c);
    if (!lines_of(w, &c->lines, &c->taps)) {
        free(c);
        return false;
    }
    const size_t row = c->lines.padded * sizeof(float2);
    const bool ready = (c->arrays = resident_open(w)) != NULL && allocate(&c->spectra, c->lines.rows * row) &&
                       allocate(&c->filter_spectra, c->taps.rows * row) &&
                       plan(&c->forward, CUFFT_C2C, c->lines.padded, c->lines.rows) &&
                       plan(&c->filters, CUFFT_C2C, c->taps.padded, c->taps.rows);
    return open_cufft(contender, w, c, ready, complex_pass);
}

bool peer_cufft_real(struct contender *contender, const struct workload *w)
{
    struct cufft *c = bench_allocate(sizeof *c);
    if (!lines_of(w, &c->lines, &c->taps)) {
        free(c);
        return false;
    }
    const size_t row = (c->lines.padded / 2 + 1) * sizeof(float2);
    bool ready = (c->arrays = resident_open(w)) != NULL && allocate(&c->spectra, c->lines.rows * row) &&
                 allocate(&c->filter_spectra, c->taps.rows * row) &&
                 plan(&c->forward, CUFFT_R2C, c->lines.padded, c->lines.rows) &&
                 plan(&c->backward, CUFFT_C2R, c->lines.padded, c->lines.rows) &&
                 plan(&c->filters, CUFFT_R2C, c->taps.padded, c->taps.rows);
    if (ready) {
        pad_to_real(c->filter_spectra, c->arrays->h, c->taps, true);
        ready = cufftExecR2C(c->filters, c->filter_spectra, c->filter_spectra) == CUFFT_SUCCESS;
    }
    return open_cufft(contender, w, c, ready, real_pass);
}

bool peer_cufft_blocks(struct contender *contender, const struct workload *w)
{
    if (w->layer != NULL || w->signal != PARTITA_CF32 || w->in_channels != 1 || w->n_taps > BLOCK_POINTS / 2)
        return false;
    struct cufft *c = bench_allocate(sizeof *c);
    const size_t hop = BLOCK_POINTS - (w->n_taps - 1), count = (w->n_out + hop - 1) / hop;
    c->windows = (struct windows){w->n_frames, w->n_out, BLOCK_POINTS, hop, count, w->out_channels};
    const size_t row = BLOCK_POINTS * sizeof(float2);
    bool ready = (c->arrays = resident_open(w)) != NULL && allocate(&c->spectra, count * row) &&
                 allocate(&c->products, w->out_channels * count * row) &&
                 allocate(&c->filter_spectra, w->out_channels * row) &&
                 plan(&c->forward, CUFFT_C2C, BLOCK_POINTS, count) &&
                 plan(&c->backward, CUFFT_C2C, BLOCK_POINTS, w->out_channels * count) &&
                 plan(&c->filters, CUFFT_C2C, BLOCK_POINTS, w->out_channels);
    const size_t bytes = w->n_taps * sizeof(float2);
    ready = ready && cudaMemset(c->filter_spectra, 0, w->out_channels * row) == cudaSuccess &&
            cudaMemcpy2D(c->filter_spectra, row, c->arrays->h, bytes, bytes, w->out_channels,
                         cudaMemcpyDeviceToDevice) == cudaSuccess &&
            cufftExecC2C(c->filters, c->filter_spectra, c->filter_spectra, CUFFT_FORWARD) == CUFFT_SUCCESS;
    return open_cufft(contender, w, c, ready, blocks_pass);
}
