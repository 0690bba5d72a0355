// SPDX-License-Identifier: MIT
// How the library calls a device's functions: each between cuda_enter and cuda_leave, so that the
// caller's current device is the same after every call, whatever was returned.
#include <assert.h>

#include "queued_call.h"
#include "stream/bank.h"

// The engine behind the one that the library knows.
static const struct engine *own_engine(const struct partita_plan *plan)
{
    const struct cuda_device *device = cuda_device_of(plan);
    const ptrdiff_t i = plan->engine - device->entry;
    assert(i >= 0 && i < CUDA_MAX_ENGINES);
    return device->own_engines[i];
}

static enum partita_status enter_plan_create(struct partita_plan *plan,
                                             const struct request *request)
{
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK && own_engine(plan)->plan_create)
        status = own_engine(plan)->plan_create(plan, request);
    cuda_leave(&scope);
    return status;
}

static void enter_plan_destroy(struct partita_plan *plan)
{
    struct cuda_scope scope;
    cuda_enter(plan, &scope);
    own_engine(plan)->plan_destroy(plan);
    cuda_leave(&scope);
}

static enum partita_status enter_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK) status = own_engine(plan)->filter.create(filter, taps);
    cuda_leave(&scope);
    return status;
}

static enum partita_status enter_filter_create_paths(struct partita_filter *filter,
                                                     const struct partita_path *paths,
                                                     size_t n_paths,
                                                     const struct partita_filter *base)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK)
        status = own_engine(plan)->filter.create_paths(filter, paths, n_paths, base);
    cuda_leave(&scope);
    return status;
}

static enum partita_status enter_filter_bias(struct partita_filter *filter, const void *bias)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK) status = own_engine(plan)->filter.bias(filter, bias);
    cuda_leave(&scope);
    return status;
}

static void enter_filter_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_scope scope;
    cuda_enter(plan, &scope);
    own_engine(plan)->filter.destroy(filter);
    cuda_leave(&scope);
}

static enum partita_status enter_cached_spectra_plan(const struct partita_plan *plan,
                                                     const struct partita_plan *weight,
                                                     struct partita_plan *ret_plan)
{
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK)
        status = own_engine(plan)->bounded.cached_plan(plan, weight, ret_plan);
    if (status == PARTITA_OK) status = cuda_load(ret_plan, true);
    cuda_leave(&scope);
    return status;
}

static enum partita_status enter_stream_open(struct partita_stream *stream)
{
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(stream->plan, &scope);
    if (status == PARTITA_OK) status = own_engine(stream->plan)->stream.open(stream);
    cuda_leave(&scope);
    return status;
}

static enum partita_status enter_stream_queue(struct partita_stream *stream,
                                              const struct frames *frames, void *queue)
{
    struct cuda_scope scope;
    enum partita_status status = cuda_enter_queue(stream->plan, &scope);
    if (status == PARTITA_OK) {
        cuda_thread_set(&(struct cuda_thread){.stream = queue});
        status = own_engine(stream->plan)->stream.queue(stream, frames, queue);
    }
    cuda_leave(&scope);
    return status;
}

static void enter_stream(struct partita_stream *stream, void (*call)(struct partita_stream *stream))
{
    struct cuda_scope scope;
    cuda_enter(stream->plan, &scope);
    call(stream);
    cuda_leave(&scope);
}

static void enter_stream_reset(struct partita_stream *stream)
{
    enter_stream(stream, own_engine(stream->plan)->stream.reset);
}

static void enter_stream_close(struct partita_stream *stream)
{
    enter_stream(stream, own_engine(stream->plan)->stream.close);
}

static void enter_stream_copy_out(struct partita_stream *stream, void *to)
{
    struct cuda_scope scope;
    cuda_enter(stream->plan, &scope);
    own_engine(stream->plan)->stream.copy_out(stream, to);
    cuda_leave(&scope);
}

static void enter_stream_copy_in(struct partita_stream *stream, const void *from)
{
    struct cuda_scope scope;
    cuda_enter(stream->plan, &scope);
    own_engine(stream->plan)->stream.copy_in(stream, from);
    cuda_leave(&scope);
}

static enum partita_status enter_bank_open(struct partita_bank *bank)
{
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(bank->plan, &scope);
    if (status == PARTITA_OK) status = own_engine(bank->plan)->bank.open(bank);
    cuda_leave(&scope);
    return status;
}

static void enter_bank_close(struct partita_bank *bank)
{
    struct cuda_scope scope;
    cuda_enter(bank->plan, &scope);
    own_engine(bank->plan)->bank.close(bank);
    cuda_leave(&scope);
}

static enum partita_status enter_bank_open_slot(struct partita_bank *bank, size_t slot)
{
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(bank->plan, &scope);
    if (status == PARTITA_OK) status = own_engine(bank->plan)->bank.open_slot(bank, slot);
    cuda_leave(&scope);
    return status;
}

// A function that makes no calls of the run-time is copied. So is bounded.run, which device->run
// calls, and stream.step and bank.process, which enter the device only when they have work for it.
static struct engine entry_of(const struct engine *engine)
{
    struct engine entry = *engine;
    entry.plan_create = enter_plan_create;
    if (engine->plan_destroy) entry.plan_destroy = enter_plan_destroy;
    if (engine->filter.create) entry.filter.create = enter_filter_create;
    if (engine->filter.create_paths) entry.filter.create_paths = enter_filter_create_paths;
    if (engine->filter.bias) entry.filter.bias = enter_filter_bias;
    if (engine->filter.destroy) entry.filter.destroy = enter_filter_destroy;
    if (engine->bounded.cached_plan) entry.bounded.cached_plan = enter_cached_spectra_plan;
    if (engine->stream.open) entry.stream.open = enter_stream_open;
    if (engine->stream.queue) entry.stream.queue = enter_stream_queue;
    if (engine->stream.reset) entry.stream.reset = enter_stream_reset;
    if (engine->stream.close) entry.stream.close = enter_stream_close;
    if (engine->stream.copy_out) entry.stream.copy_out = enter_stream_copy_out;
    if (engine->stream.copy_in) entry.stream.copy_in = enter_stream_copy_in;
    if (engine->bank.open) entry.bank.open = enter_bank_open;
    if (engine->bank.close) entry.bank.close = enter_bank_close;
    if (engine->bank.open_slot) entry.bank.open_slot = enter_bank_open_slot;
    return entry;
}

void cuda_entry_make(struct cuda_device *device, const struct engine *const *engine)
{
    device->own_engines = engine;
    for (int i = 0; engine[i]; i++) {
        assert(i < CUDA_MAX_ENGINES);
        device->entry[i] = entry_of(engine[i]);
        device->engine_list[i] = &device->entry[i];
    }
    device->base.engines = device->engine_list;
}
