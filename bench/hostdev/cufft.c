// SPDX-License-Identifier: MIT
#include "cufft.h"

#include <fftw3.h>
#include <stdbool.h>
#include <stdlib.h>

#include <internal.h>

enum { MOST_PLANS = 16 };

struct plan {
    bool used;
    int n, in_distance, out_distance, batch;
    cufftType type;
    cudaStream_t stream;
};
static struct plan plans[MOST_PLANS + 1];

// One queued run, a kernel of one thread.
struct run {
    struct plan plan;
    void *samples;
    int direction;
};

static void run_plan(void *call)
{
    const struct run *run = call;
    const struct plan *p = &run->plan;
    const int in = p->in_distance, out = p->out_distance;
    void *s = run->samples;
    fftwf_plan plan =
        p->type == CUFFT_R2C
            ? fftwf_plan_many_dft_r2c(1, &p->n, p->batch, s, NULL, 1, in, s, NULL, 1, out, FFTW_ESTIMATE)
        : p->type == CUFFT_C2R
            ? fftwf_plan_many_dft_c2r(1, &p->n, p->batch, s, NULL, 1, in, s, NULL, 1, out, FFTW_ESTIMATE)
            : fftwf_plan_many_dft(1, &p->n, p->batch, s, NULL, 1, in, s, NULL, 1, out, run->direction, FFTW_ESTIMATE);
    fftwf_execute(plan);
    fftwf_destroy_plan(plan);
}

static cufftResult queue_run(cufftHandle handle, void *from, void *to, cufftType type, int direction)
{
    const struct plan *plan = &plans[handle];
    struct run *run = malloc(sizeof *run);
    if (!run || from != to || !plan->used || plan->type != type) hostdev_break("a plan of cuFFT that does not fit");
    *run = (struct run){*plan, from, direction};
    const struct hostdev_kernel kernel = {{1, 1, 1}, {1, 1, 1}, 0, run_plan, free, run};
    return hostdev_launch(&kernel, plans, sizeof *run, plan->stream) == cudaSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

cufftResult cufftCreate(cufftHandle *handle)
{
    for (*handle = 1; *handle <= MOST_PLANS && plans[*handle].used; ++*handle) {
    }
    if (*handle > MOST_PLANS) return CUFFT_ALLOC_FAILED;
    plans[*handle] = (struct plan){.used = true};
    return CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long *n, long long *in_extent, long long in_stride,
                                long long in_distance, long long *out_extent, long long out_stride,
                                long long out_distance, cufftType type, long long batch, size_t *bytes)
{
    struct plan *plan = &plans[handle];
    if (rank != 1 || in_stride != 1 || out_stride != 1 || *in_extent > in_distance || *out_extent > out_distance)
        hostdev_break("rows of cuFFT that overlap");
    plan->n = (int)*n, plan->batch = (int)batch, plan->type = type;
    plan->in_distance = (int)in_distance, plan->out_distance = (int)out_distance;
    *bytes = 0;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
    plans[handle].stream = stream;
    return CUFFT_SUCCESS;
}

cufftResult cufftExecC2C(cufftHandle handle, void *from, void *to, int direction)
{
    return queue_run(handle, from, to, CUFFT_C2C, direction);
}

cufftResult cufftExecR2C(cufftHandle handle, void *from, void *to)
{
    return queue_run(handle, from, to, CUFFT_R2C, CUFFT_FORWARD);
}

cufftResult cufftExecC2R(cufftHandle handle, void *from, void *to)
{
    return queue_run(handle, from, to, CUFFT_C2R, CUFFT_INVERSE);
}

cufftResult cufftDestroy(cufftHandle handle)
{
    plans[handle].used = false;
    return CUFFT_SUCCESS;
}
