// SPDX-License-Identifier: MIT
// A stand-in for cuFFT, under its own names: complex transforms on FFTW, queued as kernels are. A plan insists on the
// work area and the stream that it was told, as cuFFT does when it is not to allocate one.
#include <fftw3.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { MOST_PLANS = 64, C2C = 0x29, Z2Z = 0x69, ALLOC_FAILED = 2, INVALID_VALUE = 4, EXEC_FAILED = 6 };

struct plan {
    bool used, made;
    int rank, extent[3], n, batch, type; // n: of all axes
    void *area;
    cudaStream_t stream;
};

static int refusal;                                      // what plans that are to be made come to
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // FFTW's planner has one thread at a time
static struct plan plans[MOST_PLANS];

// One queued run.
struct run {
    struct plan plan;
    void *samples;
    int direction;
};

static int result_of(cudaError_t error)
{
    return error == cudaSuccess ? 0 : error == cudaErrorMemoryAllocation ? ALLOC_FAILED : EXEC_FAILED;
}

static size_t area_bytes(const struct plan *plan)
{
    return (size_t)plan->n * (size_t)plan->batch * (plan->type == Z2Z ? 16 : 8);
}

static void run_plan(void *call)
{
    const struct run *run = call;
    const struct plan *plan = &run->plan;
    const int n = plan->n, *extent = plan->extent;
    memory_check(run->samples, area_bytes(plan));
    memory_check(plan->area, area_bytes(plan));
    memset(plan->area, 0xff, area_bytes(plan)); // what others left there is lost
    pthread_mutex_lock(&lock);
    if (plan->type == Z2Z) {
        fftw_plan p = fftw_plan_many_dft(plan->rank, extent, plan->batch, run->samples, NULL, 1, n, run->samples, NULL,
                                         1, n, run->direction, FFTW_ESTIMATE);
        fftw_execute(p);
        fftw_destroy_plan(p);
    } else {
        fftwf_plan p = fftwf_plan_many_dft(plan->rank, extent, plan->batch, run->samples, NULL, 1, n, run->samples,
                                           NULL, 1, n, run->direction, FFTW_ESTIMATE);
        fftwf_execute(p);
        fftwf_destroy_plan(p);
    }
    pthread_mutex_unlock(&lock);
}

static int queue_run(int handle, void *from, void *to, int direction, int type)
{
    const struct plan *plan = &plans[handle];
    if (handle < 0 || handle >= MOST_PLANS || !plan->made || plan->type != type || from != to || !plan->area)
        hostdev_break("a plan of cuFFT that is not ready for this");
    struct run *run = malloc(sizeof *run);
    if (!run) hostdev_break("out of memory");
    *run = (struct run){*plan, from, direction};
    return result_of(hostdev_queue(plan->stream, run_plan, free, run));
}

// From now on no plan is made but for that result; 0: plans are made again. Tests find it by its name.
void hostdev_cufft_refuse(int result)
{
    refusal = result;
}

int cufftCreate(int *handle)
{
    const int result = result_of(hostdev_count());
    if (result) return result;
    pthread_mutex_lock(&lock);
    for (*handle = 0; *handle < MOST_PLANS && plans[*handle].used; ++*handle) {
    }
    if (*handle == MOST_PLANS) hostdev_break("too many plans of cuFFT");
    plans[*handle] = (struct plan){.used = true};
    pthread_mutex_unlock(&lock);
    return 0;
}

int cufftSetAutoAllocation(int handle, int wanted)
{
    (void)handle;
    return wanted ? INVALID_VALUE : result_of(hostdev_count());
}

int cufftMakePlanMany64(int handle, int rank, long long *n, long long *in_extent, long long in_stride,
                        long long in_distance, long long *out_extent, long long out_stride, long long out_distance,
                        int type, long long batch, size_t *area)
{
    (void)in_extent, (void)out_extent, (void)in_stride, (void)out_stride;
    const int result = result_of(hostdev_count());
    if (result || refusal) return result ? result : refusal;
    struct plan *plan = &plans[handle];
    long long all = 1;
    for (int a = 0; a < rank && rank <= 3; a++) {
        all *= n[a];
        plan->extent[a] = (int)n[a];
    }
    if (rank < 1 || rank > 3 || in_distance != all || out_distance != all || all > 1 << 28) return INVALID_VALUE;
    plan->made = true;
    plan->rank = rank;
    plan->n = (int)all, plan->batch = (int)batch, plan->type = type;
    *area = area_bytes(plan);
    return 0;
}

int cufftSetStream(int handle, cudaStream_t stream)
{
    plans[handle].stream = stream;
    return result_of(hostdev_count());
}

int cufftSetWorkArea(int handle, void *area)
{
    plans[handle].area = area;
    return result_of(hostdev_count());
}

int cufftExecC2C(int handle, void *from, void *to, int direction)
{
    return queue_run(handle, from, to, direction, C2C);
}

int cufftExecZ2Z(int handle, void *from, void *to, int direction)
{
    return queue_run(handle, from, to, direction, Z2Z);
}

// Also where it then says that something else went wrong.
int cufftDestroy(int handle)
{
    plans[handle].used = false;
    return result_of(hostdev_count());
}
