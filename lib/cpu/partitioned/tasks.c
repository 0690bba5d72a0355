// SPDX-License-Identifier: MIT
// Tasks: steps of a forward transform, the copy of a spectrum or its zeros, products of spectra,
// steps of an inverse transform.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "morph.h"

enum {
    BYTES_AHEAD = 4096,    // of a filter, by which its products prefetch it
    X_BYTES_AHEAD = 24576, // of the next stream of a bank
};

static size_t batch_index(const struct task *at)
{
    return index_in_batch(at->segment, at->state->progress->block);
}

// Line 0 of a slot of the chain's input.
static char *slot_at(const struct task *at, size_t slot)
{
    assert(slot < slot_pitch(at->segment));
    const size_t lines = at->chain * at->work->pitch * slot_pitch(at->segment) + slot;
    return at->state->slots + lines * SPECTRUM_LINE_BYTES;
}

void tasks_locate(const struct partita_stream *stream, size_t i)
{
    const struct task at = task_first(stream, i);
    const size_t ring = partitioned_of(stream->plan)->ring;
    const uint64_t block = at.state->progress->block;
    assert(at.segment->n <= ring);
    at.state->slot = block % partition_slots(at.segment);
    // Before the stream's start the ring holds zeros.
    at.state->window = ((block + 1) * at.segment->hop + 2 * ring - at.segment->n) % ring;
}

// Some steps of the transform of an input's current window into the slot of the oldest spectrum,
// unless the window is silent.
static void transform_task(const struct task *at)
{
    const struct partition_segment *segment = at->segment;
    const struct segment_work *work = at->work;
    const struct segment_state *state = at->state;
    if (silent_blocks(state, at->chain, state->progress->block) > 0) return;
    const struct history *history = &partitioned_stream_of(at->stream)->history;
    const struct fft_target target = {.to = slot_at(at, state->slot),
                                      .work = state->spectrum +
                                              at->chain * work->pitch * SPECTRUM_LINE_BYTES,
                                      .stride = slot_pitch(segment) * SPECTRUM_LINE_BYTES};
    fft_forward_apart(work->fft, &target,
                      history_at(history, &at->stream->plan->shape, at->chain, state->window),
                      state->scratch + at->chain * work->fft->scratch_bytes,
                      split_range(&work->transform, at->number));
}

// Zeros in place of a silent window's spectrum, and the copy of a slot that has one.
static void store_task(const struct task *at)
{
    const size_t slots = partition_slots(at->segment), pitch = slot_pitch(at->segment);
    const uint64_t silent = silent_blocks(at->state, at->chain, at->state->progress->block);
    const struct fft_steps lines =
        split_range(&at->work->store, at->number - at->work->transform.tasks);
    const size_t slot = at->state->slot;
    const bool copied = slot + slots < pitch;
    // A silent window's slot may hold zeros already.
    if (silent > slots || (!silent && !copied)) return;
    char *slot_begin = slot_at(at, slot);
    for (size_t line = lines.first; line < lines.end; line++) {
        char *to = slot_begin + line * pitch * SPECTRUM_LINE_BYTES;
        if (silent) memset(to, 0, SPECTRUM_LINE_BYTES);
        if (copied) memcpy(to + slots * SPECTRUM_LINE_BYTES, to, SPECTRUM_LINE_BYTES);
    }
}

// Lists the products of one section of an output.
static size_t list_section(const struct task *at, size_t i, size_t section,
                           struct active_paths *active, size_t out)
{
    const struct partitioned_filter *filter = active->filter->state;
    const size_t pitch = slot_pitch(at->segment);
    const size_t input = at->work->pitch * pitch * SPECTRUM_LINE_BYTES;
    struct cmac_path *to = active->section[section].paths + filter->view.first_path[out];
    size_t n = 0;
    for (size_t p = filter->view.first_path[out]; p < filter->view.first_path[out + 1]; p++) {
        const struct path_section *path = &filter->paths[p].segment[i][section];
        const size_t in = filter->view.heads[p].channel;
        const bool silent = silent_blocks(at->state, in, at->state->progress->block) >=
                            partition_slots(at->segment);
        if (path->count == 0 || silent) continue;
        assert(path->first + path->count <= at->segment->partitions);
        to[n++] = (struct cmac_path){.x = at->state->slots + in * input,
                                     .h = path->spectra,
                                     .scale = path->scales,
                                     .first = path->first,
                                     .count = path->count,
                                     .x_pitch = pitch,
                                     .h_pitch = path->stride};
    }
    return active->section[section].n_paths[out] = n;
}

void tasks_list_paths(const struct partita_stream *stream, size_t i, size_t which,
                      const struct partita_filter *filter)
{
    const struct task at = task_first(stream, i);
    struct active_paths *active = &at.state->active[which];
    active->filter = filter;
    for (size_t out = 0; out < stream->plan->shape.out_channels; out++) {
        size_t n = 0;
        for (size_t s = 0; s < SECTIONS; s++) n += list_section(&at, i, s, active, out);
        active->any[out] = n > 0;
    }
}

// Of the bits of valid sums: those of a share's sums for `blocks` blocks, the first
// one at an index of the batch.
static unsigned share_bits(const struct partition_segment *segment, size_t share, size_t index,
                           size_t blocks)
{
    unsigned bits = 0;
    for (size_t k = 0; k < blocks; k++)
        bits |= 1U << (share * PARTITION_MAX_BATCH + index_in_batch(segment, index + k));
    return bits;
}

void tasks_plan(const struct partition_segment *segment, struct segment_work *work)
{
    for (size_t age = 0; age < segment->batch; age++) {
        struct share_sums *sums = &work->share[age];
        sums->terms.n_more = partition_sums(segment, age, sums->sums) - 1;
        sums->terms.sums = sums->sums[0].blocks;
        sums->terms.slots = partition_slots(segment);
        sums->terms.multiple = segment->multiple;
        sums->terms.i16 = segment->i16;
        sums->terms.ahead = segment->far ? BYTES_AHEAD / filter_line_bytes(segment) : 0;
    }
    for (size_t index = 0; index < segment->batch; index++)
        for (size_t share = 0; share < segment->batch; share++) {
            const struct share_sums *sums = &work->share[index_in_batch(segment, index - share)];
            work->complete[index] |= (uint16_t)share_bits(segment, share, index, 1);
            for (size_t i = 0; i <= sums->terms.n_more; i++)
                work->filled[index] |=
                    (uint16_t)share_bits(segment, share, index, sums->sums[i].blocks);
        }
}

// The set of sums and outputs of the block's first or second filter.
static size_t set_of(const struct segment_state *state, size_t which)
{
    return which ? 1 - state->progress->set : state->progress->set;
}

void tasks_prepare(const struct partita_stream *stream, size_t i)
{
    const struct task at = task_first(stream, i);
    const struct segment_state *state = at.state;
    const size_t outputs = stream->plan->shape.out_channels, index = batch_index(&at);
    const unsigned filled = at.work->filled[index], complete = at.work->complete[index];
    for (size_t which = 0; which < (state->progress->two_filters ? 2 : 1); which++)
        for (size_t out = 0; out < outputs; out++) {
            const size_t set = set_of(state, which) * outputs + out;
            const unsigned added = state->active[which].any[out] ? filled : 0;
            state->begun[set] = state->carried[set];
            state->carried[set] = (uint16_t)((state->begun[set] | added) & ~complete);
        }
}

static unsigned begun_bits(const struct task *at, size_t which, size_t out)
{
    return at->state->begun[set_of(at->state, which) * at->stream->plan->shape.out_channels + out];
}

static char *sum_at(const struct task *at, size_t which, size_t index, size_t out)
{
    const size_t block =
        set_of(at->state, which) * at->segment->batch + index_in_batch(at->segment, index);
    const size_t spectrum = block * at->stream->plan->shape.out_channels + out;
    return at->state->sum + spectrum * at->work->pitch * SPECTRUM_LINE_BYTES;
}

// The first reads of the products of the stream that a bank feeds next, if its block ends in this
// call too. Streams whose blocks end together follow one another in a bank. Only for streams of one
// path and blocks that are computed in one quantum, which banks of many slots have. The lists of
// paths are those of the stream's last block: where they change, something else is prefetched.
static bool find_next(const struct task *at, struct fft_steps lines, struct cmac_next *ret)
{
    const struct partita_stream *next = at->stream->next;
    const struct partition_segment *segment = at->segment;
    if (!next || segment->window > 1 || at->work->product.tasks > 1) return false;
    const size_t i = (size_t)(segment - partitioned_of(next->plan)->layout.segment);
    const struct partitioned_stream *state = partitioned_stream_of(next);
    const struct active_paths *active = &state->segment[i].active[0];
    const uint64_t now = state->position->quantum, quanta = now - segment->start;
    if (now < segment->start || quanta_into_block(segment, quanta) > 0) return false;
    if (!active->filter || shape_path_count(&next->plan->shape) > 1) return false;
    if (active->section[SECTION_BATCH].n_paths[0] == 0) return false;
    const struct cmac_path *path = &active->section[SECTION_BATCH].paths[0];
    const size_t share = index_in_batch(segment, complete_blocks(segment, quanta));
    const size_t line = slot_pitch(segment) * SPECTRUM_LINE_BYTES;
    *ret = (struct cmac_next){.lines =
                                  size_min(ceil_div(X_BYTES_AHEAD, line), lines.end - lines.first),
                              .x = path->x,
                              .h = path->h,
                              .first = share * at->work->product.units};
    return true;
}

// The products of some lines of a share, and their common values for all outputs and filters.
struct share_products {
    size_t share, index;              // of the block in its batch
    const struct partition_sum *sums; // [1 + terms.n_more]
    struct cmac_terms terms;
    struct cmac_more more[SECTIONS - 1];
    struct cmac_next next;
};

// One output's products for some lines of a share by one of the filters.
static void add_line_products(const struct task *at, size_t which, size_t out,
                              struct share_products *products, struct fft_steps lines)
{
    const struct active_paths *active = &at->state->active[which];
    const struct partitioned_filter *filter = active->filter->state;
    const size_t first = filter->view.first_path[out];
    const size_t group_out = at->stream->plan->shape.group_out; // outputs that read the same inputs
    const unsigned begun = begun_bits(at, which, out) >> products->share * PARTITION_MAX_BATCH;
    struct cmac_terms *terms = &products->terms;
    void *y[CMAC_SUMS];
    terms->x_near = which > 0 || (out > 0 && out % group_out > 0);
    for (size_t k = 0; k < terms->sums; k++) {
        const size_t index = index_in_batch(at->segment, products->index + k);
        y[k] = sum_at(at, which, index, out);
        terms->overwrite[k] = !(begun >> index & 1);
    }
    for (size_t i = 0; i < terms->n_more; i++) {
        const struct partition_sum *sum = &products->sums[i + 1];
        products->more[i] =
            (struct cmac_more){active->section[sum->section].paths + first,
                               active->section[sum->section].n_paths[out], sum->blocks};
    }
    const enum partition_section section = products->sums[0].section;
    at->stream->plan->kernels->cmac_partitions(y, terms, active->section[section].paths + first,
                                               active->section[section].n_paths[out], lines.first,
                                               lines.end);
}

// When all inputs of an output fall silent in mid-batch, some shares hold final sums and others are
// stale. Clears those.
static void clear_sum(const struct task *at, size_t which, size_t out, size_t share,
                      struct fft_steps lines)
{
    const size_t index = batch_index(at);
    const unsigned begun = begun_bits(at, which, out);
    if (!(begun & at->work->complete[index])) return;
    if (begun & share_bits(at->segment, share, index, 1)) return;
    memset(sum_at(at, which, index, out) + lines.first * SPECTRUM_LINE_BYTES, 0,
           (lines.end - lines.first) * SPECTRUM_LINE_BYTES);
}

// The number of lines whose inputs stay in the cache for the next output.
static size_t lines_at_once(const struct task *at)
{
    enum { NEAR_BYTES = 1 << 16 };
    const size_t inputs = at->stream->plan->shape.in_channels;
    const size_t bytes = inputs * partition_slots(at->segment) * SPECTRUM_LINE_BYTES;
    const size_t lines = bytes < NEAR_BYTES ? NEAR_BYTES / bytes : 1;
    return lines > CMAC_SUMS ? lines - lines % CMAC_SUMS : lines; // of so many, none by itself
}

// One output's products by one of the filters, or their replacement if there are none. The second
// filter of a stream that morphs is the change of the first one, after whose products it is made.
static void add_or_clear(const struct task *at, size_t which, size_t out,
                         struct share_products *products, struct fft_steps lines)
{
    if (which && partitioned_stream_of(at->stream)->morph) {
        char *sums[CMAC_SUMS];
        for (size_t k = 0; k < at->segment->batch; k++)
            sums[k] = sum_at(at, k == 0, products->index + k, out);
        morph_change_lines(at, out, index_in_batch(at->segment, products->index - products->share),
                           sums, lines);
    } else if (at->state->active[which].any[out])
        add_line_products(at, which, out, products, lines);
    else clear_sum(at, which, out, products->share, lines);
}

// Products of some lines, for all outputs, of the share whose batch began `age` blocks before.
static void multiply_share(const struct task *at, size_t age, struct fft_steps range)
{
    const struct share_sums *sums = &at->work->share[age];
    const size_t filters = at->state->progress->two_filters ? 2 : 1;
    const size_t outputs = at->stream->plan->shape.out_channels;
    const size_t index = batch_index(at), share = index_in_batch(at->segment, index - age);
    const size_t first = share * at->work->product.units, end = at->work->lines;
    // The last share may have fewer lines.
    const struct fft_steps all = {size_min(first + range.first, end),
                                  size_min(first + range.end, end)};
    struct share_products products;
    products.share = share, products.index = index, products.sums = sums->sums;
    products.terms = sums->terms;
    products.terms.newest = at->state->slot, products.terms.more = products.more;
    if (sums->sums[0].section == SECTION_BATCH && find_next(at, all, &products.next))
        products.terms.next = &products.next;
    if (filters * outputs == 1) {
        if (all.first < all.end) add_or_clear(at, 0, 0, &products, all);
        return;
    }
    const size_t step = lines_at_once(at);
    for (struct fft_steps lines = {.first = all.first}; lines.first < all.end;
         lines.first = lines.end) {
        lines.end = all.end - lines.first < step ? all.end : lines.first + step;
        for (size_t out = 0; out < outputs; out++)
            for (size_t which = 0; which < filters; which++)
                add_or_clear(at, which, out, &products, lines);
    }
}

// Products of a block for some lines of the share whose batch begins with the block, which have
// most of the products, and for the same part of the lines of all other shares, one share after the
// other. So tasks are alike, with few calls of the kernel.
static void product_task(const struct task *at)
{
    const struct segment_work *work = at->work;
    const size_t length = work->stage[STAGE_PRODUCTS].length, units = work->product.units;
    const struct fft_steps range = split_range(&work->product, at->chain * length + at->number);
    const size_t others = at->segment->batch - 1;
    if (range.first == range.end) return;
    multiply_share(at, 0, range);
    for (size_t share = 0; share < others; share++) {
        const struct fft_steps part = {size_max(others * range.first, share * units),
                                       size_min(others * range.end, (share + 1) * units)};
        if (part.first < part.end)
            multiply_share(
                at, share + 1,
                (struct fft_steps){part.first - share * units, part.end - share * units});
    }
}

static char *outputs_at(const struct task *at, size_t which)
{
    const struct shape *shape = &at->stream->plan->shape;
    const size_t block = 2 * set_of(at->state, which) + at->state->progress->block % 2;
    const size_t first = (block * shape->out_channels + at->chain) * at->segment->n;
    return at->state->out + first * shape->sample_bytes;
}

// Zeros in place of some steps of the inverse transform.
static void silence_outputs(const struct task *at, char *out)
{
    const struct partition_segment *segment = at->segment;
    const size_t bytes = at->stream->plan->shape.sample_bytes, tasks = at->work->transform.tasks;
    const size_t first = segment->hop * at->number / tasks;
    const size_t end = segment->hop * (at->number + 1) / tasks;
    memset(out + (segment->n - segment->hop + first) * bytes, 0, (end - first) * bytes);
}

// Some steps of an output's inverse transforms, one for each filter.
static void inverse_task(const struct task *at)
{
    const struct segment_state *state = at->state;
    const struct segment_work *work = at->work;
    const size_t index = batch_index(at), outputs = at->stream->plan->shape.out_channels;
    const unsigned complete = at->work->complete[index];
    const size_t filters = state->progress->two_filters && !state->progress->sums_only ? 2 : 1;
    for (size_t which = 0; which < filters; which++) {
        char *scratch = state->scratch + (which * outputs + at->chain) * work->fft->scratch_bytes;
        if (!state->active[which].any[at->chain] && !(begun_bits(at, which, at->chain) & complete))
            silence_outputs(at, outputs_at(at, which));
        else
            fft_inverse_steps(work->fft, outputs_at(at, which), sum_at(at, which, index, at->chain),
                              scratch, split_range(&work->transform, at->number), FFT_UPPER);
    }
}

void task_run(const struct task *at)
{
    assert(at->chain < at->work->stage[at->stage].chains);
    assert(at->number < at->work->stage[at->stage].length);
    if (at->stage == STAGE_INVERSE) inverse_task(at);
    else if (at->stage == STAGE_PRODUCTS) product_task(at);
    else if (at->number < at->work->transform.tasks) transform_task(at);
    else store_task(at);
}
