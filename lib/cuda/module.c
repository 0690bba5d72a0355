// SPDX-License-Identifier: MIT
// The module that the library loads for CUDA devices: the list of its engines, and its exports.
#include "module.h"

#include "core/spectrum.h"
#include "cuda/device/bias.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/device.h"
#include "cuda/device/filter.h"
#include "cuda/device/micro_batch.h"
#include "cuda/device/queued_call.h"
#include "cuda/device/staging.h"
#include "measure.h"

const struct device_module partita_device_module PARTITA_API = {
    .version = DEVICE_MODULE_VERSION,
    .sources = device_source_hash,
    .struct_bytes = DEVICE_STRUCT_BYTES,
    .open = cuda_open,
};

extern const struct engine cuda_direct, cuda_gemm, cuda_separable, cuda_winograd, cuda_tiles,
    cuda_overlap_save, cuda_overlap_add, cuda_blocks, cuda_partitioned;
extern const struct spectrum_backend cuda_spectra;

static const struct engine *const cuda_engines[] = {
    &cuda_direct,       &cuda_gemm,        &cuda_separable, &cuda_winograd,    &cuda_tiles,
    &cuda_overlap_save, &cuda_overlap_add, &cuda_blocks,    &cuda_partitioned, NULL,
};

// Waits, since other threads' queues may use the memory.
static enum partita_status reserve_memory(const struct partita_plan *plan, size_t bytes,
                                          void **ret_memory)
{
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK) status = cuda_allocate(plan, bytes, ret_memory);
    if (status == PARTITA_OK) status = cuda_wait(plan);
    cuda_leave(&scope);
    return status;
}

static void release_memory(const struct partita_plan *plan, void *memory)
{
    struct cuda_scope scope;
    cuda_enter(plan, &scope);
    cuda_release(plan, memory);
    cuda_leave(&scope);
}

static enum partita_status plan_begin(struct partita_plan *plan, const struct request *request)
{
    struct cuda_scope scope;
    if (plan->shape.stream) return PARTITA_OK;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK) status = cuda_micro_batch_plan(plan, request);
    cuda_leave(&scope);
    return status;
}

static void plan_end(struct partita_plan *plan)
{
    struct cuda_scope scope;
    cuda_enter(plan, &scope);
    cuda_micro_batch_release(plan);
    if (plan->direction == PARTITA_FORWARD) cuda_staging_close(plan);
    cuda_leave(&scope);
}

static enum partita_status module_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    struct cuda_scope scope;
    enum partita_status status = cuda_enter_queue(plan, operands->queue, &scope);
    if (status == PARTITA_OK)
        status = operands->queue ? cuda_queued_run(plan, filter, operands, workspace)
                                 : cuda_bounded_run(plan, filter, operands, workspace);
    cuda_leave(&scope);
    return status;
}

static enum partita_status module_filter_update(struct partita_filter *filter,
                                                const struct operands *operands, void *workspace)
{
    struct cuda_scope scope;
    const struct partita_plan *plan = filter->plan;
    enum partita_status status = cuda_enter_queue(plan, operands->queue, &scope);
    if (status == PARTITA_OK)
        status = operands->queue ? cuda_queued_update(filter, operands, workspace)
                                 : cuda_filter_repack(filter, operands, workspace);
    cuda_leave(&scope);
    return status;
}

static enum partita_status module_backward_bias(const struct partita_plan *plan,
                                                const struct operands *operands)
{
    struct cuda_bias_plan bias;
    struct operands weight = *operands;
    weight.from[0] = NULL, weight.from[1] = operands->from[0];
    cuda_bias_plan_of(plan, &bias);
    return module_run(&bias.plan, NULL, &weight, NULL);
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
    device->base.filter_update = module_filter_update;
    device->base.backward_bias = module_backward_bias;
    device->base.prepare = cuda_prepare;
    device->base.measure = cuda_measure;
    device->base.plan_begin = plan_begin;
    device->base.run = module_run;
    device->base.plan_end = plan_end;
    *ret_device = &device->base;
    return PARTITA_OK;
}
