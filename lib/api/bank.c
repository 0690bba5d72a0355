// SPDX-License-Identifier: MIT
// Public functions of banks.
#include "stream/bank.h"

#include "core/arguments.h"
#include "core/filter.h"
#include "plan.h"
#include "sized.h"

static const size_t MAX_SLOTS = (size_t)1 << 20, MAX_CHANNELS = (size_t)1 << 12,
                    MAX_TAPS = (size_t)1 << 30, MAX_BLOCK = (size_t)1 << 16;

static bool size_in_range(const struct partita_log *log, const char *field, size_t value,
                          size_t min, size_t max)
{
    if (value >= min && value <= max) return true;
    return log_line(log, "bank.%s = %zu: %zu to %zu", field, value, min, max);
}

static bool is_type_of_streams(enum partita_type type)
{
    return partita_type_size(type) && type != PARTITA_F16 && type != PARTITA_BF16;
}

static bool sizes_in_range(const struct partita_bank_options *options)
{
    const struct partita_log *log = &options->log;
    return size_in_range(log, "slots", options->slots, 1, MAX_SLOTS) &&
           size_in_range(log, "in_channels", options->in_channels, 0, MAX_CHANNELS) &&
           size_in_range(log, "out_channels", options->out_channels, 0, MAX_CHANNELS) &&
           size_in_range(log, "n_taps", options->n_taps, 1, MAX_TAPS) &&
           size_in_range(log, "block", options->block, 0, MAX_BLOCK) &&
           size_in_range(log, "latency", options->latency, 0, MAX_TAPS);
}

static enum partita_status check_options(const struct partita_bank_options *options)
{
    const struct partita_log *log = &options->log;
    if (!sizes_in_range(options)) return PARTITA_ERR_ARG;
    if (options->device && strcmp(options->device, "cpu") != 0 && options->block % 16)
        return log_error(log, PARTITA_ERR_UNSUPPORTED,
                         "bank.block = %zu: on a device a multiple of 16", options->block);
    if (options->in_channels > 1 && !options->out_channels)
        log_line(log, "bank.in_channels = %zu without out_channels: 1 sums the inputs",
                 options->in_channels);
    else if (!is_type_of_streams(options->signal))
        log_line(log, "bank.signal = %d: f32, f64, cf32 or cf64", (int)options->signal);
    else if (!is_type_of_streams(options->taps_type))
        log_line(log, "bank.taps_type = %d: f32, f64, cf32 or cf64", (int)options->taps_type);
    else if (!(options->sample_rate >= 0) || options->sample_rate > 1e12)
        log_line(log, "bank.sample_rate = %g: frames a second, or 0", options->sample_rate);
    else if (!(options->error_budget >= 0))
        log_line(log, "bank.error_budget = %g: not negative", options->error_budget);
    else if (!options->allocator.allocate != !options->allocator.release)
        log_line(log, "bank.allocator: set both functions or none");
    else return PARTITA_OK;
    return PARTITA_ERR_ARG;
}

static enum partita_status create_plan(const struct partita_bank_options *options,
                                       struct partita_plan **ret_plan)
{
    const size_t block = options->block ? options->block : 64;
    const struct partita_problem problem = {
        .signal = options->signal,
        .taps = options->taps_type,
        .in_channels = options->in_channels,
        .out_channels = options->out_channels,
        .kernel = {options->n_taps},
        .size = {PARTITA_UNBOUNDED},
        .block = block,
        .latency = options->latency,
        .whole_blocks = block % 16 == 0,
    };
    return plan_create(&problem,
                       &(struct partita_options){.log = options->log,
                                                 .allocator = options->allocator,
                                                 .device = options->device,
                                                 .error_budget = options->error_budget},
                       options->slots, ret_plan);
}

enum partita_status partita_bank_create_sized(const struct partita_bank_options *options,
                                              size_t options_bytes, struct partita_bank **ret_bank)
{
    struct partita_bank_options known;
    const struct partita_log log = log_given(options);
    if (!arguments_given(log, options, ret_bank)) return PARTITA_ERR_ARG;
    if (!sized_read(&known, sizeof known, options, options_bytes, &log, "options"))
        return PARTITA_ERR_UNSUPPORTED;
    known.log = log;
    struct partita_plan *plan = NULL;
    enum partita_status status = check_options(&known);
    if (status == PARTITA_OK) status = create_plan(&known, &plan);
    if (status == PARTITA_OK) status = bank_create(plan, known.slots, known.sample_rate, ret_bank);
    if (status != PARTITA_OK) partita_plan_destroy(plan);
    return status;
}

void partita_bank_destroy(struct partita_bank *bank)
{
    if (!bank) return;
    struct partita_plan *plan = bank->plan;
    bank_destroy(bank);
    partita_plan_destroy(plan);
}

const struct partita_plan *partita_bank_plan(const struct partita_bank *bank)
{
    return bank ? bank->plan : NULL;
}

enum partita_status partita_bank_filter_create(const struct partita_bank *bank, const void *taps,
                                               size_t n_taps, struct partita_filter **ret_filter)
{
    const struct partita_plan *plan = partita_bank_plan(bank);
    if (!arguments_given(log_of(plan), bank, taps, ret_filter) ||
        !arrays_usable(plan->log, {"taps", taps, 1, shape_alignment(&plan->shape), false}))
        return PARTITA_ERR_ARG;
    const struct shape *shape = &plan->shape;
    const size_t kernel = shape->axis[0].kernel, bytes = shape->tap_bytes;
    if (!size_in_range(&plan->log, "taps of a filter", n_taps, 1, kernel)) return PARTITA_ERR_ARG;
    if (n_taps == kernel) return filter_create(plan, taps, NULL, ret_filter);
    const size_t paths = shape->out_channels * shape->group_in;
    char *all = mem_allocate(&plan->allocator, size_mul(size_mul(paths, kernel), bytes));
    if (!all) return PARTITA_ERR_NOMEM;
    for (size_t p = 0; p < paths; p++)
        memcpy(all + p * kernel * bytes, (const char *)taps + p * n_taps * bytes, n_taps * bytes);
    const enum partita_status status = filter_create(plan, all, NULL, ret_filter);
    mem_release(&plan->allocator, all);
    return status;
}

enum partita_status partita_bank_open(struct partita_bank *bank,
                                      const struct partita_filter *filter, size_t *ret_slot)
{
    if (!bank || !filter || !ret_slot || filter->plan != bank->plan) return PARTITA_ERR_ARG;
    return bank_open(bank, filter, ret_slot);
}

enum partita_status partita_bank_close(struct partita_bank *bank, size_t slot)
{
    if (!bank || slot >= bank->n_slots) return PARTITA_ERR_ARG;
    if (bank_slot_state(bank, slot) != BANK_OPEN) return PARTITA_ERR_STATE;
    bank_close(bank, slot);
    return PARTITA_OK;
}

enum partita_status partita_bank_swap(struct partita_bank *bank, size_t slot,
                                      const struct partita_filter *filter, size_t fade)
{
    if (!bank || slot >= bank->n_slots) return PARTITA_ERR_ARG;
    if (bank_slot_state(bank, slot) != BANK_OPEN) return PARTITA_ERR_STATE;
    if (!filter || filter->plan != bank->plan) return PARTITA_ERR_ARG;
    if (!engine_swaps(bank->plan->engine)) return PARTITA_ERR_UNSUPPORTED;
    bank_swap(bank, slot, filter, fade);
    return PARTITA_OK;
}

enum partita_slot_state partita_bank_slot_state(const struct partita_bank *bank, size_t slot)
{
    if (!bank || slot >= bank->n_slots) return PARTITA_SLOT_FREE;
    switch (bank_slot_state(bank, slot)) {
    case BANK_OPEN:
        return swap_queue_settled(bank->slots[slot].swap_queue) ? PARTITA_SLOT_OPEN
                                                                : PARTITA_SLOT_SWAPPING;
    case BANK_CLOSING:
        return PARTITA_SLOT_CLOSING;
    case BANK_FREE:
        break;
    }
    return PARTITA_SLOT_FREE;
}

size_t partita_bank_lead(const struct partita_bank *bank, size_t slot)
{
    if (!bank || slot >= bank->n_slots) return 0;
    return atomic_load(&bank->slots[slot].lead) * bank->plan->shape.block;
}

void *partita_bank_input(const struct partita_bank *bank, size_t slot)
{
    if (!bank || slot >= bank->n_slots) return NULL;
    return bank->inputs + slot * bank->input_bytes;
}

const void *partita_bank_output(const struct partita_bank *bank, size_t slot)
{
    if (!bank || slot >= bank->n_slots) return NULL;
    return bank->outputs + slot * bank->output_bytes;
}

void partita_bank_process(struct partita_bank *bank)
{
    bank_process(bank);
}

enum partita_status partita_bank_status(const struct partita_bank *bank)
{
    return bank ? (enum partita_status)atomic_load(&bank->status) : PARTITA_ERR_ARG;
}

enum partita_status partita_bank_stats_sized(const struct partita_bank *bank,
                                             struct partita_stream_stats *ret_stats,
                                             size_t stats_bytes)
{
    struct partita_stream_stats stats;
    if (!bank || !ret_stats) return PARTITA_ERR_ARG;
    if (!(bank->deadline > 0)) return PARTITA_ERR_STATE;
    stats_read(&bank->stats, &stats);
    sized_write(ret_stats, stats_bytes, &stats, sizeof stats);
    return PARTITA_OK;
}
