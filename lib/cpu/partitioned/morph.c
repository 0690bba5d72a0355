// SPDX-License-Identifier: MIT
// The moving weights of a stream, block by block, and the fade of the changes.
#include "morph.h"

#include <assert.h>
#include <string.h>

#include "kernels/kernels.h"

bool morph_is_served(const struct partita_plan *plan)
{
    return plan->engine->stream.layout == partitioned_stream_layout;
}

struct morph *morph_of(const struct partita_stream *stream)
{
    return morph_is_served(stream->plan) ? partitioned_stream_of(stream)->morph : NULL;
}

enum partita_status morph_open(struct partita_stream *stream,
                               const struct partita_filter *const *filters, size_t n,
                               const double *weights)
{
    struct partitioned_stream *state = partitioned_stream_of(stream);
    const enum partita_status status =
        morph_create(stream->plan, filters, n, weights, &state->morph);
    if (status != PARTITA_OK) return status;
    stream->filter = &state->morph->combined;
    for (size_t i = 0; i < partitioned_of(stream->plan)->layout.n_segments; i++)
        for (size_t out = 0; out < stream->plan->shape.out_channels; out++)
            state->segment[i].active[1].any[out] = true; // the inverse transforms of changes
    return PARTITA_OK;
}

void morph_post(struct morph *morph, const double *weights, size_t frames)
{
    memcpy(morph->posted[morph->queue.posting], weights, morph->n * sizeof *weights);
    swap_queue_post(&morph->queue, &morph->combined, frames);
}

size_t morph_lag(const struct partita_stream *stream, size_t tap)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    const struct morph *morph = morph_of(stream);
    size_t i = layout->n_segments;
    while (i > 0 && tap < layout->segment[i - 1].first) i--;
    // In the head a quantum is a block, which begins when it is output.
    if (i == 0) return (morph->part[layout->n_segments].n_slices + 1) * layout->quantum;
    const struct partition_segment *segment = &layout->segment[i - 1];
    const size_t blocks = morph->part[i - 1].n_slices + 1;
    return (blocks * segment->quanta + segment->window) * layout->quantum;
}

// The weights that are asked for at the start of a quantum.
static void asked_weights(const struct morph *morph, uint64_t frames, double *ret)
{
    const struct morph_request *request = morph->request;
    const bool moving = frames < request->frames;
    const double share = moving ? (double)frames / (double)request->frames : 1;
    for (size_t k = 0; k < morph->n; k++)
        ret[k] = moving ? request->from[k] + (request->to[k] - request->from[k]) * share
                        : request->to[k];
}

// Chooses the next slice whose weights are not those that are asked for, and gives it these.
static bool change_next(const struct morph *morph, const struct morph_part *part)
{
    const size_t bytes = morph->n * sizeof *part->weights;
    for (size_t tried = 0; tried < part->n_slices; tried++) {
        const size_t slice = (part->cycle->next + tried) % part->n_slices;
        double *weights = part->weights + slice * morph->n;
        if (!memcmp(weights, morph->request->now, bytes)) continue;
        memcpy(weights, morph->request->now, bytes);
        part->cycle->slice = slice, part->cycle->next = (slice + 1) % part->n_slices;
        return true;
    }
    return false;
}

void morph_begin_quantum(struct partita_stream *stream)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    struct morph *morph = morph_of(stream);
    struct morph_request *request = morph->request;
    const struct morph_part *head = &morph->part[layout->n_segments];
    const uint64_t now = partitioned_stream_of(stream)->position->quantum;
    asked_weights(morph, (now - request->quantum) * layout->quantum, request->now);
    const struct pending_swap *posted = swap_queue_take(&morph->queue);
    if (posted) {
        const size_t bytes = morph->n * sizeof *request->to;
        memcpy(request->from, request->now, bytes);
        memcpy(request->to, morph->posted[morph->queue.taken], bytes);
        request->quantum = now, request->frames = posted->fade;
        asked_weights(morph, 0, request->now);
    }
    head->cycle->moving[0] = change_next(morph, head);
    if (head->cycle->moving[0]) morph_sum_head(stream->plan, morph);
}

bool morph_begin_block(struct partita_stream *stream, size_t i, uint64_t block)
{
    const struct morph *morph = morph_of(stream);
    const struct morph_part *part = &morph->part[i];
    assert(i < partitioned_of(stream->plan)->layout.n_segments && part->n_slices > 0);
    return part->cycle->moving[block % 2] = change_next(morph, part);
}

// The products of an output's change with the spectra of a block, and of the blocks after it in its
// batch that have sums with the former spectra.
static void add_change_products(const struct task *at, const struct cmac_path *path, size_t n_sums,
                                char *const *sums, struct fft_steps lines, bool overwrite)
{
    const size_t slots = partition_slots(at->segment);
    for (size_t sum = 0, n; sum < n_sums; sum += n) {
        n = n_sums - sum == 3 ? 2 : n_sums - sum;
        assert(n <= CMAC_SUMS && (sum == 0 || path->first * at->segment->multiple >= sum));
        const struct cmac_terms terms = {.slots = slots,
                                         .newest = (at->state->slot + sum) % slots,
                                         .multiple = at->segment->multiple,
                                         .sums = n,
                                         .overwrite = {sum == 0 && overwrite},
                                         .x_near = true};
        void *y[CMAC_SUMS];
        for (size_t k = 0; k < n; k++) y[k] = sums[sum + k] + lines.first * SPECTRUM_LINE_BYTES;
        at->stream->plan->kernels->cmac_partitions(y, &terms, path, 1, 0, lines.end - lines.first);
    }
}

void morph_change_lines(const struct task *at, size_t out, size_t age, char *const *sums,
                        struct fft_steps lines)
{
    const struct partita_plan *plan = at->stream->plan;
    const struct morph *morph = morph_of(at->stream);
    const size_t i = (size_t)(at->segment - partitioned_of(plan)->layout.segment);
    const struct morph_part *part = &morph->part[i];
    const struct morph_slice slice = morph_slice_at(plan, i, part->cycle->slice);
    const size_t pitch = slot_pitch(at->segment), batch = at->segment->batch;
    // Tasks of two chains may run at once.
    char *changes = part->changes + at->chain * part->chain_bytes;
    size_t n_sums = 1;
    if (slice.section == SECTION_BATCH) n_sums = batch - age;
    if (slice.section == SECTION_PAIR && age % 2 == 0) n_sums = 2;
    for (struct fft_steps some = lines; some.first < lines.end; some.first = some.end) {
        bool overwrite = true;
        some.end = size_min(some.first + MORPH_LINES, lines.end);
        for (size_t p = morph->first_path[out]; p < morph->first_path[out + 1]; p++) {
            struct cmac_path path = morph_sum_lines(plan, morph, i, p, some, changes);
            if (path.count == 0) continue;
            const size_t line = morph->heads[p].channel * at->work->pitch + some.first;
            path.x = at->state->slots + line * pitch * SPECTRUM_LINE_BYTES;
            path.x_pitch = pitch;
            add_change_products(at, &path, n_sums, sums, some, overwrite);
            overwrite = false;
        }
        if (overwrite)
            memset(sums[0] + some.first * SPECTRUM_LINE_BYTES, 0,
                   (some.end - some.first) * SPECTRUM_LINE_BYTES);
    }
}

// y += (first + i) * slope * change of n frames.
static void add_faded(const struct partita_stream *stream, char *y, const char *change, size_t n,
                      double first, double slope)
{
    const struct shape *shape = &stream->plan->shape;
    const size_t frame = shape->complex_signal ? 2 : 1;
    char *faded = partitioned_stream_of(stream)->samples[1]; // of swaps, which this stream has not
    memset(faded, 0, n * shape->sample_bytes);
    stream->plan->kernels->blend(faded, change, n * frame, frame, first, slope);
    stream->plan->kernels->add(y, faded, n * frame);
}

// The head has the new taps already: its change fades from -1 to 0.
static void fade_head(const struct partita_stream *stream, size_t channel, char *y, size_t n)
{
    const struct partita_plan *plan = stream->plan;
    const size_t quantum = partitioned_of(plan)->layout.quantum;
    const struct partitioned_stream *state = partitioned_stream_of(stream);
    const struct morph *morph = state->morph;
    const uint64_t now = position_frame(state->position, quantum) + state->history.frames;
    memset(morph->samples, 0, n * plan->shape.sample_bytes);
    for (size_t p = morph->first_path[channel]; p < morph->first_path[channel + 1]; p++) {
        struct history_taps change;
        const size_t delay = morph_head_change(plan, morph, p, &change);
        if (change.n)
            history_filter(&state->history, plan, now - delay, &change, morph->samples, n);
    }
    add_faded(stream, y, morph->samples, n, (double)state->position->fill + 1 - (double)quantum,
              1 / (double)quantum);
}

void morph_fade(const struct partita_stream *stream, size_t channel, char *y, size_t n)
{
    const struct partition_layout *layout = &partitioned_of(stream->plan)->layout;
    const struct morph *morph = morph_of(stream);
    const struct position *position = partitioned_stream_of(stream)->position;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        const uint64_t quanta = position->quantum - segment->start - segment->window;
        if (position->quantum < segment->start + segment->window ||
            !morph->part[i].cycle->moving[complete_blocks(segment, quanta) % 2])
            continue;
        const size_t first = quanta_into_block(segment, quanta) * layout->quantum + position->fill;
        const char *change = ready_outputs(stream, i, position->quantum, 1, channel);
        add_faded(stream, y, change + position->fill * stream->plan->shape.sample_bytes, n,
                  (double)(first + 1), 1 / (double)segment->hop);
    }
    if (morph->part[layout->n_segments].cycle->moving[0]) fade_head(stream, channel, y, n);
}
