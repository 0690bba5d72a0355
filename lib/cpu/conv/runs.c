// SPDX-License-Identifier: MIT
// Passes of a direction, their taps and their tasks, see conv_runs.h.
#include "runs.h"

#include <stdio.h>
#include <string.h>

#include "half.h"

enum {
    MOST_PASSES = 1 << 16, // of backward data
    MOST_TAPS = 1 << 24,   // of one pair of channels
};

size_t conv_runs_kinds(const struct request *request, struct conv_kind ret[CONV_KINDS])
{
    if (request->direction != PARTITA_FORWARD) return conv_pass_kinds(request->shape, ret);
    ret[0] = (struct conv_kind){0, 1};
    return 1;
}

// Whether no output belongs to a pass.
static bool is_empty(const struct conv_pass *pass)
{
    return pass->axis[0].count == 0 || pass->axis[1].count == 0 || pass->axis[2].count == 0;
}

bool conv_runs_make(const struct request *request, size_t i, conv_cut_fn *cut, struct conv_run *ret)
{
    *ret = (struct conv_run){.parts = 1};
    if (request->direction == PARTITA_FORWARD) conv_pass_forward(request->shape, &ret->pass);
    else conv_pass_backward(request->shape, i, &ret->pass);
    if (is_empty(&ret->pass)) return false;
    ret->block = CONV_CHANNELS;
    ret->padded = ret->pass.out;
    cut(ret, request->workspace_limit);
    return true;
}

bool conv_runs_refuse(const struct request *request, struct estimate *ret)
{
    const size_t taps = shape_taps(request->shape);
    if (taps > MOST_TAPS) {
        snprintf(ret->reason, sizeof ret->reason,
                 "keeps a place for every tap: %d at most, not %zu", MOST_TAPS, taps);
        return true;
    }
    const size_t passes =
        request->direction == PARTITA_BACKWARD_DATA ? conv_pass_count(request->shape) : 1;
    if (passes <= MOST_PASSES) return false;
    snprintf(ret->reason, sizeof ret->reason, "stride and kernel make %zu sub-problems; at most %d",
             passes, MOST_PASSES);
    return true;
}

void conv_run_split(struct conv_run *run, size_t parts)
{
    const size_t blocks = (run->pass.out + run->block - 1) / run->block;
    run->part_out = (blocks + parts - 1) / parts * run->block;
    run->parts = (run->pass.out + run->part_out - 1) / run->part_out;
}

// Whether the passes between them reach every residue of every axis that there is.
static bool passes_cover(const struct request *request, size_t n_made)
{
    size_t all = 1;
    if (request->direction == PARTITA_FORWARD) return true;
    for (int i = 0; i < request->shape->rank; i++) {
        const struct axis *axis = &request->shape->axis[i];
        all = size_mul(all, axis->stride < axis->size ? axis->stride : axis->size);
    }
    return n_made == all;
}

static size_t offset_bytes(const struct conv_run *run)
{
    return size_mul(size_mul(run->pass.chunk, run->pass.terms), sizeof *run->offset);
}

// One arena: the list of kinds, then each one's offsets. Called twice, to size it and to cut it.
static struct conv_runs *cut_runs(const struct partita_plan *plan, const struct request *request,
                                  conv_cut_fn *cut, struct arena *arena)
{
    struct conv_kind kind[CONV_KINDS];
    const size_t kinds = conv_runs_kinds(request, kind);
    struct conv_runs *runs = arena_take(arena, sizeof *runs);
    struct conv_run *list = arena_take(arena, kinds * sizeof *list);
    size_t n = 0, made = 0, taps = 0;
    for (size_t k = 0; k < kinds; k++) {
        struct conv_run run;
        if (!conv_runs_make(request, kind[k].first, cut, &run)) continue;
        run.offset = arena_take(arena, offset_bytes(&run));
        made += kind[k].n;
        taps = size_add(taps, size_mul(kind[k].n, conv_run_taps(&run)));
        if (!arena->base) continue;
        if (plan->shape.half) run.pass.widen = plan_widen(plan);
        conv_pass_offsets(&run.pass, run.offset, run.pass.chunk);
        run.kind = &list[n];
        list[n++] = run;
    }
    if (arena->base) *runs = (struct conv_runs){n, passes_cover(request, made), list, taps};
    return runs;
}

enum partita_status conv_runs_create(struct partita_plan *plan, const struct request *request,
                                     conv_cut_fn *cut)
{
    struct arena arena = {0};
    cut_runs(plan, request, cut, &arena);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    plan->state = cut_runs(plan, request, cut, &arena);
    return PARTITA_OK;
}

// A pass with its axes as what was decided about the first of its kind.
static void become(const struct conv_runs *runs, struct conv_run *run)
{
    const struct conv_run *first = runs->run;
    struct conv_axis axis[3];
    const size_t weights = run->weights;
    while (!conv_pass_alike(&first->pass, &run->pass)) first++;
    memcpy(axis, run->pass.axis, sizeof axis);
    *run = *first;
    memcpy(run->pass.axis, axis, sizeof axis);
    run->weights = weights;
}

bool conv_runs_begin(const struct partita_plan *plan, struct conv_run *ret)
{
    const struct conv_runs *runs = plan->state;
    if (runs->n) *ret = runs->run[0];
    return runs->n > 0;
}

bool conv_runs_next(const struct partita_plan *plan, struct conv_run *run)
{
    const struct conv_runs *runs = plan->state;
    const size_t taps = conv_run_taps(run);
    if (plan->direction == PARTITA_FORWARD) return false;
    do {
        if (!conv_pass_next(&plan->shape, &run->pass)) return false;
    } while (is_empty(&run->pass));
    run->weights += taps;
    if (!conv_pass_alike(&run->kind->pass, &run->pass)) become(runs, run);
    return true;
}

// Taps of one block of output channels of one group: [in][term][channel of the block].
static void pack_block(const struct conv_run *run, char *packed, const char *taps,
                       size_t taps_of_cell, bool forward, size_t group, size_t first)
{
    const struct conv_pass *pass = &run->pass;
    const size_t bytes = pass->scalar_bytes, width = conv_run_width(run, first);
    const size_t n = pass->out - first < width ? pass->out - first : width;
    for (size_t term = 0; term < pass->terms; term++) {
        const size_t tap = conv_pass_tap(pass, term);
        for (size_t c = 0; c < pass->in; c++) {
            char *to = packed + (c * pass->terms + term) * width * bytes;
            for (size_t k = 0; k < n; k++, to += bytes) {
                const size_t cell = forward ? (group * pass->out + first + k) * pass->in + c
                                            : (group * pass->in + c) * pass->out + first + k;
                const char *from = taps + (cell * taps_of_cell + tap) * pass->sample_bytes;
                if (pass->widen) pass->widen(to, from, 1);
                else memcpy(to, from, bytes);
            }
            memset(to, 0, (width - n) * bytes);
        }
    }
}

// Where the packed taps of a pass, group and block of output channels begin, in taps.
static size_t block_at(const struct conv_run *run, size_t group, size_t first)
{
    return run->weights + (group * run->padded + first) * run->pass.in * run->pass.terms;
}

enum partita_status conv_runs_filter(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct conv_runs *runs = plan->state;
    const size_t bytes = plan->shape.scalar_bytes;
    filter->state = mem_allocate(&plan->allocator, size_mul(runs->taps, bytes));
    if (!filter->state) return PARTITA_ERR_NOMEM;
    struct conv_run run;
    for (bool more = conv_runs_begin(plan, &run); more; more = conv_runs_next(plan, &run))
        for (size_t group = 0; group < run.pass.groups; group++)
            for (size_t first = 0; first < run.pass.out; first += run.block)
                pack_block(&run, (char *)filter->state + block_at(&run, group, first) * bytes, taps,
                           shape_taps(&plan->shape), plan->direction == PARTITA_FORWARD, group,
                           first);
    return PARTITA_OK;
}

const char *conv_call_taps(const struct conv_call *call, size_t group, size_t first, size_t in)
{
    const struct conv_pass *pass = &call->run->pass;
    const size_t at =
        block_at(call->run, group, first) + in * pass->terms * conv_run_width(call->run, first);
    return (const char *)call->filter->state + at * pass->scalar_bytes;
}

// A row of results, every `step` samples of `to`.
static void store_row(const struct conv_call *call, char *to, size_t step, const char *sums,
                      size_t n, const struct conv_finish *finish)
{
    enum { PIECE = 256 };
    const struct kernels *kernels = call->plan->kernels;
    const struct conv_pass *pass = &call->run->pass;
    if (!pass->widen) {
        kernels->conv_store(to, step, sums, n, finish);
        return;
    }
    // Forward alone, so that step is 1, and finished sums alone: see conv_runs.h.
    float row[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t piece = n - i < PIECE ? n - i : PIECE;
        kernels->conv_store(row, 1, sums + i * pass->scalar_bytes, piece, finish);
        plan_narrow(call->plan)(to + i * pass->sample_bytes, row, piece);
    }
}

void conv_call_store(const struct conv_call *call, const struct conv_task *task, size_t channel,
                     const char *sums, const size_t extent[3], bool first_share, bool last_share)
{
    const struct conv_pass *pass = &call->run->pass;
    const struct conv_axis *axis = pass->axis;
    const struct conv_place *place = &task->place;
    const size_t bytes = pass->scalar_bytes, all = task->group * pass->out + channel;
    const bool finished = last_share && call->plan->direction == PARTITA_FORWARD;
    const char *bias = finished ? call->filter->bias : NULL;
    const struct conv_finish finish = {.add = !first_share,
                                       .bias = bias ? bias + all * bytes : NULL,
                                       .relu = finished && call->plan->shape.relu};
    const size_t items = conv_place_items(pass, place), n_d = conv_place_count(pass, place, 0);
    size_t n_h = conv_place_count(pass, place, 1), n_w = conv_place_count(pass, place, 2);
    const size_t plane_extent = extent[1] * extent[2];
    // Rows that follow one another in both are one.
    if (axis[1].spread == 1 && axis[2].spread == 1 && n_w == axis[2].out_size && n_w == extent[2]) {
        n_w *= n_h;
        n_h = 1;
    }
    for (size_t n = 0; n < items; n++)
        for (size_t d = 0; d < n_d; d++)
            for (size_t h = 0; h < n_h; h++) {
                const size_t plane = (place->item + n) * pass->groups * pass->out + all;
                const size_t at_d = axis[0].first + axis[0].spread * (place->at[0] + d),
                             at_h = axis[1].first + axis[1].spread * (place->at[1] + h),
                             at_w = axis[2].first + axis[2].spread * place->at[2];
                const size_t out = ((plane * axis[0].out_size + at_d) * axis[1].out_size + at_h) *
                                       axis[2].out_size +
                                   at_w;
                const size_t in = (n * extent[0] + d) * plane_extent + h * extent[2];
                store_row(call, call->to + out * pass->sample_bytes, axis[2].spread,
                          sums + in * bytes, n_w, &finish);
            }
}

struct conv_task conv_call_task(const struct conv_call *call, size_t task)
{
    const struct conv_run *run = call->run;
    const struct conv_pass *pass = &run->pass;
    const size_t begin = task % run->parts * run->part_out;
    return (struct conv_task){.place = conv_pass_place(pass, task / run->parts / pass->groups),
                              .group = task / run->parts % pass->groups,
                              .begin = begin,
                              .end = pass->out - begin < run->part_out ? pass->out
                                                                       : begin + run->part_out};
}

void conv_call_run(struct conv_call *call, task_fn *run)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &plan->shape;
    const struct conv_runs *runs = plan->state;
    if (!runs->covers)
        memset(call->to, 0,
               shape->batch * shape->in_channels * shape_inputs(shape) * shape->scalar_bytes);
    struct conv_run now;
    call->run = &now;
    for (bool more = conv_runs_begin(plan, &now); more; more = conv_runs_next(plan, &now))
        thread_loop(plan->threads, conv_pass_boxes(&now.pass) * now.pass.groups * now.parts, run,
                    call);
}
