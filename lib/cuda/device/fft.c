// SPDX-License-Identifier: MIT
#include "fft.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>

#include "cuda/gpu/cufft.h"

// A plan of cuFFT, which keeps the stream and the work area of its last use.
struct cuda_cufft {
    const struct cuda_cufft_library *library;
    pthread_mutex_t lock; // the call that uses it
    int handle;
    size_t batch, work_bytes;
    bool created, planned; // the handle; a plan in it
    bool loaded;           // its kernels: by its first transforms
};

bool cuda_fft_has_long(void)
{
    return cuda_cufft_libraries() != NULL;
}

size_t cuda_fft_size(size_t n)
{
    size_t points = CUDA_FFT_POINTS;
    while (points < n && points < CUDA_FFT_MAX_CUFFT) points *= 2;
    return points < n ? 0 : points;
}

// Number i of a table becomes e^(-2 pi i revolutions).
static void put_root(void *table, size_t i, double revolutions, bool f64)
{
    const double angle = 2 * 3.14159265358979323846 * revolutions, re = cos(angle),
                 im = -sin(angle);
    if (f64) ((double *)table)[2 * i] = re, ((double *)table)[2 * i + 1] = im;
    else ((float *)table)[2 * i] = (float)re, ((float *)table)[2 * i + 1] = (float)im;
}

// (cos, tan) of e^(-2 pi i revolutions). The sine is the product of both as they are rounded. A
// cosine of 0, which only cyclic transforms have, becomes far less than the roundoff of its factor.
static void put_tangent(void *table, size_t i, double revolutions, bool f64)
{
    const double angle = -2 * 3.14159265358979323846 * revolutions, min = f64 ? 0x1p-56 : 0x1p-27;
    double cosine = f64 ? cos(angle) : (float)cos(angle);
    if (fabs(cosine) < min) cosine = min;
    const double tangent = sin(angle) / cosine;
    if (f64) ((double *)table)[2 * i] = cosine, ((double *)table)[2 * i + 1] = tangent;
    else ((float *)table)[2 * i] = (float)cosine, ((float *)table)[2 * i + 1] = (float)tangent;
}

// theta of a node, whose modulus is u^m - e^(-2 pi i theta), -1/2 <= theta < 1/2: of the k-th of R
// nodes that a node of theta' is divided into, (theta' + k)/R. Radices are those of the passes
// before.
static double theta_of(size_t node, int log2_points, int log2_node, double theta)
{
    size_t nodes = (size_t)1 << (log2_points - log2_node); // that `node` counts
    for (int pass = 0, log2_radix = 4; nodes > 1; pass++) {
        nodes >>= log2_radix;
        theta = (theta + (double)(node / nodes)) / (1 << log2_radix);
        if (theta >= 0.5) theta -= 1;
        node %= nodes;
        log2_radix = pass == 0 ? CUDA_FFT_SECOND_RADIX(log2_points) : 4;
    }
    return theta;
}

// The angle of number i of a node's forward twiddles, in revolutions: 0 is of the first level;
// 2^(l-2) + k' of level l, k' being k with its l-2 bits reversed.
static double forward_angle(double theta, int i)
{
    int level = 1, k = 0;
    while (i >> (level - 1)) level++;
    for (int bit = 0; bit < level - 2; bit++) k |= (i >> bit & 1) << (level - 3 - bit);
    return (theta + k) / (1 << level);
}

// The twiddles of one node, of `nodes` that a pass divides.
static void put_node(void *table, size_t nodes, int log2_radix, double theta, bool f64)
{
    const int pairs = CUDA_FFT_PAIRS(log2_radix);
    for (int i = 0; i < 2 * pairs; i++) {
        const size_t at = 2 * (size_t)(i / 2) * nodes + (size_t)(i % 2),
                     back = at + 2 * (size_t)pairs * nodes;
        const double power = i ? (double)i / (1 << log2_radix) : 0.5;
        put_tangent(table, at, forward_angle(theta, i), f64);
        put_root(table, back, theta * power, f64);
    }
}

// Twiddles of all passes, or while `table` is NULL their number; *ret_last is where those of the
// last pass begin, in pairs.
static size_t fill_twiddles(void *table, const struct cuda_fft_form *form, bool f64, int *ret_last)
{
    const size_t pair = f64 ? 32 : 16;
    size_t n = 0;
    for (int log2_node = form->log2_points, pass = 0; log2_node > 0; pass++) {
        const int log2_radix = pass == 1 ? CUDA_FFT_SECOND_RADIX(form->log2_points) : 4;
        const size_t nodes = (size_t)1 << (form->log2_points - log2_node);
        *ret_last = (int)n;
        for (size_t node = 0; table && node < nodes; node++) {
            const double theta =
                theta_of(node, form->log2_points, log2_node, form->negacyclic ? 0.25 : 0);
            put_node((char *)table + (n + node) * pair, nodes, log2_radix, theta, f64);
        }
        n += 2 * (size_t)CUDA_FFT_PAIRS(log2_radix) * nodes;
        log2_node -= log2_radix;
    }
    return n * pair;
}

static enum partita_status make_twiddles(const struct partita_plan *plan, struct cuda_fft *fft)
{
    struct cuda_fft_form *form = &fft->params.form;
    const bool f64 = fft->params.f64;
    const size_t bytes = fill_twiddles(NULL, form, f64, &form->last);
    void *table = mem_reserve(&plan->allocator, bytes);
    if (!table) return PARTITA_ERR_NOMEM;
    fill_twiddles(table, form, f64, &form->last);
    const enum partita_status status = cuda_upload(plan, table, bytes, &fft->twiddles);
    mem_release(&plan->allocator, table);
    form->twiddles = fft->twiddles;
    return status;
}

// The roots e^(-2 pi i j / period), j < points.
static enum partita_status make_twist(const struct partita_plan *plan, struct cuda_fft *fft,
                                      size_t period)
{
    const size_t points = (size_t)fft->params.points, bytes = points * (fft->params.f64 ? 16 : 8);
    void *table = mem_reserve(&plan->allocator, bytes);
    if (!table) return PARTITA_ERR_NOMEM;
    for (size_t j = 0; j < points; j++)
        put_root(table, j, (double)j / (double)period, fft->params.f64);
    const enum partita_status status = cuda_upload(plan, table, bytes, &fft->twist);
    mem_release(&plan->allocator, table);
    fft->params.twist = fft->twist;
    return status;
}

// The result of cuFFT as a result of the runtime.
static enum partita_status cufft_status(const struct partita_plan *plan, int result,
                                        const char *call, int line)
{
    cudaError_t error = cudaErrorLaunchFailure;
    if (result == 0) error = cudaSuccess;
    if (result == CUFFT_ALLOC_FAILED) error = cudaErrorMemoryAllocation;
    return cuda_status(plan, error, call, __FILE__, line);
}

#define CUFFT(plan, call) cufft_status(plan, call, #call, __LINE__)

// The same of making a plan. Where there is none, for its size or for want of something in the
// library itself, the device is not at fault, nor are plans that were made already. Results:
// cuFFT's documentation, 4, cufftCreate and cufftMakePlanMany64.
static enum partita_status making_status(const struct partita_plan *plan, int result)
{
    if (result == 0 || result == CUFFT_ALLOC_FAILED || result == CUFFT_EXEC_FAILED)
        return cufft_status(plan, result, "cufftMakePlanMany64", __LINE__);
    log_line(&plan->log, "cuFFT makes no such plan: result %d", result);
    return result == CUFFT_INTERNAL_ERROR || result == CUFFT_SETUP_FAILED ? PARTITA_ERR_DEVICE
                                                                          : PARTITA_ERR_UNSUPPORTED;
}

// Destroying a plan that could not be made may fail without a word about the device.
static void destroy_cufft(const struct partita_plan *plan, struct cuda_cufft *made)
{
    if (!made->created) return;
    const int result = made->library->destroy(made->handle);
    if (made->planned) cufft_status(plan, result, "cufftDestroy", __LINE__);
    else (void)cudaGetLastError(); // the attempt leaves nothing behind
    made->created = made->planned = false;
}

// Returns cuFFT's result.
static int plan_cufft(struct cuda_fft *fft)
{
    struct cuda_cufft *made = fft->cufft;
    const struct cuda_cufft_library *library = made->library;
    long long n = (long long)fft->params.points;
    int result = library->create(&made->handle);
    made->created = result == 0;
    if (result == 0) result = library->auto_allocation(made->handle, 0);
    if (result == 0)
        result = library->make_plan(made->handle, 1, &n, NULL, 1, n, NULL, 1, n,
                                    fft->params.f64 ? CUFFT_Z2Z : CUFFT_C2C, (long long)made->batch,
                                    &made->work_bytes);
    made->planned = result == 0;
    return result;
}

static enum partita_status make_cufft(const struct partita_plan *plan, struct cuda_fft *fft,
                                      size_t batch)
{
    if (!cuda_fft_has_long()) return PARTITA_ERR_UNSUPPORTED;
    struct cuda_cufft *made = fft->cufft = mem_allocate(&plan->allocator, sizeof *made);
    if (!made) return PARTITA_ERR_NOMEM;
    made->batch = batch;
    pthread_mutex_init(&made->lock, NULL);
    int result = CUFFT_SETUP_FAILED;
    for (const struct cuda_cufft_library *next = cuda_cufft_libraries();
         next && (result == CUFFT_SETUP_FAILED || result == CUFFT_INTERNAL_ERROR);
         next = next->next) {
        destroy_cufft(plan, made);
        made->library = next;
        result = plan_cufft(fft);
    }
    return making_status(plan, result);
}

enum partita_status cuda_fft_create(const struct partita_plan *plan, size_t points, size_t batch,
                                    bool planes, struct cuda_fft *ret)
{
    const bool f64 = plan->shape.f64, complex = plan->shape.complex_signal;
    assert(cuda_fft_size(points) == points && batch > 0);
    *ret = (struct cuda_fft){.params = {.form.negacyclic = !complex,
                                        .points = (int64_t)points,
                                        .planes = complex ? 2 : 1,
                                        .f64 = f64,
                                        .in_block = points <= cuda_fft_max(f64)}};
    while ((size_t)1 << ret->params.form.log2_points < points) ret->params.form.log2_points++;
    const bool in_block = ret->params.in_block;
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK && in_block) status = make_twiddles(plan, ret);
    if (status == PARTITA_OK && complex && planes) status = make_twist(plan, ret, 2 * points);
    if (status == PARTITA_OK && !complex && !in_block) status = make_twist(plan, ret, 4 * points);
    if (status == PARTITA_OK && !in_block) status = make_cufft(plan, ret, batch);
    cuda_leave(&scope);
    return status;
}

void cuda_fft_destroy(const struct partita_plan *plan, struct cuda_fft *fft)
{
    struct cuda_cufft *made = fft->cufft;
    struct cuda_scope scope;
    cuda_enter(plan, &scope);
    cuda_release(plan, fft->twiddles);
    cuda_release(plan, fft->twist);
    if (made) destroy_cufft(plan, made);
    cuda_leave(&scope);
    if (!made) return;
    pthread_mutex_destroy(&made->lock);
    mem_release(&plan->allocator, made);
}

size_t cuda_fft_work_bytes(const struct cuda_fft *fft)
{
    return fft->cufft ? fft->cufft->work_bytes : 0;
}

size_t cuda_fft_batch(const struct cuda_fft *fft)
{
    return fft->cufft ? fft->cufft->batch : 1;
}

enum partita_status cuda_fft_begin(const struct partita_plan *plan, const struct cuda_fft *fft,
                                   void *work_area)
{
    struct cuda_cufft *made = fft->cufft;
    if (!made) return PARTITA_OK;
    pthread_mutex_lock(&made->lock);
    if (cuda_thread()->loads) return PARTITA_OK;
    const enum partita_status status =
        CUFFT(plan, made->library->set_stream(made->handle, cuda_thread()->stream));
    if (status != PARTITA_OK || !made->work_bytes) return status;
    return CUFFT(plan, made->library->set_work_area(made->handle, work_area));
}

static enum partita_status execute(const struct partita_plan *plan, const struct cuda_fft *fft,
                                   void *rows, int direction)
{
    const struct cuda_cufft_library *library = fft->cufft->library;
    return fft->params.f64 ? CUFFT(plan, library->z2z(fft->cufft->handle, rows, rows, direction))
                           : CUFFT(plan, library->c2c(fft->cufft->handle, rows, rows, direction));
}

// Transforms of a batch of zeros in both directions, which load cuFFT's kernels.
static enum partita_status load_cufft(const struct partita_plan *plan, const struct cuda_fft *fft)
{
    struct cuda_cufft *made = fft->cufft;
    const size_t bytes = made->batch * (size_t)fft->params.points * (fft->params.f64 ? 16 : 8);
    const cudaStream_t stream = cuda_thread()->stream;
    void *rows = NULL, *area = NULL;
    enum partita_status status = cuda_allocate(plan, bytes, &rows);
    if (status == PARTITA_OK) status = cuda_allocate(plan, made->work_bytes, &area);
    if (status == PARTITA_OK) status = CU(plan, cudaMemsetAsync(rows, 0, bytes, stream));
    if (status == PARTITA_OK) status = CUFFT(plan, made->library->set_stream(made->handle, stream));
    if (status == PARTITA_OK)
        status = CUFFT(plan, made->library->set_work_area(made->handle, area));
    if (status == PARTITA_OK) status = execute(plan, fft, rows, CUFFT_FORWARD);
    if (status == PARTITA_OK) status = execute(plan, fft, rows, CUFFT_INVERSE);
    cuda_release(plan, rows);
    cuda_release(plan, area);
    const enum partita_status waited = cuda_wait(plan);
    made->loaded = status == PARTITA_OK && waited == PARTITA_OK;
    return status == PARTITA_OK ? waited : status;
}

enum partita_status cuda_fft_long(const struct partita_plan *plan, const struct cuda_fft *fft,
                                  void *spectra, size_t count, bool inverse)
{
    const struct cuda_cufft *made = fft->cufft;
    const size_t bytes = (size_t)fft->params.points * (fft->params.f64 ? 16 : 8);
    enum partita_status status = PARTITA_OK;
    if (!made) return status;
    if (cuda_thread()->loads) return made->loaded ? status : load_cufft(plan, fft);
    for (size_t at = 0; at < count && status == PARTITA_OK; at += made->batch)
        status = execute(plan, fft, (char *)spectra + at * bytes,
                         inverse ? CUFFT_INVERSE : CUFFT_FORWARD);
    return status;
}

void cuda_fft_end(const struct cuda_fft *fft)
{
    if (fft->cufft) pthread_mutex_unlock(&fft->cufft->lock);
}
