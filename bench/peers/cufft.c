// SPDX-License-Identifier: MIT
// Convolution with cuFFT on arrays in the device's memory. Causal sequences are padded to twice
// their length: cufft-complex has complex transforms of sequences and filters in each call, the
// baseline in comparisons of fast convolution; cufft-real has real transforms of the sequences only
// and computes the filters' beforehand. cufft-blocks filters a complex signal with several filters
// by overlap-save.
#include <cufft.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/kernels.h"
#include "gpu/resident.h"
#include "peers/peers.h"
#include "workloads/layer.h"

enum { BLOCK_POINTS = 8192 }; // the fastest with cuFFT: K. Adamek et al. (2020)

struct cufft {
    const struct resident *arrays;
    cufftHandle forward, backward, filters; // `filters` makes one transform a filter
    struct rows sequences, taps;
    struct windows windows;
    void *spectra, *filter_spectra, *products;
};

static bool cufft_plan(cufftHandle *ret, cufftType type, size_t points, size_t batch)
{
    long long n = (long long)points, real = n + 2, half = n / 2 + 1;
    long long in = type == CUFFT_R2C ? real : type == CUFFT_C2R ? half : n;
    long long out = type == CUFFT_R2C ? half : type == CUFFT_C2R ? real : n;
    size_t bytes;
    return cufftCreate(ret) == CUFFT_SUCCESS &&
           cufftMakePlanMany64(*ret, 1, &n, &in, 1, in, &out, 1, out, type, (long long)batch,
                               &bytes) == CUFFT_SUCCESS &&
           cufftSetStream(*ret, cudaStreamPerThread) == CUFFT_SUCCESS;
}

static void cufft_close(void *state)
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

static bool cufft_transform(cufftHandle handle, void *spectra, int direction)
{
    return cufftExecC2C(handle, spectra, spectra, direction) == CUFFT_SUCCESS;
}

// Waits for all queued work. Returns the seconds since `start`, NAN if anything failed.
static double cufft_finish(double start, bool ok)
{
    ok &= cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess;
    return ok ? bench_now() - start : NAN;
}

static double cufft_complex_pass(void *state, const struct workload *w, double *calls)
{
    struct cufft *c = state;
    const struct resident *a = c->arrays;
    (void)w;
    (void)calls;
    const double start = bench_now();
    return cufft_finish(start, pad_to_complex(c->filter_spectra, a->h, c->taps, true) &&
                                   pad_to_complex(c->spectra, a->x, c->sequences, false) &&
                                   cufft_transform(c->filters, c->filter_spectra, CUFFT_FORWARD) &&
                                   cufft_transform(c->forward, c->spectra, CUFFT_FORWARD) &&
                                   multiply_rows(c->spectra, c->filter_spectra, c->sequences.count,
                                                 c->sequences.padded, c->taps.count,
                                                 c->sequences.padded) &&
                                   cufft_transform(c->forward, c->spectra, CUFFT_INVERSE) &&
                                   crop_complex(a->y, c->spectra, c->sequences));
}

static double cufft_real_pass(void *state, const struct workload *w, double *calls)
{
    struct cufft *c = state;
    const struct resident *a = c->arrays;
    const size_t points = c->sequences.padded;
    (void)w;
    (void)calls;
    const double start = bench_now();
    return cufft_finish(start,
                        pad_to_real(c->spectra, a->x, c->sequences, false) &&
                            cufftExecR2C(c->forward, c->spectra, c->spectra) == CUFFT_SUCCESS &&
                            multiply_rows(c->spectra, c->filter_spectra, c->sequences.count,
                                          points / 2 + 1, c->taps.count, points) &&
                            cufftExecC2R(c->backward, c->spectra, c->spectra) == CUFFT_SUCCESS &&
                            crop_real(a->y, c->spectra, c->sequences));
}

static double cufft_blocks_pass(void *state, const struct workload *w, double *calls)
{
    struct cufft *c = state;
    const struct resident *a = c->arrays;
    (void)w;
    (void)calls;
    const double start = bench_now();
    return cufft_finish(
        start, gather_windows(c->spectra, a->x, c->windows) &&
                   cufft_transform(c->forward, c->spectra, CUFFT_FORWARD) &&
                   multiply_windows(c->products, c->spectra, c->filter_spectra, c->windows) &&
                   cufft_transform(c->backward, c->products, CUFFT_INVERSE) &&
                   scatter_windows(a->y, c->products, c->windows));
}

static bool cufft_open(struct contender *contender, const struct workload *w, struct cufft *c,
                       bool ready, pass_fn *pass)
{
    if (!ready || cudaStreamSynchronize(cudaStreamPerThread) != cudaSuccess) {
        snprintf(contender->reason, sizeof contender->reason,
                 "no memory on the device, or cuFFT failed");
        cudaGetLastError();
        cufft_close(c);
        return false;
    }
    contender->state = c;
    contender->pass = pass;
    contender->fetch = resident_fetch;
    contender->fetches_samples = true;
    contender->close = cufft_close;
    contender->gate = gate_peer(w);
    return true;
}

static bool cufft_allocate(void **memory, size_t bytes)
{
    return cudaMalloc(memory, bytes) == cudaSuccess;
}

// Whether a workload is a forward pass over causal sequences.
static bool cufft_sequences(const struct workload *w, struct rows *ret_sequences,
                            struct rows *ret_taps)
{
    if (w->layer == NULL || w->layer->direction != PARTITA_FORWARD || w->layer->problem.rank != 1)
        return false;
    const struct partita_problem p = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&p);
    if (p.groups != s.in || s.in != s.out || s.taps != s.plane || s.outputs != s.plane)
        return false;
    *ret_sequences = (struct rows){s.batch * s.in, s.plane, 2 * s.plane};
    *ret_taps = (struct rows){s.in, s.plane, 2 * s.plane};
    return true;
}

bool peer_cufft_complex(struct contender *contender, const struct workload *w)
{
    struct cufft *c = bench_allocate(sizeof *c);
    if (!cufft_sequences(w, &c->sequences, &c->taps)) {
        free(c);
        return false;
    }
    const size_t row = c->sequences.padded * sizeof(struct bin);
    const bool ready =
        (c->arrays = resident_open(w)) != NULL &&
        cufft_allocate(&c->spectra, c->sequences.count * row) &&
        cufft_allocate(&c->filter_spectra, c->taps.count * row) &&
        cufft_plan(&c->forward, CUFFT_C2C, c->sequences.padded, c->sequences.count) &&
        cufft_plan(&c->filters, CUFFT_C2C, c->taps.padded, c->taps.count);
    return cufft_open(contender, w, c, ready, cufft_complex_pass);
}

bool peer_cufft_real(struct contender *contender, const struct workload *w)
{
    struct cufft *c = bench_allocate(sizeof *c);
    if (!cufft_sequences(w, &c->sequences, &c->taps)) {
        free(c);
        return false;
    }
    const size_t row = (c->sequences.padded / 2 + 1) * sizeof(struct bin);
    bool ready = (c->arrays = resident_open(w)) != NULL &&
                 cufft_allocate(&c->spectra, c->sequences.count * row) &&
                 cufft_allocate(&c->filter_spectra, c->taps.count * row) &&
                 cufft_plan(&c->forward, CUFFT_R2C, c->sequences.padded, c->sequences.count) &&
                 cufft_plan(&c->backward, CUFFT_C2R, c->sequences.padded, c->sequences.count) &&
                 cufft_plan(&c->filters, CUFFT_R2C, c->taps.padded, c->taps.count);
    ready = ready && pad_to_real(c->filter_spectra, c->arrays->h, c->taps, true) &&
            cufftExecR2C(c->filters, c->filter_spectra, c->filter_spectra) == CUFFT_SUCCESS;
    return cufft_open(contender, w, c, ready, cufft_real_pass);
}

bool peer_cufft_blocks(struct contender *contender, const struct workload *w)
{
    if (w->layer != NULL || w->signal != PARTITA_CF32 || w->in_channels != 1 ||
        w->n_taps > BLOCK_POINTS / 2)
        return false;
    struct cufft *c = bench_allocate(sizeof *c);
    const size_t hop = BLOCK_POINTS - (w->n_taps - 1), count = (w->n_out + hop - 1) / hop;
    c->windows = (struct windows){w->n_frames, w->n_out, BLOCK_POINTS, hop, count, w->out_channels};
    const size_t row = BLOCK_POINTS * sizeof(struct bin);
    bool ready = (c->arrays = resident_open(w)) != NULL &&
                 cufft_allocate(&c->spectra, count * row) &&
                 cufft_allocate(&c->products, w->out_channels * count * row) &&
                 cufft_allocate(&c->filter_spectra, w->out_channels * row) &&
                 cufft_plan(&c->forward, CUFFT_C2C, BLOCK_POINTS, count) &&
                 cufft_plan(&c->backward, CUFFT_C2C, BLOCK_POINTS, w->out_channels * count) &&
                 cufft_plan(&c->filters, CUFFT_C2C, BLOCK_POINTS, w->out_channels);
    const struct rows taps = {w->out_channels, w->n_taps, BLOCK_POINTS};
    ready = ready && pad_complex(c->filter_spectra, c->arrays->h, taps) &&
            cufft_transform(c->filters, c->filter_spectra, CUFFT_FORWARD);
    return cufft_open(contender, w, c, ready, cufft_blocks_pass);
}
