// SPDX-License-Identifier: MIT
// Which slices run in a tick: those that the table wants done by its end, on this thread or by a team.
#include "partition_team.h"
#include "partition_work.h"

// Runs slices in the table's order until `due` are done.
static void run_until(const struct partita_stream *stream, size_t i, size_t due)
{
    const struct partitioned *partitioned = stream->plan->state;
    struct progress *progress = ((struct partitioned_stream *)stream->state)->level[i].progress;
    const size_t forward = forward_slices(stream, i), output = output_slices(stream, i);
    for (; progress->done < due; progress->done++) {
        const bool first = progress->done < forward;
        const struct slice at = {stream, i, progress->chain, progress->number};
        work_slice(&at, first);
        if (++progress->number < (first ? partitioned->work[i].forward : output)) continue;
        progress->number = 0;
        progress->chain = progress->done + 1 == forward ? 0 : progress->chain + 1;
    }
}

// A level's next block is complete: what it is worked on with is settled now.
static void begin_block(struct partita_stream *stream, size_t i, uint64_t block)
{
    const struct partitioned *partitioned = stream->plan->state;
    const struct level *level = &partitioned->layout.level[i];
    struct partitioned_stream *state = stream->state;
    struct level_state *own = &state->level[i];
    const bool twice = stream->swap.state == SWAP_WAITING || stream->swap.state == SWAP_FADING;
    *own->progress = (struct progress){.running = true, .twice = twice, .set = state->position->set, .block = block};
    own->filters[0] = stream->filter;
    own->filters[1] = stream->swap.incoming;
    for (size_t c = 0; c < stream->plan->shape.in_channels; c++) {
        const bool silent = state->loud[c] + level->n <= (block + 1) * level->hop;
        own->quiet[c] = !silent ? 0 : own->quiet[c] > level_slots(level) ? own->quiet[c] : own->quiet[c] + 1;
    }
    if (state->team) team_begin(stream, i);
}

// How many slices must be done when the current tick ends. While two filters run, each slice of an output counts twice.
static size_t due_in_tick(struct partita_stream *stream, size_t i)
{
    const struct partitioned *partitioned = stream->plan->state;
    const struct partitioned_stream *state = stream->state;
    const struct level *level = &partitioned->layout.level[i];
    if (state->position->tick < level->start) return 0;
    const uint64_t ticks = state->position->tick - level->start;
    const size_t forward = forward_slices(stream, i);
    if (ticks_into_block(level, ticks) == 0) begin_block(stream, i, whole_blocks(level, ticks));
    const size_t due = partitioned->work[i].due[ticks & (level_cycle(level) - 1)];
    return state->level[i].progress->twice && due > forward ? forward + 2 * (due - forward) : due;
}

void work_tick(struct partita_stream *stream)
{
    const struct partitioned *partitioned = stream->plan->state;
    const struct partitioned_stream *state = stream->state;
    size_t due[MAX_LEVELS];
    for (size_t i = 0; i < partitioned->layout.n_levels; i++) {
        due[i] = due_in_tick(stream, i);
        if (!state->team) run_until(stream, i, due[i]);
    }
    if (state->team) team_run(stream, due);
}

void work_pause(struct partita_stream *stream)
{
    const struct partitioned_stream *state = stream->state;
    if (state->team) team_pause(stream);
}

void work_drop(struct partita_stream *stream)
{
    const struct partitioned_stream *state = stream->state;
    if (state->team) team_drop(stream);
}

void work_resume(struct partita_stream *stream)
{
    const struct partitioned *partitioned = stream->plan->state;
    struct partitioned_stream *state = stream->state;
    for (size_t i = 0; i < partitioned->layout.n_levels; i++) {
        struct level_state *own = &state->level[i];
        own->filters[0] = own->filters[1] = stream->filter;
        for (size_t k = 0; own->progress->running && k < stream->plan->shape.out_channels; k++)
            work_point(stream, i, k);
    }
    if (state->team) team_resume(stream);
}
