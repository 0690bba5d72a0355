// SPDX-License-Identifier: MIT
// A partitioned plan in words: the segments as a table, the cost of a call, and a timeline of the
// work that the calls of the longest segment's period bring due.
#include <math.h>

#include "base/sizes.h"
#include "partitioned.h"

enum { MAX_COLUMNS = 64 };

// Seconds a frame of one segment's tasks.
static double segment_rate(const struct partita_plan *plan, size_t i)
{
    const struct partitioned *partitioned = partitioned_of(plan);
    return partitioned->work[i].mean_seconds / (double)partitioned->layout.segment[i].hop;
}

// The time of every call of the problem's block besides the tasks: the head, the copies, the calls
// of kernels.
static double rest_seconds(const struct partita_plan *plan)
{
    const struct partitioned *partitioned = partitioned_of(plan);
    return partitioned->layout.head_seconds * (double)partitioned->load.frames;
}

static void explain_segment(const struct partita_plan *plan, size_t i, struct text *text)
{
    const struct partitioned *partitioned = partitioned_of(plan);
    const struct partition_segment *segment = &partitioned->layout.segment[i];
    const struct segment_work *work = &partitioned->work[i];
    const size_t taps = segment->multiple * segment->hop;
    const size_t end = segment->first + segment->partitions * taps;
    const size_t inputs = stage_tasks(work, STAGE_FORWARD);
    const size_t products = inputs + stage_tasks(work, STAGE_PRODUCTS);
    const double mean = partitioned->load.mean / (double)partitioned->load.frames;
    text_add(text,
             "  %5zu %8zu .. %-8zu %4zu x %-6zu %6zu %6zu %6zu %5zu %7.2f us %8.2f us %5.1f %%%s\n",
             i, segment->first, size_min(end, plan->shape.axis[0].span) - 1, segment->partitions,
             taps, segment->hop, segment->n, segment->batch, segment->quanta,
             schedule_seconds(work, 0, work->transform.tasks) * 1e6,
             schedule_seconds(work, inputs, products) * 1e6, 100 * segment_rate(plan, i) / mean,
             segment->i16 ? ", 16 bits" : "");
}

static void explain_segments(const struct partita_plan *plan, struct text *text)
{
    const struct partitioned *partitioned = partitioned_of(plan);
    const struct partition_layout *layout = &partitioned->layout;
    const double rest = 100 * rest_seconds(plan) / partitioned->load.mean;
    text_add(text, "  %7s %3s%-14s  %-13s %6s %6s %5s %6s %10s %11s %7s\n", "segment", "", "taps",
             "partitions", "hop", "size", "batch", "quanta", "transform", "products", "share");
    if (layout->head)
        text_add(text, "  %5s %8d .. %-8zu %-63s %5.1f %%\n", "head", 0, layout->head - 1,
                 "  summed directly, with all copies", rest);
    else
        text_add(text, "  %5s %8s    %-8s %-63s %5.1f %%\n", "head", "none", "", "  copies alone",
                 rest);
    for (size_t i = 0; i < layout->n_segments; i++) explain_segment(plan, i, text);
}

// The consequence of spectra in 16 bits.
static void explain_i16(const struct partita_plan *plan, struct text *text)
{
    const struct partition_layout *layout = &partitioned_of(plan)->layout;
    size_t i = 0;
    while (i < layout->n_segments && !layout->segment[i].i16) i++;
    if (i == layout->n_segments) return;
    text_add(text,
             "  \"16 bits\": the filter's spectra have 16-bit mantissas; the error stays %.0f dB "
             "below the outputs\n",
             -20 * log10(plan->choice.error));
}

// A transform that runs in one piece puts all its time into one call.
static void explain_unsplit(const struct partita_plan *plan, struct text *text)
{
    const struct partitioned *partitioned = partitioned_of(plan);
    for (size_t i = partitioned->layout.n_segments; i-- > 0;) {
        const struct segment_work *work = &partitioned->work[i];
        if (work->fft->steps > 1 || work->transform.seconds < partitioned->load.mean / 2) continue;
        text_add(text,
                 "  transforms of %s run in one piece, up to %zu samples: the worst call pays for "
                 "a whole one\n",
                 fft_provider(work->fft), work->fft->n);
        return;
    }
}

static void explain_load(const struct partita_plan *plan, struct text *text)
{
    const struct partita_load *load = &partitioned_of(plan)->load;
    text_add(
        text,
        "  a call of %zu frames takes %.3g us in the mean, %.3g us at worst, %.2f times the mean\n",
        load->frames, load->mean * 1e6, load->worst * 1e6, load->worst / load->mean);
    if (plan->stream_threads > 1)
        text_add(text, "  on one thread; %d share it\n", plan->stream_threads);
    text_add(text, "  a swap begins to fade within %zu frames\n", load->swap_delay);
}

// The calls of one period, compressed.
struct timeline {
    const struct partitioned *partitioned;
    size_t first, end;     // segments that are added up
    double rest;           // of every call, besides
    size_t call;           // quanta that a call brings due
    size_t columns, width; // quanta a column
    double scale;          // seconds of the highest mark
};

// Seconds of the segments in a quantum, counted from any start of the longest period.
static double timeline_seconds(const struct timeline *line, size_t quantum)
{
    double seconds = 0;
    for (size_t i = line->first; i < line->end; i++) {
        const struct partition_segment *segment = &line->partitioned->layout.segment[i];
        const struct segment_work *work = &line->partitioned->work[i];
        const size_t start = segment->start % segment->quanta;
        const size_t at = quanta_into_block(segment, quantum + segment->quanta - start);
        seconds += schedule_seconds(work, at ? work->due[at - 1] : 0, work->due[at]);
    }
    return seconds;
}

// From no work to the most.
static const char timeline_marks[] = " .:-=+*#%@";

// One row: each column the heaviest of the calls that begin in it. Work too small for a mark still
// gets the lowest.
static void draw_row(const struct timeline *line, struct text *text)
{
    const int top = sizeof timeline_marks - 2;
    char row[MAX_COLUMNS + 1] = "";
    double call = line->rest;
    for (size_t q = 0; q < line->call; q++) call += timeline_seconds(line, q);
    for (size_t c = 0; c < line->columns; c++) {
        double max = 0;
        for (size_t q = c * line->width; q < (c + 1) * line->width; q++) {
            max = fmax(max, call);
            call += timeline_seconds(line, q + line->call) - timeline_seconds(line, q);
        }
        const double share = max / line->scale;
        const double mark = fmin(fmax(ceil(share * top - 1e-6), 1), top);
        row[c] = timeline_marks[share < 1e-6 ? 0 : (int)mark];
    }
    text_add(text, "%s|\n", row);
}

static void explain_timeline(const struct partita_plan *plan, struct text *text)
{
    const struct partitioned *partitioned = partitioned_of(plan);
    const struct partition_layout *layout = &partitioned->layout;
    const size_t call = ceil_div(partitioned->load.frames, layout->quantum);
    size_t columns = 1;
    while (columns < MAX_COLUMNS && columns * 2 * call <= partitioned->period) columns *= 2;
    if (columns == 1) return; // every call is like every other
    const struct timeline total = {.partitioned = partitioned,
                                   .end = layout->n_segments,
                                   .rest = rest_seconds(plan),
                                   .call = call,
                                   .columns = columns,
                                   .width = partitioned->period / columns,
                                   .scale = partitioned->load.worst};
    struct timeline line = total;
    text_add(text,
             "  work of the calls in %zu frames; a mark is the most expensive call in %zu frames:\n"
             "  \"%s\" are equal steps from 0 to %.3g us\n",
             partitioned->period * layout->quantum, total.width * layout->quantum, timeline_marks,
             total.scale * 1e6);
    line.end = 0;
    text_add(text, "  %5s |", "head");
    draw_row(&line, text);
    line.rest = 0;
    for (size_t i = 0; i < layout->n_segments; i++) {
        line.first = i, line.end = i + 1;
        text_add(text, "  %5zu |", i);
        draw_row(&line, text);
    }
    text_add(text, "  %5s |", "total");
    draw_row(&total, text);
}

void partitioned_explain(const struct partita_plan *plan, struct text *text)
{
    const struct partition_layout *layout = &partitioned_of(plan)->layout;
    text_add(text, "  quanta of %zu frames; latency %zu; %zu taps in the head; segments: %zu\n",
             layout->quantum, partition_delay(layout), layout->head, layout->n_segments);
    explain_segments(plan, text);
    explain_i16(plan, text);
    explain_unsplit(plan, text);
    explain_load(plan, text);
    explain_timeline(plan, text);
}
