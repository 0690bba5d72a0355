// SPDX-License-Identifier: MIT
// A stand-in for cuFFT on FFTW, queued like kernels. A plan without automatic allocation requires a
// work area, as in cuFFT, and overwrites it.
#include <cufft.h>

#include <fftw3.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { MAX_PLANS = 64 };

struct plan {
    bool used, made, has_area; // has_area: automatic allocation
    int rank, extent[3], in_distance, out_distance, batch;
    cufftType type;
    void *area;
    cudaStream_t stream;
    int device;     // that was current when it was made
    bool loaded[2]; // its kernels: with its first transform in each direction
};

static int refusal;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // FFTW's planner is not thread-safe
static struct plan plans[MAX_PLANS + 1];

struct run {
    struct plan plan;
    void *samples;
    int direction;
};

static cufftResult result_of(cudaError_t error)
{
    return error == cudaSuccess                 ? CUFFT_SUCCESS
           : error == cudaErrorMemoryAllocation ? CUFFT_ALLOC_FAILED
                                                : CUFFT_EXEC_FAILED;
}

// Bytes of all rows, of input or output, whichever are longer.
static size_t rows_bytes(const struct plan *plan)
{
    const size_t sample = plan->type == CUFFT_Z2Z ? 16 : 8;
    const size_t in = (size_t)plan->in_distance * (plan->type == CUFFT_R2C ? 4 : sample);
    const size_t out = (size_t)plan->out_distance * (plan->type == CUFFT_C2R ? 4 : sample);
    return (in > out ? in : out) * (size_t)plan->batch;
}

static void run_double(const struct run *run)
{
    const struct plan *p = &run->plan;
    fftw_complex *s = run->samples;
    fftw_plan plan = fftw_plan_many_dft(p->rank, p->extent, p->batch, s, NULL, 1, p->in_distance, s,
                                        NULL, 1, p->out_distance, run->direction, FFTW_ESTIMATE);
    fftw_execute(plan);
    fftw_destroy_plan(plan);
}

static void run_single(const struct run *run)
{
    const struct plan *p = &run->plan;
    const int rank = p->rank, *n = p->extent, batch = p->batch, in = p->in_distance,
              out = p->out_distance;
    void *s = run->samples;
    fftwf_plan plan = p->type == CUFFT_R2C ? fftwf_plan_many_dft_r2c(rank, n, batch, s, NULL, 1, in,
                                                                     s, NULL, 1, out, FFTW_ESTIMATE)
                      : p->type == CUFFT_C2R
                          ? fftwf_plan_many_dft_c2r(rank, n, batch, s, NULL, 1, in, s, NULL, 1, out,
                                                    FFTW_ESTIMATE)
                          : fftwf_plan_many_dft(rank, n, batch, s, NULL, 1, in, s, NULL, 1, out,
                                                run->direction, FFTW_ESTIMATE);
    fftwf_execute(plan);
    fftwf_destroy_plan(plan);
}

static void run_plan(void *call)
{
    const struct run *run = call;
    const struct plan *plan = &run->plan;
    memory_check(run->samples, rows_bytes(plan));
    if (!plan->has_area) {
        memory_check(plan->area, rows_bytes(plan));
        memset(plan->area, 0xff, rows_bytes(plan));
    }
    pthread_mutex_lock(&lock);
    if (plan->type == CUFFT_Z2Z) run_double(run);
    else run_single(run);
    pthread_mutex_unlock(&lock);
}

static struct plan *plan_of(cufftHandle handle)
{
    if (handle < 1 || handle > MAX_PLANS || !plans[handle].used)
        hostdev_abort("a plan of cuFFT that does not exist");
    return &plans[handle];
}

static cufftResult queue_run(cufftHandle handle, void *from, void *to, cufftType type,
                             int direction)
{
    struct plan *plan = plan_of(handle);
    if (!plan->made || plan->type != type || from != to || !(plan->area || plan->has_area))
        hostdev_abort("a plan of cuFFT that is not ready for this call");
    if (plan->device != device_current()) hostdev_abort("a plan of cuFFT of another device");
    bool *loaded = &plan->loaded[direction == CUFFT_INVERSE];
    if (!*loaded && hostdev_recording(plan->stream))
        hostdev_abort("a plan of cuFFT is loaded while its stream is recorded");
    *loaded = true;
    struct run *run = malloc(sizeof *run);
    if (!run) hostdev_abort("out of memory");
    *run = (struct run){*plan, from, direction};
    return result_of(hostdev_queue(plan->stream, run_plan, free, run));
}

void hostdev_cufft_refuse(int result)
{
    refusal = result;
}

cufftResult cufftCreate(cufftHandle *handle)
{
    const cufftResult result = result_of(hostdev_count());
    if (result != CUFFT_SUCCESS) return result;
    pthread_mutex_lock(&lock);
    for (*handle = 1; *handle <= MAX_PLANS && plans[*handle].used; ++*handle) {
    }
    if (*handle > MAX_PLANS) hostdev_abort("too many plans of cuFFT");
    plans[*handle] = (struct plan){.used = true, .has_area = true};
    pthread_mutex_unlock(&lock);
    return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int wanted)
{
    const cufftResult result = result_of(hostdev_count());
    if (result == CUFFT_SUCCESS) plan_of(handle)->has_area = wanted;
    return result;
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long *n, long long *in_extent,
                                long long in_stride, long long in_distance, long long *out_extent,
                                long long out_stride, long long out_distance, cufftType type,
                                long long batch, size_t *area)
{
    const cufftResult result = result_of(hostdev_count());
    struct plan *plan = plan_of(handle);
    long long all = 1;
    if (result != CUFFT_SUCCESS) return result;
    if (refusal) return (cufftResult)refusal;
    if (rank < 1 || rank > 3 || in_stride != 1 || out_stride != 1) return CUFFT_INVALID_VALUE;
    for (int a = 0; a < rank; a++) {
        all *= n[a];
        plan->extent[a] = (int)n[a];
    }
    // Without extents rows are dense; with extents there is one axis.
    if (in_extent || out_extent ? rank > 1 || *in_extent > in_distance || *out_extent > out_distance
                                : in_distance != all || out_distance != all)
        return CUFFT_INVALID_VALUE;
    if (all > 1 << 28) return CUFFT_INVALID_VALUE;
    plan->made = true;
    plan->device = device_current();
    plan->rank = rank, plan->batch = (int)batch, plan->type = type;
    plan->in_distance = (int)in_distance, plan->out_distance = (int)out_distance;
    *area = rows_bytes(plan);
    return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
    plan_of(handle)->stream = stream;
    return result_of(hostdev_count());
}

cufftResult cufftSetWorkArea(cufftHandle handle, void *area)
{
    plan_of(handle)->area = area;
    return result_of(hostdev_count());
}

cufftResult cufftExecC2C(cufftHandle handle, cufftComplex *from, cufftComplex *to, int direction)
{
    return queue_run(handle, from, to, CUFFT_C2C, direction);
}

cufftResult cufftExecZ2Z(cufftHandle handle, void *from, void *to, int direction)
{
    return queue_run(handle, from, to, CUFFT_Z2Z, direction);
}

cufftResult cufftExecR2C(cufftHandle handle, cufftReal *from, cufftComplex *to)
{
    return queue_run(handle, from, to, CUFFT_R2C, CUFFT_FORWARD);
}

cufftResult cufftExecC2R(cufftHandle handle, cufftComplex *from, cufftReal *to)
{
    return queue_run(handle, from, to, CUFFT_C2R, CUFFT_INVERSE);
}

// Releases even when it returns an error of an earlier call.
cufftResult cufftDestroy(cufftHandle handle)
{
    plan_of(handle)->used = false;
    return result_of(hostdev_count());
}
