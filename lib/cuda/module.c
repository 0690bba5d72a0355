// SPDX-License-Identifier: MIT
// The module that the library loads for CUDA devices: the list of its engines, and what it exports.
#include "module.h"

#include "cuda/device/device.h"
#include "cuda/device/micro_batch.h"
#include "cuda/device/pipeline.h"
#include "cuda/device/staging.h"

const struct device_module partita_device_module PARTITA_API = {DEVICE_MODULE_VERSION,
                                                                PARTITA_VERSION, cuda_open};

extern const struct engine cuda_direct, cuda_separable, cuda_winograd, cuda_tiles,
    cuda_overlap_save, cuda_overlap_add, cuda_blocks, cuda_partitioned;
extern const struct spectrum_backend cuda_spectra;

static const struct engine *const cuda_engines[] = {
    &cuda_direct,      &cuda_separable, &cuda_winograd,    &cuda_tiles, &cuda_overlap_save,
    &cuda_overlap_add, &cuda_blocks,    &cuda_partitioned, NULL,
};

// Waits, since other threads' queues may use the memory.
static enum partita_status reserve_memory(const struct partita_plan *plan, size_t bytes,
                                          void **ret_memory)
{
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_allocate(plan, bytes, ret_memory);
    return status == PARTITA_OK ? cuda_wait(plan) : status;
}

static void release_memory(const struct partita_plan *plan, void *memory)
{
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, memory);
}

static enum partita_status plan_begin(struct partita_plan *plan, const struct request *request)
{
    return plan->shape.stream ? PARTITA_OK : cuda_micro_batch_plan(plan, request);
}

static void plan_end(struct partita_plan *plan)
{
    cuda_micro_batch_release(plan);
    if (plan->direction == PARTITA_FORWARD) cuda_staging_close(plan);
}

enum partita_status cuda_open(size_t index, char *text, size_t size, struct device **ret_device)
{
    struct cuda_device *device;
    const enum partita_status status = cuda_device_open(index, text, size, &device);
    if (status != PARTITA_OK) return status;
    device->base.engines = cuda_engines;
    device->base.spectra = &cuda_spectra;
    device->base.reserve = reserve_memory;
    device->base.release = release_memory;
    device->base.backward_bias = cuda_pipeline_bias;
    device->base.plan_begin = plan_begin;
    device->base.run = cuda_pipeline_run;
    device->base.plan_end = plan_end;
    *ret_device = &device->base;
    return PARTITA_OK;
}
