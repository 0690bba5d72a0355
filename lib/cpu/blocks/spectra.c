// SPDX-License-Identifier: MIT
// Spectra as objects on the CPU: the spectra of blocks that cpu/blocks multiplies, for callers
// who use them again.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "core/spectrum.h"
#include "pair_sums.h"

// spectrum->state.
struct cpu_spectrum {
    struct block_transform transform;
    struct block_spectra spectra;
};

static struct cpu_spectrum *cpu_spectrum_of(const struct partita_spectrum *spectrum)
{
    return spectrum->state;
}

static enum partita_status transform_all(struct partita_spectrum *spectrum, const void *x)
{
    const struct partita_allocator *allocator = &spectrum->allocator;
    struct cpu_spectrum *state = cpu_spectrum_of(spectrum);
    struct block_transform transform = state->transform;
    const size_t length = block_length(&transform), count = ceil_div(spectrum->n, length);
    spectrum->block = length;
    spectrum->bytes = block_spectra_bytes(transform.fft->lines, count);
    state->spectra = (struct block_spectra){mem_reserve(allocator, spectrum->bytes), count};
    transform.work_stride = block_buffers_bytes(&transform);
    transform.work =
        mem_reserve(allocator, size_mul((size_t)transform.threads, transform.work_stride));
    const bool complete = state->spectra.lines && transform.work;
    if (complete) {
        struct block_inputs inputs = {.transform = &transform,
                                      .x = x,
                                      .size = spectrum->n,
                                      .spectra = state->spectra,
                                      .end = count};
        block_inputs_forward(&inputs, 1);
        block_spectra_margins(&transform, &state->spectra, count);
    }
    mem_release(allocator, transform.work);
    return complete ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

static enum partita_status cpu_spectrum_create(struct partita_spectrum *spectrum, const void *x,
                                               size_t block)
{
    const size_t half = fft_good_size(2 * spectrum_wished(spectrum->n, block)) / 2;
    const struct fft_request request = {.n = 2 * half,
                                        .f64 = spectrum->scalar_bytes == 8,
                                        .complex = spectrum->sample_bytes > spectrum->scalar_bytes,
                                        .isa = cpu_detect()};
    struct cpu_spectrum *state = mem_allocate(&spectrum->allocator, sizeof *state);
    spectrum->state = state;
    if (!state) return PARTITA_ERR_NOMEM;
    if (!spectrum->threads) spectrum->threads = thread_default();
    state->transform = (struct block_transform){.kernels = kernels_select(request.isa, request.f64),
                                                .sample_bytes = spectrum->sample_bytes,
                                                .threads = spectrum->threads};
    const enum partita_status status =
        fft_create(&request, &spectrum->allocator, &state->transform.fft);
    if (status != PARTITA_OK) return status;
    state->transform.samples = request.n * spectrum->sample_bytes;
    state->transform.spectra = state->transform.fft->spectrum_bytes;
    return transform_all(spectrum, x);
}

static void cpu_spectrum_destroy(struct partita_spectrum *spectrum)
{
    struct cpu_spectrum *state = cpu_spectrum_of(spectrum);
    if (!state) return;
    fft_destroy(state->transform.fft);
    mem_release(&spectrum->allocator, state->spectra.lines);
    mem_release(&spectrum->allocator, state);
}

static bool cpu_spectrum_meet(const struct partita_spectrum *x, const struct partita_spectrum *h)
{
    return cpu_spectrum_of(x)->transform.kernels == cpu_spectrum_of(h)->transform.kernels &&
           fft_provider(cpu_spectrum_of(x)->transform.fft) ==
               fft_provider(cpu_spectrum_of(h)->transform.fft);
}

struct multiplying {
    struct block_transform transform;
    struct spectrum_wanted wanted;
    struct pair_sums sums;
    char *y;
};

// One task: one output block, as far as it is wanted.
static void spectra_finish_block(void *context, size_t task, int worker)
{
    const struct multiplying *call = context;
    const struct block_transform *transform = &call->transform;
    const size_t bytes = transform->sample_bytes, length = block_length(transform);
    const ptrdiff_t begin = (call->sums.first + (ptrdiff_t)task) * (ptrdiff_t)length;
    const struct range block = {begin, length}, samples = call->wanted.samples;
    const struct range wanted = range_within(block, samples.first, range_end(samples));
    struct block_buffers buffers = block_buffers_of(transform, worker);
    assert(wanted.size > 0);
    block_inverse(transform, buffers.samples, pair_sums_out(&call->sums, task), &buffers);
    transform->kernels->scale(call->y + (size_t)(wanted.first - samples.first) * bytes,
                              buffers.samples + (size_t)(wanted.first - begin) * bytes,
                              1 / transform->fft->gain,
                              wanted.size * (bytes / (transform->kernels->f64 ? 8 : 4)));
}

static void layout_multiplying(struct multiplying *call, size_t in_flight, struct arena *arena)
{
    struct block_transform *transform = &call->transform;
    transform->work_stride =
        size_add(block_buffers_bytes(transform), pair_sums_bytes(call->sums.left.count));
    call->sums.out = arena_take(arena, size_mul(transform->fft->spectrum_bytes, in_flight + 1));
    transform->work =
        arena_take(arena, size_mul((size_t)transform->threads, transform->work_stride));
}

static enum partita_status cpu_spectrum_multiply(enum partita_op op, void *y,
                                                 const struct partita_spectrum *x,
                                                 const struct partita_spectrum *h,
                                                 const struct range *range)
{
    const struct cpu_spectrum *state = cpu_spectrum_of(x);
    const struct block_spectra left = cpu_spectrum_of(h)->spectra;
    const size_t blocks = range->size / block_length(&state->transform) + 2;
    const size_t in_flight = size_min(blocks, size_max(PER_TAP_BLOCK * left.count, MIN_IN_FLIGHT));
    struct multiplying call = {.transform = state->transform,
                               .y = y,
                               .wanted = spectrum_wanted(op, x, h, range),
                               .sums = {.transform = &call.transform,
                                        .left = left,
                                        .right = state->spectra,
                                        .right_blocks = {0, state->spectra.count},
                                        .lags = op == PARTITA_CORRELATE,
                                        .gather = true}};
    struct arena arena = {0};
    layout_multiplying(&call, in_flight, &arena);
    if (!arena_reserve(&arena, &x->allocator)) return PARTITA_ERR_NOMEM;
    layout_multiplying(&call, in_flight, &arena);
    memset(y, 0, range->size * x->sample_bytes);
    for (size_t at = 0; at < call.wanted.blocks.size; at += call.sums.count) {
        call.sums.first = call.wanted.blocks.first + (ptrdiff_t)at;
        call.sums.count = size_min(call.wanted.blocks.size - at, in_flight);
        pair_sums_run(&call.sums);
        thread_loop(x->threads, call.sums.count, spectra_finish_block, &call);
    }
    mem_release(&x->allocator, arena.base);
    return PARTITA_OK;
}

const struct spectrum_backend cpu_spectra = {.create = cpu_spectrum_create,
                                             .destroy = cpu_spectrum_destroy,
                                             .meet = cpu_spectrum_meet,
                                             .multiply = cpu_spectrum_multiply};
