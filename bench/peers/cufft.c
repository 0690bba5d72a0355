// SPDX-License-Identifier: MIT
// Convolution as it is written with cuFFT, on arrays in the device's memory: of causal lines, all padded to twice their
// length, with complex transforms of lines and filters in each call, as comparisons of fast convolution take it for
// their baseline, and with real ones of the lines alone, the filters' being kept; of a complex signal with several
// filters, in blocks.
#include <cufft.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/layer.h"
#include "gpu/resident.h"
#include "peers/gpu_kernels.h"

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
           cufftMakePlanMany64(*ret, 1, &n, &in, 1, in, &out, 1, out, type, (long long)batch, &bytes) ==
               CUFFT_SUCCESS &&
           cufftSetStream(*ret, cudaStreamPerThread) == CUFFT_SUCCESS;
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

static bool transform(cufftHandle handle, void *spectra, int direction)
{
    return cufftExecC2C(handle, spectra, spectra, direction) == CUFFT_SUCCESS;
}

// Waits for all that was queued; seconds since `start`, NAN if anything failed.
static double finish(double start, bool fine)
{
    fine &= cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess;
    return fine ? bench_now() - start : NAN;
}

static double complex_pass(void *state, const struct workload *w, double *calls)
{
    struct cufft *c = state;
    const struct resident *a = c->arrays;
    (void)w;
    (void)calls;
    const double start = bench_now();
    return finish(start, pad_to_complex(c->filter_spectra, a->h, c->taps, true) &&
                             pad_to_complex(c->spectra, a->x, c->lines, false) &&
                             transform(c->filters, c->filter_spectra, CUFFT_FORWARD) &&
                             transform(c->forward, c->spectra, CUFFT_FORWARD) &&
                             multiply_rows(c->spectra, c->filter_spectra, c->lines.rows, c->lines.padded, c->taps.rows,
                                           c->lines.padded) &&
                             transform(c->forward, c->spectra, CUFFT_INVERSE) &&
                             crop_complex(a->y, c->spectra, c->lines));
}

static double real_pass(void *state, const struct workload *w, double *calls)
{
    struct cufft *c = state;
    const struct resident *a = c->arrays;
    const size_t points = c->lines.padded;
    (void)w;
    (void)calls;
    const double start = bench_now();
    return finish(
        start, pad_to_real(c->spectra, a->x, c->lines, false) &&
                   cufftExecR2C(c->forward, c->spectra, c->spectra) == CUFFT_SUCCESS &&
                   multiply_rows(c->spectra, c->filter_spectra, c->lines.rows, points / 2 + 1, c->taps.rows, points) &&
                   cufftExecC2R(c->backward, c->spectra, c->spectra) == CUFFT_SUCCESS &&
                   crop_real(a->y, c->spectra, c->lines));
}

static double blocks_pass(void *state, const struct workload *w, double *calls)
{
    struct cufft *c = state;
    const struct resident *a = c->arrays;
    (void)w;
    (void)calls;
    const double start = bench_now();
    return finish(start, gather_windows(c->spectra, a->x, c->windows) &&
                             transform(c->forward, c->spectra, CUFFT_FORWARD) &&
                             multiply_windows(c->products, c->spectra, c->filter_spectra, c->windows) &&
                             transform(c->backward, c->products, CUFFT_INVERSE) &&
                             scatter_windows(a->y, c->products, c->windows));
}

static bool open_cufft(struct contender *contender, const struct workload *w, struct cufft *c, bool ready,
                       pass_fn *pass)
{
    if (!ready || cudaStreamSynchronize(cudaStreamPerThread) != cudaSuccess) {
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
    const size_t row = c->lines.padded * sizeof(struct bin);
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
    const size_t row = (c->lines.padded / 2 + 1) * sizeof(struct bin);
    bool ready = (c->arrays = resident_open(w)) != NULL && allocate(&c->spectra, c->lines.rows * row) &&
                 allocate(&c->filter_spectra, c->taps.rows * row) &&
                 plan(&c->forward, CUFFT_R2C, c->lines.padded, c->lines.rows) &&
                 plan(&c->backward, CUFFT_C2R, c->lines.padded, c->lines.rows) &&
                 plan(&c->filters, CUFFT_R2C, c->taps.padded, c->taps.rows);
    ready = ready && pad_to_real(c->filter_spectra, c->arrays->h, c->taps, true) &&
            cufftExecR2C(c->filters, c->filter_spectra, c->filter_spectra) == CUFFT_SUCCESS;
    return open_cufft(contender, w, c, ready, real_pass);
}

bool peer_cufft_blocks(struct contender *contender, const struct workload *w)
{
    if (w->layer != NULL || w->signal != PARTITA_CF32 || w->in_channels != 1 || w->n_taps > BLOCK_POINTS / 2)
        return false;
    struct cufft *c = bench_allocate(sizeof *c);
    const size_t hop = BLOCK_POINTS - (w->n_taps - 1), count = (w->n_out + hop - 1) / hop;
    c->windows = (struct windows){w->n_frames, w->n_out, BLOCK_POINTS, hop, count, w->out_channels};
    const size_t row = BLOCK_POINTS * sizeof(struct bin);
    bool ready = (c->arrays = resident_open(w)) != NULL && allocate(&c->spectra, count * row) &&
                 allocate(&c->products, w->out_channels * count * row) &&
                 allocate(&c->filter_spectra, w->out_channels * row) &&
                 plan(&c->forward, CUFFT_C2C, BLOCK_POINTS, count) &&
                 plan(&c->backward, CUFFT_C2C, BLOCK_POINTS, w->out_channels * count) &&
                 plan(&c->filters, CUFFT_C2C, BLOCK_POINTS, w->out_channels);
    const struct line taps = {w->out_channels, w->n_taps, BLOCK_POINTS};
    ready = ready && pad_complex(c->filter_spectra, c->arrays->h, taps) &&
            transform(c->filters, c->filter_spectra, CUFFT_FORWARD);
    return open_cufft(contender, w, c, ready, blocks_pass);
}
