// SPDX-License-Identifier: MIT
// Pageable memory on its way to the device and back (decision 27): every chunk arrives, whatever
// runs ahead or lags behind; a failure leaves nothing behind.
#include "cuda/device/staging.h"
#include "cuda/module.h"

#include "hostdev/hostdev.h"
#include "support/layer_rig.h"

enum { CHUNK = 1000, MOST_BYTES = 6 * CHUNK };

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

// There on one stream, back on another one, which waits for an event alone. What was staged may be
// overwritten at once.
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
                                   CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7, MOST_BYTES};
    struct random random = random_start("chunks");
    struct partita_plan plan = plan_on_device();
    struct cuda_staging *staging;
    void *device = NULL;
    (void)state;
    assert_ok(cuda_staging_create(&plan, CHUNK, &staging));
    assert_int_equal(cudaMalloc(&device, MOST_BYTES), cudaSuccess);
    for (size_t turn = 0; turn < 4; turn++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char from[MOST_BYTES], kept[MOST_BYTES], to[MOST_BYTES + 1] = {0};
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

// Chunks that several threads copy, a part each, of even and uneven sizes.
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

// With the k-th call failing, for every k: a status, or no harm.
static void failing_chunks(void **state)
{
    static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorIllegalAddress};
    struct random random = random_start("failing-chunks");
    (void)state;
    for (size_t e = 0; e < 2; e++)
        for (size_t k = 1, calls = k; calls >= k; k++) {
            struct partita_plan plan = plan_on_device();
            struct cuda_staging *staging = NULL;
            unsigned char from[MOST_BYTES], kept[MOST_BYTES], to[MOST_BYTES];
            void *device = NULL;
            assert_int_equal(cudaMalloc(&device, MOST_BYTES), cudaSuccess);
            draw(&random, from, MOST_BYTES);
            memcpy(kept, from, MOST_BYTES);
            hostdev_fail(k, errors[e]);
            enum partita_status status = cuda_staging_create(&plan, CHUNK, &staging);
            if (status == PARTITA_OK)
                status = there_and_back(&plan, staging, device, to, from, MOST_BYTES);
            calls = hostdev_calls();
            if (status == PARTITA_OK) assert_memory_equal(to, kept, MOST_BYTES);
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
