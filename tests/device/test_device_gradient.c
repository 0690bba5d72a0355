// SPDX-License-Identifier: MIT
// The gradient of the taps as one kernel (cuda/overlap/spectral.h) with decisions that no plan
// makes at these sizes: any window, one sum or two, runs and chains, more products than one sum may
// have. Results equal plain sums, and the same bits in several orders of threads.
#include "cuda/device/device.h"
#include "cuda/module.h"
#include "cuda/overlap/spectral.h"

#include <math.h>

#include "device/arrays.h"
#include "support/test.h"

struct subject {
    const char *name;
    struct shape shape; // without span, outputs, channels and type, which are derived
    size_t pad_end;     // zeros after the line
    size_t points, runs;
    int sums;
};

#define CAUSAL(taps) .kernel = (taps), .begin = 1 - (ptrdiff_t)(taps)

static const struct subject subjects[] = {
    {"one", {.batch = 1, .groups = 1, .axis = {{.kernel = 1, .size = 1}}}, 0, 16, 1, 1},
    {"rows", {.batch = 37, .groups = 2, .axis = {{CAUSAL(20), .size = 40}}}, 0, 32, 1, 1},
    {"runs", {.batch = 37, .groups = 2, .axis = {{CAUSAL(20), .size = 40}}}, 0, 1024, 5, 1},
    {"fewer-lines-than-rows",
     {.batch = 1, .groups = 3, .flip = true, .axis = {{CAUSAL(9), .size = 33}}},
     0,
     64,
     1,
     1},
    {"blocks",
     {.batch = 2, .groups = 2, .axis = {{.kernel = 7, .size = 1000, .begin = -3}}},
     3,
     32,
     2,
     1},
    {"chains",
     {.batch = 1, .groups = 1, .flip = true, .axis = {{.kernel = 17, .size = 20000}}},
     0,
     32,
     3,
     1},
    {"long-chains",
     {.batch = 1, .groups = 1, .axis = {{.kernel = 5, .size = 280000}}},
     0,
     2048,
     1,
     1},
    {"row-of-many-terms",
     {.batch = 150, .groups = 1, .axis = {{CAUSAL(30), .size = 30}}},
     0,
     2048,
     1,
     1},
    {"long-taps", {.batch = 3, .groups = 2, .axis = {{CAUSAL(301), .size = 301}}}, 0, 64, 2, 1},
    {"two-sums", {.batch = 3, .groups = 2, .axis = {{CAUSAL(64), .size = 64}}}, 0, 32, 1, 2},
    {"two-sums-flipped",
     {.batch = 19, .groups = 2, .flip = true, .axis = {{CAUSAL(61), .size = 64}}},
     0,
     32,
     2,
     2},
    {"three-parts", {.batch = 5, .groups = 2, .axis = {{CAUSAL(130), .size = 200}}}, 0, 64, 1, 2},
    {"four-parts", {.batch = 5, .groups = 2, .axis = {{CAUSAL(256), .size = 256}}}, 0, 64, 2, 2},
    {"four-parts-in-rows-of-one",
     {.batch = 2, .groups = 1, .axis = {{CAUSAL(8192), .size = 8192}}},
     0,
     2048,
     1,
     2},
    {"full",
     {.batch = 2, .groups = 2, .flip = true, .axis = {{CAUSAL(100), .size = 150}}},
     99,
     32,
     1,
     2},
    {"valid", {.batch = 2, .groups = 2, .axis = {{.kernel = 100, .size = 150}}}, 0, 32, 1, 2},
    {"two-sums-of-many-terms",
     {.batch = 150, .groups = 1, .axis = {{.kernel = 2100, .size = 2103}}},
     0,
     2048,
     1,
     2},
    {"padding-beyond-taps",
     {.batch = 2, .groups = 1, .axis = {{.kernel = 70, .size = 50, .begin = -400}}},
     9,
     32,
     1,
     2},
    {"outside",
     {.batch = 2, .groups = 1, .axis = {{.kernel = 9, .size = 50, .begin = 60}}},
     100,
     32,
     1,
     1},
    {"outside-two-sums",
     {.batch = 2, .groups = 1, .axis = {{.kernel = 90, .size = 50, .begin = 60}}},
     200,
     32,
     1,
     2},
    {"one-part-of-two",
     {.batch = 2, .groups = 1, .axis = {{.kernel = 9, .size = 50}}},
     0,
     32,
     1,
     2},
    {"strided",
     {.batch = 3,
      .groups = 2,
      .axis = {{.kernel = 12, .size = 400, .stride = 3, .dilation = 2, .begin = -20}}},
     7,
     32,
     2,
     1},
    {"strided-two-sums",
     {.batch = 3,
      .groups = 2,
      .flip = true,
      .axis = {{.kernel = 50, .size = 300, .stride = 5, .begin = -20}}},
     0,
     32,
     2,
     2},
    {"dilated-parts",
     {.batch = 2, .groups = 1, .axis = {{.kernel = 31, .size = 300, .dilation = 7, .begin = -210}}},
     0,
     64,
     1,
     2},
    {"matrix",
     {.batch = 3, .groups = 2, .group_in = 3, .group_out = 2, .axis = {{CAUSAL(30), .size = 90}}},
     0,
     32,
     2,
     2},
    {"matrix-of-one",
     {.batch = 3,
      .groups = 2,
      .group_in = 2,
      .group_out = 3,
      .flip = true,
      .axis = {{CAUSAL(30), .size = 90}}},
     0,
     64,
     2,
     1},
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

struct gradient_case {
    const struct subject *subject;
    bool f64;
};

static struct shape shape_of(const struct gradient_case *c)
{
    struct shape shape = c->subject->shape;
    struct axis *axis = &shape.axis[0];
    shape.rank = 1;
    shape.f64 = c->f64;
    shape.scalar_bytes = shape.sample_bytes = shape.tap_bytes = c->f64 ? 8 : 4;
    shape.group_in = or_one(shape.group_in);
    shape.group_out = or_one(shape.group_out);
    shape.in_channels = shape.groups * shape.group_in;
    shape.out_channels = shape.groups * shape.group_out;
    axis->stride = or_one(axis->stride);
    axis->dilation = or_one(axis->dilation);
    axis->span = axis->dilation * (axis->kernel - 1) + 1;
    axis->out = ((size_t)(axis->size + c->subject->pad_end - (size_t)axis->begin) - axis->span) /
                    axis->stride +
                1;
    for (int a = 1; a < PARTITA_MAX_RANK; a++)
        shape.axis[a] =
            (struct axis){.kernel = 1, .size = 1, .stride = 1, .dilation = 1, .span = 1, .out = 1};
    return shape;
}

// Gradient of the taps from x and gy in host memory.
static void *run(const struct gradient_case *c, const struct shape *shape, const void *x,
                 const void *gy)
{
    const struct subject *subject = c->subject;
    const struct axis *axis = &shape->axis[0];
    const size_t paths = shape->out_channels * shape->group_in,
                 bytes = paths * axis->kernel * shape->scalar_bytes;
    char text[160];
    struct partita_plan plan = {.shape = *shape, .direction = PARTITA_BACKWARD_WEIGHT};
    struct cuda_gradient_plan weight = {0};
    struct cuda_lags gradient;
    assert_int_equal(cuda_open(0, text, sizeof text, &plan.device), PARTITA_OK);
    assert_true(cuda_gradient_split(shape, subject->points, subject->sums, SIZE_MAX, subject->runs,
                                    &gradient));
    const struct cuda_gradient_decision decision = {subject->points, subject->runs, subject->sums};
    estimate_store(&plan.choice, &decision, sizeof decision);
    plan.choice.shared = cuda_gradient_bytes(shape, &gradient);
    assert_ok(cuda_gradient_create(&plan, &weight));
    void *device_x =
        device_copy(x, shape->batch * shape->in_channels * axis->size * shape->scalar_bytes, 0);
    void *device_gy =
        device_copy(gy, shape->batch * shape->out_channels * axis->out * shape->scalar_bytes, 0);
    void *gw = device_copy(NULL, bytes, 0), *workspace = device_copy(NULL, plan.choice.shared, 0),
         *ret = malloc(bytes);
    const struct operands operands = {.to = gw, .from = {device_x, device_gy}};
    assert_ok(cuda_gradient_run(&plan, &weight, &operands, workspace));
    assert_int_equal(cudaMemcpy(ret, gw, bytes, cudaMemcpyDefault), cudaSuccess);
    cudaFree(device_x), cudaFree(device_gy), cudaFree(gw), cudaFree(workspace);
    cuda_fft_destroy(&plan, &weight.fft);
    plan.device->close(plan.device);
    return ret;
}

static double read(const void *array, size_t i, bool f64)
{
    return f64 ? ((const double *)array)[i] : ((const float *)array)[i];
}

// Tap k of a path by the formula in problem.h.
static double expected(const struct shape *shape, const void *x, const void *gy, size_t path,
                       size_t k)
{
    const struct axis *axis = &shape->axis[0];
    const size_t out = path / shape->group_in,
                 in = out / shape->group_out * shape->group_in + path % shape->group_in;
    const size_t tap = shape->flip ? axis->kernel - 1 - k : k;
    long double sum = 0; // long double, for f64
    for (size_t item = 0; item < shape->batch; item++)
        for (size_t o = 0; o < axis->out; o++) {
            const ptrdiff_t at = axis->begin + (ptrdiff_t)(o * axis->stride + tap * axis->dilation);
            if (at < 0 || at >= (ptrdiff_t)axis->size) continue;
            sum += (long double)read(x, (item * shape->in_channels + in) * axis->size + (size_t)at,
                                     shape->f64) *
                   read(gy, (item * shape->out_channels + out) * axis->out + o, shape->f64);
        }
    return (double)sum;
}

static void draw(const struct gradient_case *c, const struct shape *shape, void **ret_x,
                 void **ret_gy)
{
    const enum partita_type type = c->f64 ? PARTITA_F64 : PARTITA_F32;
    const size_t n_x = shape->batch * shape->in_channels * shape->axis[0].size;
    const size_t n_gy = shape->batch * shape->out_channels * shape->axis[0].out;
    struct random random = random_start(c->subject->name);
    *ret_x = malloc(n_x * shape->scalar_bytes);
    *ret_gy = malloc(n_gy * shape->scalar_bytes);
    random_samples(&random, type, *ret_x, n_x);
    random_samples(&random, type, *ret_gy, n_gy);
}

static void against_sums(void **state)
{
    const struct gradient_case *c = *state;
    const struct shape shape = shape_of(c);
    const struct axis *axis = &shape.axis[0];
    const size_t paths = shape.out_channels * shape.group_in;
    void *x, *gy;
    draw(c, &shape, &x, &gy);
    void *gw = run(c, &shape, x, gy);
    double error = 0, norm = 0;
    for (size_t path = 0; path < paths; path++)
        for (size_t k = 0; k < axis->kernel; k++) {
            const double reference = expected(&shape, x, gy, path, k);
            const double difference = read(gw, path * axis->kernel + k, c->f64) - reference;
            error += difference * difference, norm += reference * reference;
        }
    // Transforms spread their errors evenly, also over lags with few products: the norm is at least
    // that of a third of them, since the mean square of a product of two samples is a ninth.
    const double typical = (double)(paths * axis->kernel * shape.batch * axis->out) / 27;
    const double gate = gate_transform(c->f64 ? PARTITA_F64 : PARTITA_F32, 2 * c->subject->points);
    const double limit =
        gate_for_outputs(gate, paths * axis->kernel) * sqrt(norm > typical ? norm : typical);
    if (!(sqrt(error) <= limit)) fail_msg("error %.3g, %.3g allowed", sqrt(error), limit);
    free(gw);
    free(gy);
    free(x);
}

static void any_order_same_bits(void **state)
{
    static const char *const orders[] = {"reverse", "1", "2"};
    const struct gradient_case *c = *state;
    const struct shape shape = shape_of(c);
    void *x, *gy;
    draw(c, &shape, &x, &gy);
    hostdev_order("forward");
    void *first = run(c, &shape, x, gy);
    for (int i = 0; i < 3; i++) {
        hostdev_order(orders[i]);
        void *other = run(c, &shape, x, gy);
        assert_memory_equal(first, other,
                            shape.out_channels * shape.group_in * shape.axis[0].kernel *
                                shape.scalar_bytes);
        free(other);
    }
    hostdev_order(getenv("HOSTDEV_ORDER"));
    free(first);
    free(gy);
    free(x);
}

// A NaN in one channel affects all of its taps and no other channel.
static void channels_apart(void **state)
{
    const struct gradient_case *c = *state;
    const struct shape shape = shape_of(c);
    const size_t kernel = shape.axis[0].kernel, paths = shape.out_channels * shape.group_in;
    void *x, *gy;
    draw(c, &shape, &x, &gy);
    for (size_t i = 0; i < shape.axis[0].size; i++) // of the first channel of the last item
        sample_put(c->f64 ? PARTITA_F64 : PARTITA_F32, x,
                   (shape.batch - 1) * shape.in_channels * shape.axis[0].size + i, NAN);
    void *gw = run(c, &shape, x, gy);
    const size_t of_group = shape.group_out * shape.group_in;
    for (size_t path = 0; path < paths; path++)
        for (size_t k = 0; k < kernel; k++) {
            const bool met = path < of_group && path % shape.group_in == 0;
            assert_int_equal(isnan(read(gw, path * kernel + k, c->f64)) != 0, met);
        }
    free(gw);
    free(gy);
    free(x);
}

// Sizes that the kernel does not have are refused; the others are split within the limits of a
// launch and of a row of sums.
static void cuts(void **state)
{
    const struct gradient_case c = {&subjects[1], false};
    struct shape shape = shape_of(&c);
    struct cuda_lags gradient;
    (void)state;
    assert_false(cuda_gradient_split(&shape, 2 * CUDA_FFT_MAX_F32, 1, SIZE_MAX, 0, &gradient));
    assert_false(
        cuda_gradient_split(&shape, 16, 1, 16 * 8, 0, &gradient)); // no shared memory for sums
    shape.batch = 1 << 20;
    for (size_t limit = SIZE_MAX; limit > 1024; limit /= 1024) {
        assert_true(cuda_gradient_split(&shape, 32, 1, limit, 0, &gradient));
        assert_true(cuda_gradient_bytes(&shape, &gradient) <= limit && gradient.splits >= 1);
        assert_int_equal(gradient.splits > 1, limit > 4096);
    }
    shape.axis[0].out = (size_t)1 << 40;
    assert_false(cuda_gradient_split(&shape, 32, 1, SIZE_MAX, 0, &gradient));
    shape.batch = 1;
    shape.axis[0].out = (size_t)1 << 30;
    assert_true(cuda_gradient_split(&shape, 32, 1, SIZE_MAX, 0, &gradient));
    assert_true(gradient.w.count <= gradient.chains * CUDA_LAGS_TERMS);
    shape.axis[0].span = shape.axis[0].kernel = 70 * 32;
    assert_false(cuda_gradient_split(&shape, 32, 1, SIZE_MAX, 0, &gradient)); // too many parts
    assert_false(
        cuda_gradient_split(&shape, 32, 2, SIZE_MAX, 0, &gradient)); // too many blocks in a row
}

int main(void)
{
    static struct gradient_case cases[N_SUBJECTS][2];
    static struct CMUnitTest tests[5 * N_SUBJECTS + 1];
    size_t n = 0;
    for (size_t i = 0; i < N_SUBJECTS; i++)
        for (int f64 = 0; f64 < 2; f64++) {
            struct gradient_case *c = &cases[i][f64];
            *c = (struct gradient_case){&subjects[i], f64};
            tests[n++] =
                named_test(against_sums, c, "%s-%s", subjects[i].name, f64 ? "f64" : "f32");
            if (f64) continue;
            tests[n++] =
                named_test(any_order_same_bits, c, "%s/any-order-same-bits", subjects[i].name);
            if (strncmp(subjects[i].name, "outside", 7) != 0)
                tests[n++] = named_test(channels_apart, c, "%s/channels-apart", subjects[i].name);
        }
    tests[n++] = named_test(cuts, NULL, "cuts");
    return run_test_list(tests, n);
}
