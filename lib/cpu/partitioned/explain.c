// SPDX-License-Identifier: MIT
// A partitioned plan in words: the levels as a table, what a call costs, and a timeline of the work
// that the calls of the longest level's period bring due.
#include <math.h>

#include "partitioned.h"

enum { MAX_COLUMNS = 64 };

// Seconds a frame of one level's slices.
static double level_rate(const struct partita_plan *plan, size_t i)
{
    const struct partitioned *partitioned = plan->state;
    const struct level *level = &partitioned->layout.level[i];
    const struct work *work = &partitioned->work[i];
    return slices_seconds(work, 0, block_slices(work)) / (double)level->hop;
}

// What every call of the problem's block does besides the slices: the head, the copies, the calls
// of kernels.
static double rest_seconds(const struct partita_plan *plan)
{
    const struct partitioned *partitioned = plan->state;
    double rest = partitioned->load.mean;
    for (size_t i = 0; i < partitioned->layout.n_levels; i++)
        rest -= level_rate(plan, i) * (double)partitioned->load.frames;
    return fmax(rest, 0);
}

static void describe_level(const struct partita_plan *plan, size_t i, struct text *text)
{
    const struct partitioned *partitioned = plan->state;
    const struct level *level = &partitioned->layout.level[i];
    const struct work *work = &partitioned->work[i];
    const size_t taps = level->multiple * level->hop, span = plan->shape.axis[0].span;
    const size_t end = level->first + level->parts * taps;
    const double transform = slices_seconds(work, 0, work->transform.slices);
    const size_t inputs = stage_slices(work, STAGE_FORWARD);
    const double products =
        slices_seconds(work, inputs, inputs + stage_slices(work, STAGE_PRODUCTS));
    const double mean = partitioned->load.mean / (double)partitioned->load.frames;
    text_add(text,
             "  %5zu %8zu .. %-8zu %4zu x %-6zu %6zu %6zu %6zu %5zu %7.2f us %8.2f us %5.1f %%\n",
             i, level->first, (end < span ? end : span) - 1, level->parts, taps, level->hop,
             level->n, level->bundle, level->ticks, transform * 1e6, products * 1e6,
             100 * level_rate(plan, i) / mean);
}

static void describe_levels(const struct partita_plan *plan, struct text *text)
{
    const struct partitioned *partitioned = plan->state;
    const struct layout *layout = &partitioned->layout;
    const double rest = 100 * rest_seconds(plan) / partitioned->load.mean;
    text_add(text, "  %5s %5s%-14s  %-13s %6s %6s %6s %5s %10s %11s %7s\n", "level", "", "taps",
             "partitions", "hop", "size", "bundle", "ticks", "transform", "products", "share");
    if (layout->head)
        text_add(text, "  %5s %8d .. %-8zu %-63s %5.1f %%\n", "head", 0, layout->head - 1,
                 "  summed directly, with all copies", rest);
    else
        text_add(text, "  %5s %8s    %-8s %-63s %5.1f %%\n", "head", "none", "", "  copies alone",
                 rest);
    for (size_t i = 0; i < layout->n_levels; i++) describe_level(plan, i, text);
}

// A transform that runs in one piece puts all its time into one call.
static void describe_uncut(const struct partita_plan *plan, struct text *text)
{
    const struct partitioned *partitioned = plan->state;
    for (size_t i = partitioned->layout.n_levels; i-- > 0;) {
        const struct work *work = &partitioned->work[i];
        if (fft_steps(work->fft) > 1 || work->transform.seconds < partitioned->load.mean / 2)
            continue;
        text_add(text,
                 "  transforms of %s run in one piece, up to %zu samples: the worst call pays for "
                 "a whole one\n",
                 fft_provider(work->fft), fft_size(work->fft));
        return;
    }
}

static void describe_load(const struct partita_plan *plan, struct text *text)
{
    const struct partita_load *load = &((const struct partitioned *)plan->state)->load;
    text_add(
        text,
        "  a call of %zu frames takes %.3g us in the mean, %.3g us at worst, %.2f times the mean\n",
        load->frames, load->mean * 1e6, load->worst * 1e6, load->worst / load->mean);
    if (plan->stream_threads > 1)
        text_add(text, "  on one thread; %d share it\n", plan->stream_threads);
    text_add(text, "  a swap begins to fade within %zu frames\n", load->swap_delay);
}

// What one level does in a tick, counted from any begin of the longest period.
static double tick_seconds(const struct partita_plan *plan, size_t i, size_t tick)
{
    const struct partitioned *partitioned = plan->state;
    const struct level *level = &partitioned->layout.level[i];
    const struct work *work = &partitioned->work[i];
    const size_t at = ticks_into_block(level, tick + level->ticks - level->start % level->ticks);
    return slices_seconds(work, at ? work->due[at - 1] : 0, work->due[at]);
}

// The calls of one period, compressed.
struct timeline {
    size_t first, end;     // levels that are added up
    double rest;           // of every call, besides
    size_t call;           // ticks that a call brings due
    size_t columns, width; // ticks a column
    double scale;          // seconds of the highest mark
};

static double ticks_seconds(const struct partita_plan *plan, const struct timeline *line,
                            size_t tick)
{
    double seconds = 0;
    for (size_t i = line->first; i < line->end; i++) seconds += tick_seconds(plan, i, tick);
    return seconds;
}

// One row: each column the heaviest of the calls that begin in it. Work too small for a mark still
// gets the lowest.
static void draw(const struct partita_plan *plan, const struct timeline *line, struct text *text)
{
    static const char marks[] = " .:-=+*#%@";
    const int top = sizeof marks - 2;
    char row[MAX_COLUMNS + 1] = "";
    double call = line->rest;
    for (size_t tick = 0; tick < line->call; tick++) call += ticks_seconds(plan, line, tick);
    for (size_t c = 0; c < line->columns; c++) {
        double most = 0;
        for (size_t tick = c * line->width; tick < (c + 1) * line->width; tick++) {
            most = fmax(most, call);
            call += ticks_seconds(plan, line, tick + line->call) - ticks_seconds(plan, line, tick);
        }
        const double share = most / line->scale;
        const int mark = (int)ceil(share * top - 1e-6);
        row[c] = marks[share < 1e-6 ? 0 : mark < 1 ? 1 : mark < top ? mark : top];
    }
    text_add(text, "%s|\n", row);
}

static void describe_timeline(const struct partita_plan *plan, struct text *text)
{
    const struct partitioned *partitioned = plan->state;
    const struct layout *layout = &partitioned->layout;
    const double rest = rest_seconds(plan);
    const size_t call = (partitioned->load.frames + layout->tick - 1) / layout->tick;
    size_t columns = 1;
    while (columns < MAX_COLUMNS && columns * 2 * call <= partitioned->hyper) columns *= 2;
    if (columns == 1) return; // every call is like every other
    struct timeline line = {.rest = rest,
                            .call = call,
                            .columns = columns,
                            .width = partitioned->hyper / columns,
                            .scale = partitioned->load.worst};
    text_add(text,
             "  work of the calls in %zu frames, the heaviest of each %zu; @ is %.3g us, a step "
             "%.2g us\n",
             partitioned->hyper * layout->tick, line.width * layout->tick, line.scale * 1e6,
             line.scale * 1e6 / 9);
    text_add(text, "  %5s |", "head");
    draw(plan, &line, text);
    for (size_t i = 0; i < layout->n_levels; i++) {
        line.rest = 0;
        line.first = i;
        line.end = i + 1;
        text_add(text, "  %5zu |", i);
        draw(plan, &line, text);
    }
    line.rest = rest;
    line.first = 0;
    text_add(text, "  %5s |", "total");
    draw(plan, &line, text);
}

void partitioned_explain(const struct partita_plan *plan, struct text *text)
{
    const struct layout *layout = &((const struct partitioned *)plan->state)->layout;
    text_add(text, "  ticks of %zu frames; latency %zu; %zu taps in the head; levels: %zu\n",
             layout->tick, layout_delay(layout), layout->head, layout->n_levels);
    describe_levels(plan, text);
    describe_uncut(plan, text);
    describe_load(plan, text);
    describe_timeline(plan, text);
}
