// SPDX-License-Identifier: MIT
#include "cuda/kernels/fft.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "cufft.h"
#include "device.h"

// One plan of cuFFT. It keeps the stream and the work area of its last use, so that one call at a
// time has it.
struct cuda_fft_lease {
    int handle;
    size_t area;        // bytes that it wants
    bool made, planned; // the handle; a plan in it
    struct cuda_fft_lease *next;
};

struct cuda_fft_long {
    const struct cufft *cufft;
    pthread_mutex_t lock;
    struct cuda_fft_lease *idle;
    size_t batch, area; // area: of the first plan
};

static const double PI = 3.14159265358979323846;

size_t cuda_fft_size(size_t n)
{
    size_t points = CUDA_FFT_POINTS;
    while (points < n && points < CUDA_FFT_LONGEST) points *= 2;
    return points < n ? 0 : points;
}

static void put(void *to, size_t i, double turns, bool f64)
{
    const double re = cos(2 * PI * turns), im = -sin(2 * PI * turns);
    if (f64) ((double *)to)[2 * i] = re, ((double *)to)[2 * i + 1] = im;
    else ((float *)to)[2 * i] = (float)re, ((float *)to)[2 * i + 1] = (float)im;
}

// theta of a node, whose modulus is u^m - e^(-2 pi i theta): of the k-th of R nodes that a node of
// theta' is divided into, (theta' + k)/R. Radices are those of the passes before.
static double theta_of(size_t node, int log2_points, int log2_node, double theta)
{
    size_t nodes = (size_t)1 << (log2_points - log2_node); // to be told apart still
    for (int pass = 0, log2_radix = 4; nodes > 1; pass++) {
        nodes >>= log2_radix;
        theta = (theta + (double)(node / nodes)) / (1 << log2_radix);
        node %= nodes;
        log2_radix = pass == 0 ? CUDA_FFT_SECOND_RADIX(log2_points) : 4;
    }
    return theta;
}

// Factors of all passes, or while `table` is NULL their number; *ret_last is where those of the
// last one begin.
static size_t fill_factors(void *table, int log2_points, bool turned, bool f64, int *ret_last)
{
    size_t n = 0;
    for (int log2_node = log2_points, pass = 0; log2_node > 0; pass++) {
        const int log2_radix = pass == 1 ? CUDA_FFT_SECOND_RADIX(log2_points) : 4;
        const size_t nodes = (size_t)1 << (log2_points - log2_node);
        *ret_last = (int)n;
        for (size_t node = 0; table && node < nodes; node++) {
            const double turns =
                theta_of(node, log2_points, log2_node, turned ? 0.25 : 0) / (1 << log2_radix);
            put(table, 2 * (n + node), turns, f64);
            put(table, 2 * (n + node) + 1, 4 * turns, f64);
        }
        n += nodes;
        log2_node -= log2_radix;
    }
    return 2 * n;
}

static enum partita_status make_factors(const struct partita_plan *plan, struct cuda_fft *fft)
{
    const size_t n =
        fft->within ? fill_factors(NULL, fft->form.log2_points, false, fft->f64, &fft->form.last)
                    : fft->points;
    const size_t bytes = n * 2 * (fft->f64 ? 8 : 4);
    void *table = mem_reserve(&plan->allocator, bytes);
    if (!table) return PARTITA_ERR_NOMEM;
    if (fft->within)
        fill_factors(table, fft->form.log2_points, fft->form.turned, fft->f64, &fft->form.last);
    else
        for (size_t j = 0; j < n; j++) put(table, j, (double)j / (4 * (double)n), fft->f64);
    const enum partita_status status = cuda_keep(plan, table, bytes, &fft->factors);
    mem_release(&plan->allocator, table);
    fft->form.factors = fft->factors;
    return status;
}

// What cuFFT returned, as what the run-time would have.
static enum partita_status cufft_status(const struct partita_plan *plan, int result,
                                        const char *call, int line)
{
    const cudaError_t error = result == 0                    ? cudaSuccess
                              : result == CUFFT_ALLOC_FAILED ? cudaErrorMemoryAllocation
                                                             : cudaErrorLaunchFailure;
    return cuda_status(plan, error, call, __FILE__, line);
}

#define CUFFT(plan, call) cufft_status(plan, call, #call, __LINE__)

// The same of calls that make a plan: that there is none, for its size or for what the library
// lacks itself, says nothing of the device, nor of plans that are made already. Results: cuFFT's
// documentation, 4, cufftCreate and cufftMakePlanMany64.
static enum partita_status making_status(const struct partita_plan *plan, int result,
                                         const char *call, int line)
{
    if (result == 0 || result == CUFFT_ALLOC_FAILED || result == CUFFT_EXEC_FAILED)
        return cufft_status(plan, result, call, line);
    (void)cudaGetLastError(); // what it tried leaves nothing behind
    log_line(&plan->log, "cuFFT makes no such plan: result %d at %s:%d: %s", result, __FILE__, line,
             call);
    return result == CUFFT_INTERNAL_ERROR || result == CUFFT_SETUP_FAILED ? PARTITA_ERR_DEVICE
                                                                          : PARTITA_ERR_UNSUPPORTED;
}

#define MAKING(plan, call) making_status(plan, call, #call, __LINE__)

static enum partita_status lease_create(const struct partita_plan *plan, const struct cuda_fft *fft,
                                        struct cuda_fft_lease **ret)
{
    struct cuda_fft_long *passes = fft->passes;
    const struct cufft *cufft = passes->cufft;
    struct cuda_fft_lease *lease = mem_allocate(&plan->allocator, sizeof *lease);
    *ret = lease;
    if (!lease) return PARTITA_ERR_NOMEM;
    enum partita_status status = MAKING(plan, cufft->create(&lease->handle));
    if (status != PARTITA_OK) return status;
    lease->made = true;
    const size_t *extent = fft->extent;
    const int skipped = extent[0] > 1 ? 0 : extent[1] > 1 ? 1 : 2; // axes of one sample
    long long n[3], all = (long long)fft->points;
    for (int a = skipped; a < 3; a++) n[a - skipped] = (long long)extent[a];
    status = MAKING(plan, cufft->auto_allocation(lease->handle, 0));
    if (status == PARTITA_OK)
        status = MAKING(plan, cufft->make_plan(lease->handle, 3 - skipped, n, NULL, 1, all, NULL, 1,
                                               all, fft->f64 ? CUFFT_Z2Z : CUFFT_C2C,
                                               (long long)passes->batch, &lease->area));
    lease->planned = status == PARTITA_OK;
    return status;
}

static void lease_destroy(const struct partita_plan *plan, const struct cuda_fft_long *passes,
                          struct cuda_fft_lease *lease)
{
    // Destroying what could not be planned may fail without a word about the device.
    if (lease && lease->made) {
        const int result = passes->cufft->destroy(lease->handle);
        if (lease->planned) cufft_status(plan, result, "cufftDestroy", __LINE__);
    }
    mem_release(&plan->allocator, lease);
}

static enum partita_status make_passes(const struct partita_plan *plan, struct cuda_fft *fft,
                                       size_t batch)
{
    const struct cufft *cufft = cufft_open();
    if (!cufft) return PARTITA_ERR_UNSUPPORTED;
    fft->passes = mem_allocate(&plan->allocator, sizeof *fft->passes);
    if (!fft->passes) return PARTITA_ERR_NOMEM;
    fft->passes->cufft = cufft;
    fft->passes->batch = batch;
    pthread_mutex_init(&fft->passes->lock, NULL);
    // The first one is made here, so that a size that cannot be had is known, and how much memory
    // it wants.
    const enum partita_status status = lease_create(plan, fft, &fft->passes->idle);
    if (status == PARTITA_OK) fft->passes->area = fft->passes->idle->area;
    return status;
}

enum partita_status cuda_fft_create(const struct partita_plan *plan, size_t points, bool turned,
                                    size_t batch, struct cuda_fft *ret)
{
    const bool f64 = plan->shape.f64;
    *ret = (struct cuda_fft){.points = points,
                             .extent = {1, 1, points},
                             .f64 = f64,
                             .within = points <= cuda_fft_most(f64)};
    ret->form.turned = turned;
    while ((size_t)1 << ret->form.log2_points < points) ret->form.log2_points++;
    const enum partita_status status = ret->within || turned ? make_factors(plan, ret) : PARTITA_OK;
    return status == PARTITA_OK && !ret->within ? make_passes(plan, ret, batch) : status;
}

enum partita_status cuda_fft_create_box(const struct partita_plan *plan, const size_t n[3],
                                        size_t batch, struct cuda_fft *ret)
{
    *ret = (struct cuda_fft){
        .points = n[0] * n[1] * n[2], .extent = {n[0], n[1], n[2]}, .f64 = plan->shape.f64};
    return make_passes(plan, ret, batch);
}

void cuda_fft_destroy(const struct partita_plan *plan, struct cuda_fft *fft)
{
    cuda_release(plan, fft->factors);
    if (!fft->passes) return;
    while (fft->passes->idle) {
        struct cuda_fft_lease *lease = fft->passes->idle;
        fft->passes->idle = lease->next;
        lease_destroy(plan, fft->passes, lease);
    }
    pthread_mutex_destroy(&fft->passes->lock);
    mem_release(&plan->allocator, fft->passes);
}

size_t cuda_fft_area(const struct cuda_fft *fft)
{
    return fft->passes ? fft->passes->area : 0;
}

size_t cuda_fft_batch(const struct cuda_fft *fft)
{
    return fft->passes ? fft->passes->batch : 1;
}

enum partita_status cuda_fft_borrow(const struct partita_plan *plan, const struct cuda_fft *fft,
                                    void *area, struct cuda_fft_lease **ret)
{
    struct cuda_fft_long *passes = fft->passes;
    pthread_mutex_lock(&passes->lock);
    enum partita_status status = PARTITA_OK;
    *ret = passes->idle;
    if (*ret) passes->idle = (*ret)->next;
    else status = lease_create(plan, fft, ret);
    pthread_mutex_unlock(&passes->lock);
    if (status == PARTITA_OK && (*ret)->area > passes->area)
        status = PARTITA_ERR_NOMEM; // callers have what was planned
    if (status != PARTITA_OK) {
        lease_destroy(plan, passes, *ret);
        *ret = NULL;
        return status;
    }
    status = CUFFT(plan, passes->cufft->set_stream((*ret)->handle, cudaStreamPerThread));
    if (status == PARTITA_OK && (*ret)->area)
        status = CUFFT(plan, passes->cufft->set_area((*ret)->handle, area));
    return status;
}

enum partita_status cuda_fft_run(const struct partita_plan *plan, const struct cuda_fft *fft,
                                 const struct cuda_fft_lease *lease, void *spectra, bool back)
{
    const struct cufft *cufft = fft->passes->cufft;
    const int direction = back ? CUFFT_INVERSE : CUFFT_FORWARD;
    return fft->f64 ? CUFFT(plan, cufft->z2z(lease->handle, spectra, spectra, direction))
                    : CUFFT(plan, cufft->c2c(lease->handle, spectra, spectra, direction));
}

void cuda_fft_give_back(const struct cuda_fft *fft, struct cuda_fft_lease *lease)
{
    if (!lease) return;
    pthread_mutex_lock(&fft->passes->lock);
    lease->next = fft->passes->idle;
    fft->passes->idle = lease;
    pthread_mutex_unlock(&fft->passes->lock);
}
