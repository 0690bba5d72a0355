// SPDX-License-Identifier: MIT
// Spectra on a device beyond their results (test_spectrum.c on the stand-in): arrays in device
// memory at any address, blocks of long transforms, the same bits in any order of threads and in
// chunks of any length, an error at any call, concurrent calls, refusal of spectra that do not
// match.
#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

#include "device/arrays.h"

struct spectrum_case {
    const char *name;
    enum partita_type type;
    enum partita_op op;
    size_t n, m, block;
    struct partita_slice slice;
    // Transforms within a thread block; by cuFFT; by cuFFT, only the test of values.
    enum { SHORT, LONG, LONG_VALUES } length;
};

// Real and complex samples, both operations.
static const struct spectrum_case cases[] = {
    {"convolve", PARTITA_F32, PARTITA_CONVOLVE, 700, 300, 64, {.mode = PARTITA_FULL}, SHORT},
    {"correlate", PARTITA_F32, PARTITA_CORRELATE, 300, 700, 64, {.mode = PARTITA_FULL}, SHORT},
    {"correlate-complex",
     PARTITA_CF32,
     PARTITA_CORRELATE,
     700,
     300,
     64,
     {.mode = PARTITA_FULL},
     SHORT},
    {"convolve-double", PARTITA_F64, PARTITA_CONVOLVE, 500, 500, 0, {.mode = PARTITA_SAME}, SHORT},
    {"convolve-long",
     PARTITA_F32,
     PARTITA_CONVOLVE,
     40000,
     20000,
     16384,
     {.mode = PARTITA_RANGE, .first = 32700, .last = 32900},
     LONG},
    {"correlate-long",
     PARTITA_F32,
     PARTITA_CORRELATE,
     40000,
     20000,
     16384,
     {.mode = PARTITA_RANGE, .first = -100, .last = 100},
     LONG_VALUES},
    {"convolve-long-complex",
     PARTITA_CF32,
     PARTITA_CONVOLVE,
     20000,
     9000,
     16384,
     {.mode = PARTITA_RANGE, .first = 16300, .last = 16500},
     LONG_VALUES},
    {"correlate-long-complex",
     PARTITA_CF32,
     PARTITA_CORRELATE,
     20000,
     9000,
     16384,
     {.mode = PARTITA_RANGE, .first = -60, .last = 60},
     LONG},
};
enum { N_CASES = sizeof cases / sizeof *cases };

// Inputs, and a caller's objects of them.
struct rig {
    const struct spectrum_case *c;
    size_t bytes, n_y, y_bytes; // of a sample; samples and bytes of y
    void *x, *h, *y;
    struct partita_spectrum *sx, *sh;
};

static enum partita_status multiply(const struct rig *rig, void *y)
{
    return (rig->c->op == PARTITA_CONVOLVE
                ? partita_spectrum_convolve
                : partita_spectrum_correlate)(y, rig->sx, rig->sh, &rig->c->slice);
}

static enum partita_status create(struct rig *rig, const void *x, const void *h,
                                  const struct partita_options *options)
{
    const struct spectrum_case *c = rig->c;
    enum partita_status status =
        partita_spectrum_create(c->type, x, c->n, c->block, options, &rig->sx);
    if (status != PARTITA_OK) return status;
    return partita_spectrum_create(c->type, h, c->m, partita_spectrum_block(rig->sx), options,
                                   &rig->sh);
}

static const struct partita_options on_device = {.device = "cuda:0"};

static void rig_open(struct rig *rig, const struct spectrum_case *c)
{
    struct random random = random_start(c->name);
    *rig = (struct rig){.c = c, .bytes = partita_type_size(c->type)};
    rig->n_y = partita_slice_size(c->op, c->n, c->m, &c->slice);
    rig->y_bytes = rig->n_y * rig->bytes;
    rig->x = guarded_alloc(c->n * rig->bytes, 0);
    rig->h = guarded_alloc(c->m * rig->bytes, 0);
    rig->y = guarded_alloc(rig->y_bytes, 0);
    random_samples(&random, c->type, rig->x, c->n);
    random_samples(&random, c->type, rig->h, c->m);
    assert_ok(create(rig, rig->x, rig->h, &on_device));
    assert_ok(multiply(rig, rig->y));
}

static void rig_close(struct rig *rig)
{
    partita_spectrum_destroy(rig->sx);
    partita_spectrum_destroy(rig->sh);
    guarded_free(rig->x);
    guarded_free(rig->h);
    guarded_free(rig->y);
}

static void values(void **state)
{
    struct rig rig;
    struct partita_problem problem;
    rig_open(&rig, *state);
    const struct spectrum_case *c = rig.c;
    assert_ok(partita_slice_problem(c->op, c->type, c->n, c->m, &c->slice, &problem));
    double complex *expected = malloc(rig.n_y * sizeof *expected);
    reference_forward(&problem, expected, rig.x, rig.h);
    const double gate = gate_transform(c->type, 2 * partita_spectrum_block(rig.sx));
    const double error = error_against(c->type, rig.y, expected, rig.n_y, typical_output(&problem));
    if (!(error <= gate_for_outputs(gate, rig.n_y))) fail_msg("error %.3g", error);
    free(expected);
    rig_close(&rig);
    assert_int_equal(hostdev_allocations(), 0);
}

// With every array in device memory, one scalar past its alignment, the bits are those of host
// arrays, and x and h may be released after they are transformed.
static void device_arrays(void **state)
{
    struct rig rig, other;
    rig_open(&rig, *state);
    const size_t offset = type_is_f64(rig.c->type) ? sizeof(double) : sizeof(float);
    char *x = device_copy(rig.x, rig.c->n * rig.bytes, offset),
         *h = device_copy(rig.h, rig.c->m * rig.bytes, offset);
    char *y = device_copy(rig.y, rig.y_bytes, offset), *result = malloc(rig.y_bytes);
    other = rig;
    assert_ok(create(&other, x + offset, h + offset, &on_device));
    cudaFree(x), cudaFree(h);
    memset(result, 0xff, rig.y_bytes);
    cudaMemcpy(y + offset, result, rig.y_bytes, cudaMemcpyDefault);
    const size_t kept = hostdev_allocations();
    assert_ok(multiply(&other, y + offset));
    assert_int_equal(hostdev_allocations(), kept);
    cudaMemcpy(result, y + offset, rig.y_bytes, cudaMemcpyDefault);
    assert_memory_equal(result, rig.y, rig.y_bytes);
    free(result);
    cudaFree(y);
    partita_spectrum_destroy(other.sx);
    partita_spectrum_destroy(other.sh);
    rig_close(&rig);
    assert_int_equal(hostdev_allocations(), 0);
}

// With a limit there are chunks of one block, with the same bits.
static void any_chunk_same_bits(void **state)
{
    struct rig rig, other;
    rig_open(&rig, *state);
    void *y = guarded_alloc(rig.y_bytes, 0);
    for (size_t blocks = 1; blocks < 4; blocks++) {
        const size_t block = 2 * rig.bytes * partita_spectrum_block(rig.sx);
        const struct partita_options limited = {.device = "cuda:0",
                                                .workspace_limit = blocks * block};
        other = rig;
        assert_ok(create(&other, rig.x, rig.h, &limited));
        memset(y, 0xff, rig.y_bytes);
        assert_ok(multiply(&other, y));
        assert_memory_equal(y, rig.y, rig.y_bytes);
        partita_spectrum_destroy(other.sx);
        partita_spectrum_destroy(other.sh);
    }
    guarded_free(y);
    rig_close(&rig);
}

static void any_order_same_bits(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "1", "2"};
    struct rig rig, other;
    rig_open(&rig, *state);
    for (int i = 0; i < 4; i++) {
        hostdev_order(orders[i]);
        rig_open(&other, *state);
        assert_memory_equal(other.y, rig.y, rig.y_bytes);
        rig_close(&other);
    }
    hostdev_order(getenv("HOSTDEV_ORDER"));
    rig_close(&rig);
}

// Makes the spectra unless they are there.
static enum partita_status rig_compute(void *context, void *y)
{
    struct rig *rig = context;
    struct log_lines lines;
    const struct partita_options options = {.device = "cuda:0", .log = log_into(&lines)};
    enum partita_status status = PARTITA_OK;
    if (!rig->sh) status = create(rig, rig->x, rig->h, &options);
    if (status == PARTITA_OK) status = multiply(rig, y);
    return status;
}

static bool rig_usable(const void *context)
{
    const struct rig *rig = context;
    return rig->sh;
}

static void rig_release(void *context)
{
    struct rig *rig = context;
    partita_spectrum_destroy(rig->sx);
    partita_spectrum_destroy(rig->sh);
    rig->sx = rig->sh = NULL;
}

// Other spectra are not affected by a failure.
static void error_at_any_call(const struct spectrum_case *c, cudaError_t error)
{
    struct rig good, rig;
    rig_open(&good, c);
    void *y = guarded_alloc(good.y_bytes, 0);
    rig = good;
    rig.sx = rig.sh = NULL;
    check_failing_calls(
        &(struct failing_calls){&rig, rig_compute, rig_usable, rig_release, good.y, good.y_bytes},
        error);
    memset(y, 0xff, good.y_bytes);
    assert_ok(multiply(&good, y));
    assert_memory_equal(y, good.y, good.y_bytes);
    guarded_free(y);
    rig_close(&good);
}

static void lost_device(void **state)
{
    error_at_any_call(*state, cudaErrorIllegalAddress);
}

static void no_memory(void **state)
{
    error_at_any_call(*state, cudaErrorMemoryAllocation);
}

static void calls_at_once(void **state)
{
    struct rig rig;
    rig_open(&rig, *state);
    check_concurrent_calls(
        &(struct failing_calls){&rig, rig_compute, rig_usable, NULL, rig.y, rig.y_bytes});
    rig_close(&rig);
}

static void refusals(void **state)
{
    float x[200] = {1}, y[400], kept[400];
    struct log_lines lines;
    struct partita_spectrum *here = NULL, *there, *wider, *none = NULL;
    struct partita_options options = {.device = "cuda:0", .log = log_into(&lines)};
    const size_t cpu_block = 64;
    (void)state;
    memset(y, 0x77, sizeof y);
    memcpy(kept, y, sizeof y);
    assert_ok(partita_spectrum_create(PARTITA_F32, x, 200, cpu_block, NULL, &there));
    assert_ok(partita_spectrum_create(PARTITA_F32, x, 200, partita_spectrum_block(there), &options,
                                      &here));
    assert_ok(partita_spectrum_create(PARTITA_F32, x, 200, 128, &options, &wider));
    assert_int_equal(partita_spectrum_block(here), partita_spectrum_block(there));
    assert_int_equal(lines.n_lines, 0);
    assert_int_equal(partita_spectrum_convolve(y, here, there, NULL), PARTITA_ERR_ARG);
    assert_int_equal(lines.n_lines, 1);
    assert_non_null(strstr(lines.text, "the CPU do not meet"));
    assert_int_equal(partita_spectrum_correlate(y, there, here, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_correlate(y, here, wider, NULL), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "blocks of 128"));
    options.log = log_into(&lines);
    options.device = "cuda:77";
    assert_int_equal(partita_spectrum_create(PARTITA_F32, x, 200, 64, &options, &none),
                     PARTITA_ERR_DEVICE);
    assert_non_null(strstr(lines.text, "cuda:77"));
    options.device = "cuda:0";
    options.log = log_into(&lines);
    assert_int_equal(partita_spectrum_create(PARTITA_F32, x, 200, (size_t)1 << 27, &options, &none),
                     PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "are the most"));
    assert_null(none);
    assert_memory_equal(y, kept, sizeof y);
    partita_spectrum_destroy(here);
    partita_spectrum_destroy(there);
    partita_spectrum_destroy(wider);
    assert_int_equal(hostdev_allocations(), 0);
}

int main(void)
{
    static const struct promise promises[] = {{"values", values},
                                              {"device-arrays", device_arrays},
                                              {"any-run-same-bits", any_chunk_same_bits},
                                              {"any-order-same-bits", any_order_same_bits},
                                              {"lost-device", lost_device},
                                              {"no-memory", no_memory},
                                              {"calls-at-once", calls_at_once}};
    enum { N_PROMISES = sizeof promises / sizeof *promises };
    static struct CMUnitTest tests[N_CASES * N_PROMISES + 1];
    const char *cufft = getenv("PARTITA_CUFFT");
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (size_t w = 0; w < N_CASES; w++)
        for (size_t i = 0; i < (cases[w].length == LONG_VALUES ? 1 : N_PROMISES); i++)
            if (cases[w].length == SHORT || !cufft || strcmp(cufft, "none") != 0)
                tests[n++] = named_test(promises[i].run, &cases[w], "%s/%s", cases[w].name,
                                        promises[i].name);
    tests[n++] = named_test(refusals, NULL, "refusals");
    return run_test_list(tests, n);
}
