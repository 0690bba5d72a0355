// SPDX-License-Identifier: MIT
// Which slices run in a tick: those that the table wants done by its end, on this thread or by a
// team.
#include "stream/stream.h"
#include "work.h"
#include "workers.h"

// Runs slices in the table's order until `due` are done.
static void run_until(const struct partita_stream *stream, size_t i, size_t due)
{
    const struct partitioned *partitioned = stream->plan->state;
    struct progress *progress = ((struct partitioned_stream *)stream->state)->level[i].progress;
    for (; progress->done < due; progress->done++) {
        const struct slice at = {stream, i, progress->stage, progress->chain, progress->number};
        work_slice(&at);
        if (++progress->number < partitioned->work[i].stage[at.stage].length) continue;
        progress->number = 0;
        if (++progress->chain < partitioned->work[i].stage[at.stage].chains) continue;
        progress->chain = 0;
        progress->stage++;
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
    *own->progress = (struct progress){
        .running = true, .twice = twice, .set = state->position->set, .block = block};
    const size_t slots = level_slots(level);
    bool changed = false;
    for (size_t c = 0; c < stream->plan->shape.in_channels; c++) {
        const bool silent = state->history.loud[c] + level->n <= (block + 1) * level->hop,
                   heard = own->quiet[c] < slots;
        own->quiet[c] = !silent ? 0 : own->quiet[c] > slots ? own->quiet[c] : own->quiet[c] + 1;
        changed |= heard != (own->quiet[c] < slots);
    }
    const struct partita_filter *filters[] = {stream->filter, stream->swap.incoming};
    for (size_t which = 0; which < (twice ? 2 : 1); which++)
        if (changed || own->hearing[which].filter != filters[which])
            work_point(stream, i, which, filters[which]);
    work_prepare(stream, i);
    if (state->team) team_begin(stream, i);
}

// How many slices must be done when the current tick ends.
static size_t due_in_tick(struct partita_stream *stream, size_t i)
{
    const struct partitioned *partitioned = stream->plan->state;
    const struct partitioned_stream *state = stream->state;
    const struct level *level = &partitioned->layout.level[i];
    if (state->position->tick < level->start) return 0;
    const uint64_t ticks = state->position->tick - level->start;
    if (ticks_into_block(level, ticks) == 0) begin_block(stream, i, whole_blocks(level, ticks));
    return partitioned->work[i].due[ticks_into_block(level, ticks)];
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
        state->level[i].hearing[0].filter = state->level[i].hearing[1].filter = NULL;
        if (state->level[i].progress->running) work_point(stream, i, 0, stream->filter);
    }
    if (state->team) team_resume(stream);
}
