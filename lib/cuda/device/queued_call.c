// SPDX-License-Identifier: MIT
#include "queued_call.h"

#include "bias.h"
#include "bounded_call.h"
#include "filter.h"

enum { // bits of cuda_device.prepared, besides those of the directions
    BIAS_PREPARED = 8,
};

// Stands for arrays of launches that load kernels: no kernel runs.
static void *const NO_ARRAY = (void *)(uintptr_t)4096;

static enum partita_status run_engine(const struct partita_plan *plan,
                                      const struct cuda_filter *given, bool cached)
{
    struct cuda_filter state = *given;
    const struct partita_filter filter = {.plan = plan, .state = &state};
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    struct saved_slot slot = {.data = NO_ARRAY, .ready = weight};
    const struct operands operands = {
        .to = NO_ARRAY, .from = {NO_ARRAY, NO_ARRAY}, .saved = {cached ? &slot : NULL}};
    const enum partita_status status =
        plan->engine->bounded.run(plan, weight ? NULL : &filter, &operands, NO_ARRAY);
    return status == PARTITA_OK ? cuda_add(plan, NO_ARRAY, NO_ARRAY, NO_ARRAY, 8) : status;
}

static enum partita_status pack_filter(const struct partita_plan *plan,
                                       const struct cuda_filter *given)
{
    struct cuda_filter state = *given;
    struct partita_filter filter = {.plan = plan, .state = &state};
    const struct region scratch = {NO_ARRAY, SIZE_MAX};
    if (plan->engine->filter.on_host) return PARTITA_OK; // never on a queue
    return plan->engine->filter.pack(&filter, NO_ARRAY, &scratch);
}

// The same launches as in a call, with a bias and without.
enum partita_status cuda_load(const struct partita_plan *plan, bool cached)
{
    const struct cuda_filter with_bias = {NO_ARRAY, NO_ARRAY}, without = {NO_ARRAY, NULL};
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    cuda_thread_set(&(struct cuda_thread){.stream = cudaStreamPerThread, .loads = true});
    if (status == PARTITA_OK) status = run_engine(plan, &without, cached);
    if (status == PARTITA_OK && plan->direction != PARTITA_BACKWARD_WEIGHT)
        status = pack_filter(plan, &without);
    if (status == PARTITA_OK && plan->direction == PARTITA_FORWARD)
        status = run_engine(plan, &with_bias, cached);
    cuda_leave(&scope);
    return status;
}

static bool is_bias(const struct partita_plan *plan)
{
    return plan->engine == &cuda_bias;
}

// The plan's bit of cuda_device.prepared.
static unsigned prepared_bit(const struct partita_plan *plan)
{
    return is_bias(plan) ? BIAS_PREPARED : plan->direction;
}

static bool is_prepared(const struct partita_plan *plan)
{
    return atomic_load(&cuda_device_of(plan)->prepared) & prepared_bit(plan);
}

static enum partita_status prepare_once(const struct partita_plan *plan)
{
    if (is_prepared(plan)) return PARTITA_OK;
    const enum partita_status status = cuda_load(plan, false);
    if (status == PARTITA_OK) atomic_fetch_or(&cuda_device_of(plan)->prepared, prepared_bit(plan));
    return status;
}

enum partita_status cuda_prepare(const struct partita_plan *plan)
{
    const struct partita_plan *const plans[] = {plan->engine ? plan : NULL, plan->backward_data,
                                                plan->backward_weight};
    enum partita_status status = cuda_device_status(plan);
    for (int i = 0; i < 3 && status == PARTITA_OK; i++)
        if (plans[i]) status = prepare_once(plans[i]);
    if (status != PARTITA_OK || plan->shape.complex_signal) return status;
    struct cuda_bias_plan bias;
    cuda_bias_plan_of(plan, &bias);
    return prepare_once(&bias.plan);
}

// A queue that is recorded takes no loading of kernels. A queue of another device is refused here,
// before cuFFT meets it.
static enum partita_status prepare_for(const struct partita_plan *plan, cudaStream_t queue)
{
    enum cudaStreamCaptureStatus capture;
    const enum partita_status status = CU(plan, cudaStreamIsCapturing(queue, &capture));
    if (status != PARTITA_OK || is_prepared(plan)) return status;
    if (capture == cudaStreamCaptureStatusNone) return prepare_once(plan);
    log_line(&plan->log, "call.queue is being captured: call partita_plan_prepare before");
    return PARTITA_ERR_STATE;
}

// An array of the caller's; bytes 0: the call has none.
static enum partita_status check_array(const struct partita_plan *plan, const char *name,
                                       const void *array, size_t bytes, size_t alignment)
{
    enum cuda_memory memory;
    if (!bytes) return PARTITA_OK;
    const enum partita_status status = cuda_memory_of(plan, array, bytes, &memory);
    if (status != PARTITA_OK) return status;
    const bool here = memory == CUDA_ON_DEVICE;
    if (here && (uintptr_t)array % alignment == 0) return PARTITA_OK;
    if (here) log_line(&plan->log, "call.queue: %s is not aligned to %zu bytes", name, alignment);
    else
        log_line(&plan->log, "call.queue: %s is not in the memory of cuda:%d", name,
                 cuda_device_of(plan)->gpu->index);
    return PARTITA_ERR_ARG;
}

// Names of the arrays of a plan: to, from[0], from[1].
static const char *const *array_names(const struct partita_plan *plan)
{
    static const char *const forward[] = {"y", "x", "taps"}, *const data[] = {"gx", "gy", ""},
                             *const weight[] = {"gw", "x", "gy"}, *const bias[] = {"gb", "", "gy"};
    if (is_bias(plan)) return bias;
    if (plan->direction == PARTITA_FORWARD) return forward;
    return plan->direction == PARTITA_BACKWARD_DATA ? data : weight;
}

static enum partita_status check_arrays(const struct partita_plan *plan,
                                        const struct operands *operands, const void *workspace,
                                        size_t bytes)
{
    const struct cuda_sizes sizes = cuda_sizes_of(plan);
    const char *const *names = array_names(plan);
    enum partita_status status =
        check_array(plan, names[0], operands->to, sizes.to, sizes.alignment);
    for (int i = 0; i < 2 && status == PARTITA_OK; i++)
        if (operands->from[i])
            status =
                check_array(plan, names[1 + i], operands->from[i], sizes.from[i], sizes.alignment);
    return status == PARTITA_OK ? check_array(plan, "call.workspace", workspace, bytes, 1) : status;
}

enum partita_status cuda_queued_run(const struct partita_plan *plan,
                                    const struct partita_filter *filter,
                                    const struct operands *operands, void *workspace)
{
    const bool adds = operands->accumulate && !is_bias(plan); // whose kernel adds
    const struct cuda_sizes sizes = cuda_sizes_of(plan);
    const size_t behind = mem_round(sizes.workspace);
    struct operands inner = *operands;
    enum partita_status status =
        check_arrays(plan, operands, workspace, adds ? behind + sizes.to : sizes.workspace);
    if (status == PARTITA_OK) status = prepare_for(plan, operands->queue);
    if (adds) inner.to = (char *)workspace + behind;
    if (status == PARTITA_OK) status = plan->engine->bounded.run(plan, filter, &inner, workspace);
    return adds && status == PARTITA_OK
               ? cuda_add(plan, operands->to, operands->to, inner.to, sizes.to)
               : status;
}

enum partita_status cuda_queued_update(struct partita_filter *filter,
                                       const struct operands *operands, void *workspace)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const struct region scratch = {workspace, cuda_filter_scratch(filter)};
    enum partita_status status =
        check_array(plan, "taps", operands->from[0], cuda_taps_bytes(shape), shape->tap_bytes);
    if (status == PARTITA_OK && operands->from[1])
        status = check_array(plan, "bias", operands->from[1],
                             shape->out_channels * shape_alignment(shape), shape_alignment(shape));
    if (status == PARTITA_OK)
        status = check_array(plan, "call.workspace", workspace, scratch.bytes, 1);
    for (const struct partita_filter *each = filter; each; each = each->backward_data) {
        if (status != PARTITA_OK || !each->plan->engine) continue;
        if (each->plan->engine->filter.on_host)
            return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED,
                             "call.queue: problem.separable: %s factors taps on the host",
                             each->plan->engine->name);
        status = prepare_for(each->plan, operands->queue);
    }
    return status == PARTITA_OK ? cuda_filter_queue(filter, operands, &scratch) : status;
}
