// SPDX-License-Identifier: MIT
// Staged copies of pageable memory to the device and back (decision 27): every chunk arrives in any
// order of execution; after a failure all memory is released.
#include "cuda/device/staging.h"
#include "cuda/module.h"

#include "hostdev/hostdev.h"
#include "support/layer_rig.h"

enum { CHUNK = 1000, MAX_BYTES = 6 * CHUNK };

static struct partita_plan plan_on_device(void)
{
    char text[160];
    struct partita_plan plan = {.direction = PARTITA_FORWARD};
    assert_int_equal(cuda_open(0, text, sizeof text, &plan.device), PARTITA_OK);
    return plan;
}

static void draw(struct random *random, unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)random_bits(random);
}

// Copies to the device on one stream and back on another one, which only waits for an event. The
// staged memory may be overwritten at once.
static enum partita_status there_and_back(const struct partita_plan *plan,
                                          struct cuda_staging *staging, void *device,
                                          unsigned char *to, unsigned char *from, size_t bytes)
{
    cudaEvent_t arrived = staging->event[CUDA_ARRIVED][0];
    enum partita_status status = cuda_stage_in(plan, staging, staging->in, device, from, bytes);
    memset(from, 0, bytes);
    if (status == PARTITA_OK) status = CU(plan, cudaEventRecord(arrived, staging->in));
    if (status == PARTITA_OK) status = CU(plan, cudaStreamWaitEvent(staging->out, arrived, 0));
    return status == PARTITA_OK ? cuda_stage_out(plan, staging, staging->out, to, device, bytes)
                                : status;
}

static void chunks(void **state)
{
    static const size_t sizes[] = {0,         1,         CHUNK - 1,     CHUNK,
                                   CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7, MAX_BYTES};
    struct random random = random_start("chunks");
    struct partita_plan plan = plan_on_device();
    struct cuda_staging *staging;
    void *device = NULL;
    (void)state;
    assert_ok(cuda_staging_create(&plan, CHUNK, &staging));
    assert_int_equal(cudaMalloc(&device, MAX_BYTES), cudaSuccess);
    for (size_t round = 0; round < 4; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char from[MAX_BYTES], kept[MAX_BYTES], to[MAX_BYTES + 1] = {0};
            draw(&random, from, sizes[i]);
            memcpy(kept, from, sizes[i]);
            assert_ok(there_and_back(&plan, staging, device, to, from, sizes[i]));
            assert_memory_equal(to, kept, sizes[i]);
            assert_int_equal(to[sizes[i]], 0);
        }
    cuda_staging_destroy(&plan, staging);
    cudaFree(device);
    plan.device->close(plan.device);
    assert_int_equal(hostdev_allocations(), 0);
}

// Chunks that several threads copy together, of sizes that are multiples and that are not.
static void threads(void **state)
{
    enum { WIDE = 1 << 20 };
    static const size_t sizes[] = {1, (256 << 10) + 1, WIDE - 1, 2 * WIDE + 3};
    struct random random = random_start("threads");
    struct partita_plan plan = plan_on_device();
    struct cuda_staging *staging;
    void *device = NULL;
    (void)state;
    assert_ok(cuda_staging_create(&plan, WIDE, &staging));
    for (plan.threads = 1; plan.threads <= 5; plan.threads++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char *from = malloc(sizes[i]), *kept = malloc(sizes[i]),
                          *to = calloc(1, sizes[i] + 1);
            draw(&random, from, sizes[i]);
            memcpy(kept, from, sizes[i]);
            assert_int_equal(cudaMalloc(&device, sizes[i]), cudaSuccess);
            assert_ok(there_and_back(&plan, staging, device, to, from, sizes[i]));
            assert_memory_equal(to, kept, sizes[i]);
            assert_int_equal(to[sizes[i]], 0);
            cudaFree(device);
            free(from), free(kept), free(to);
        }
    cuda_staging_destroy(&plan, staging);
    plan.device->close(plan.device);
    assert_int_equal(hostdev_allocations(), 0);
}

// With the k-th call failing, for every k: an error status, or the right result.
static void failing_chunks(void **state)
{
    static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorIllegalAddress};
    struct random random = random_start("failing-chunks");
    (void)state;
    for (size_t e = 0; e < 2; e++)
        for (size_t k = 1, calls = k; calls >= k; k++) {
            struct partita_plan plan = plan_on_device();
            struct cuda_staging *staging = NULL;
            unsigned char from[MAX_BYTES], kept[MAX_BYTES], to[MAX_BYTES];
            void *device = NULL;
            assert_int_equal(cudaMalloc(&device, MAX_BYTES), cudaSuccess);
            draw(&random, from, MAX_BYTES);
            memcpy(kept, from, MAX_BYTES);
            hostdev_fail(k, errors[e]);
            enum partita_status status = cuda_staging_create(&plan, CHUNK, &staging);
            if (status == PARTITA_OK)
                status = there_and_back(&plan, staging, device, to, from, MAX_BYTES);
            calls = hostdev_calls();
            if (status == PARTITA_OK) assert_memory_equal(to, kept, MAX_BYTES);
            else assert_int_equal(status, e ? PARTITA_ERR_DEVICE : PARTITA_ERR_NOMEM);
            assert_int_equal(status == PARTITA_OK, calls < k);
            hostdev_fail(0, cudaSuccess);
            if (staging) cuda_staging_destroy(&plan, staging);
            cudaFree(device);
            plan.device->close(plan.device);
            assert_int_equal(hostdev_allocations(), 0);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks),
        cmocka_unit_test(threads),
        cmocka_unit_test(failing_chunks),
    };
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    return run_all(tests);
}
