// SPDX-License-Identifier: MIT
#include "core/plan.h"

#include "device/arrays.h"

#include <pthread.h>

size_t layer_bytes(const struct layer *layer, int array)
{
    return layer->n[array] * partita_type_size(layer->problem.signal);
}

enum { SCALAR = 8 };

void *array_allocate(enum memory memory, size_t bytes)
{
    void *made = NULL;
    if (memory == PAGEABLE) made = malloc(bytes);
    else if (memory == PINNED)
        assert_int_equal(cudaHostAlloc(&made, bytes, cudaHostAllocPortable), cudaSuccess);
    else assert_int_equal(cudaMalloc(&made, bytes + SCALAR), cudaSuccess);
    assert_non_null(made);
    return memory == MISALIGNED ? (char *)made + SCALAR : made;
}

void array_release(enum memory memory, void *array)
{
    if (memory == PAGEABLE) free(array);
    else if (memory == PINNED) cudaFreeHost(array);
    else cudaFree(memory == MISALIGNED ? (char *)array - SCALAR : array);
}

static void run_in(struct layer *layer, unsigned directions, enum memory from, enum memory to,
                   const struct partita_call *call)
{
    void *array[LAYER_ARRAYS] = {0};
    for (int i = 0; i < LAYER_ARRAYS; i++) {
        array[i] = array_allocate(i < LAYER_Y ? from : to, layer_bytes(layer, i));
        cudaMemcpy(array[i], layer->array[i], layer_bytes(layer, i), cudaMemcpyDefault);
    }
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++)
        if (i == LAYER_Y || directions != PARTITA_FORWARD)
            assert_ok(layer_call(layer, (enum layer_array)i, array, call));
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++)
        if (to < DEVICE)
            memcpy(layer->array[i], array[i], layer_bytes(layer, i)); // without further waiting
    for (int i = 0; i < LAYER_ARRAYS; i++) {
        if (i >= LAYER_Y && to >= DEVICE)
            cudaMemcpy(layer->array[i], array[i], layer_bytes(layer, i), cudaMemcpyDefault);
        array_release(i < LAYER_Y ? from : to, array[i]);
    }
}

void layer_run_in(struct layer *layer, unsigned directions, enum memory from, enum memory to)
{
    run_in(layer, directions, from, to, NULL);
}

void layer_add_in(struct layer *layer, unsigned directions, enum memory from, enum memory to)
{
    run_in(layer, directions, from, to, &(struct partita_call){.accumulate = true});
}

bool layer_attempt(const struct layer *reference, const struct partita_options *options, size_t k,
                   cudaError_t error)
{
    const enum partita_status expected =
        error == cudaErrorMemoryAllocation ? PARTITA_ERR_NOMEM : PARTITA_ERR_DEVICE;
    const size_t allocations = hostdev_allocations(); // of the reference
    struct layer layer;
    layer_open_copy(&layer, reference, options);
    hostdev_fail(k, error);
    void **a = layer.array;
    const enum partita_status status[] = {
        partita_forward(layer.plan, layer.filter, a[LAYER_Y], a[LAYER_X], NULL),
        partita_backward_data(layer.plan, layer.filter, a[LAYER_GX], a[LAYER_GY], NULL),
        partita_backward_weight(layer.plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY], NULL),
        partita_backward_bias(layer.plan, a[LAYER_GB], a[LAYER_GY], NULL),
    };
    const bool failed = hostdev_calls() >= k;
    size_t failures = 0;
    for (int i = 0; i < 4; i++) {
        const int result = (int)LAYER_Y + i;
        failures += status[i] != PARTITA_OK;
        assert_true(status[i] == PARTITA_OK || status[i] == expected);
        if (status[i] == PARTITA_OK)
            assert_memory_equal(a[result], reference->array[result], layer_bytes(&layer, result));
    }
    if (!failed) assert_int_equal(failures, 0);
    hostdev_fail(0, cudaSuccess);
    layer_close(&layer);
    assert_int_equal(hostdev_allocations(), allocations);
    return failed;
}

void *device_copy(const void *from, size_t bytes, size_t offset)
{
    char *memory = array_allocate(DEVICE, bytes + offset);
    if (from)
        assert_int_equal(cudaMemcpy(memory + offset, from, bytes, cudaMemcpyDefault), cudaSuccess);
    return memory;
}

void check_failing_calls(const struct failing_calls *calls, cudaError_t error)
{
    const enum partita_status expected =
        error == cudaErrorMemoryAllocation ? PARTITA_ERR_NOMEM : PARTITA_ERR_DEVICE;
    const size_t allocations = hostdev_allocations();
    void *y = guarded_alloc(calls->bytes, 0);
    bool failed = true;
    for (size_t k = 1; failed; k++) {
        memset(y, 0xff, calls->bytes);
        hostdev_fail(k, error);
        const enum partita_status status = calls->compute(calls->objects, y);
        failed = hostdev_calls() >= k;
        hostdev_fail(0, cudaSuccess);
        const bool usable = calls->usable(calls->objects);
        if (!failed) assert_ok(status);
        if (status == PARTITA_OK) assert_memory_equal(y, calls->expected, calls->bytes);
        else assert_true(status == expected || (!usable && status == PARTITA_ERR_DEVICE));
        if (status == PARTITA_ERR_DEVICE && usable) // the device is lost to these objects
            assert_int_equal(calls->compute(calls->objects, y), PARTITA_ERR_DEVICE);
        calls->release(calls->objects);
        assert_int_equal(hostdev_allocations(), allocations);
    }
    guarded_free(y);
}

struct concurrent_call {
    const struct failing_calls *calls;
    void *y;
    enum partita_status status;
};

static void *call_repeatedly(void *context)
{
    struct concurrent_call *call = context;
    for (int i = 0; i < 4 && call->status == PARTITA_OK; i++)
        call->status = call->calls->compute(call->calls->objects, call->y);
    return NULL;
}

void check_concurrent_calls(const struct failing_calls *calls)
{
    enum { N_THREADS = 3 };
    struct concurrent_call call[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        call[i] = (struct concurrent_call){calls, malloc(calls->bytes), PARTITA_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, call_repeatedly, &call[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_ok(call[i].status);
        assert_memory_equal(call[i].y, calls->expected, calls->bytes);
        free(call[i].y);
    }
}
