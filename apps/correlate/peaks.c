// SPDX-License-Identifier: MIT
// See peaks.h. Samples are examined PEAKS_MARGIN samples after they arrive, when both sides of them
// are in a ring.
//
// Of the local maxima since the last peak only those are kept in a queue that are larger than all
// before them. Another one, which a larger one within the distance precedes, is never a peak:
// either that larger one is a peak, or a still larger peak that follows it hides both. When no
// larger one has followed the last of the queue within the distance, the last is a peak. So is then
// each one before it, from the last to the first, that is at least the distance before the peak
// after it. What follows is independent of all this but for the distance from the last peak.
//
// If the stream begins inside of a signal, there is first a search for a maximum that is larger
// than all within the distance on both sides, and so a peak, or for a gap of the distance. Its
// queue is that of a sliding maximum: levels fall from front to back.
#include "peaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/scalar.h"
#include "base/memory.h"
#include "base/sample_type.h"

enum { REACH = PEAKS_MARGIN, RING = 32, ABSENT = -1 };
_Static_assert(RING >= 2 * REACH + 2, "a sample needs its neighbours");

struct sample {
    double re, im;
    double level; // magnitude of a real sample, squared magnitude of a complex one; or ABSENT
};

struct maximum {
    struct peak peak; // only index and level if what comes before it is unknown
    bool dominated;   // what comes before it is unknown, or as large within the distance
};

struct channel {
    struct sample ring[RING]; // sample i at i % RING
    struct maximum *queue;    // circular
    size_t head, n, capacity; // capacity: 0 or a power of two
    bool known;               // what comes before does not matter, but for the last peak
    bool hides;               // the last peak, at `last`, hides what is closer than the distance
    uint64_t last;
};

// A binary heap: `before` holds for no item and the one above it.
struct heap {
    struct peak *items;
    size_t n, capacity;
    bool (*before)(const struct peak *a, const struct peak *b);
};

struct peaks {
    struct peaks_request request;
    struct channel *channels;
    uint64_t arrived;  // frames
    double threshold;  // as a level
    double largest;    // level
    struct heap kept;  // the largest ones; the root is the least of them
    struct heap ready; // to be reported, when no earlier one can follow; the root is the first
    bool lost;
};

static bool is_earlier(const struct peak *a, const struct peak *b)
{
    if (a->index != b->index) return a->index < b->index;
    return a->channel < b->channel;
}

// The item to give up first: of equal ones the last.
static bool is_less(const struct peak *a, const struct peak *b)
{
    if (a->level != b->level) return a->level < b->level;
    return is_earlier(b, a);
}

static void swap_items(struct peak *items, size_t i, size_t j)
{
    const struct peak first = items[i];
    items[i] = items[j];
    items[j] = first;
}

static bool heap_add(struct heap *heap, const struct peak *item, struct fault *fault)
{
    if (heap->n == heap->capacity) {
        const size_t capacity = heap->capacity ? 2 * heap->capacity : 16;
        struct peak *grown = memory_resize(heap->items, capacity * sizeof *grown);
        if (!grown) return memory_fault(fault, "%zu peaks", capacity);
        heap->items = grown;
        heap->capacity = capacity;
    }
    heap->items[heap->n] = *item;
    for (size_t i = heap->n++; i && heap->before(&heap->items[i], &heap->items[(i - 1) / 2]);
         i = (i - 1) / 2)
        swap_items(heap->items, i, (i - 1) / 2);
    return true;
}

static void heap_replace_root(struct heap *heap, const struct peak *item)
{
    heap->items[0] = *item;
    for (size_t i = 0, first;; i = first) {
        first = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap->n; child++)
            if (heap->before(&heap->items[child], &heap->items[first])) first = child;
        if (first == i) return;
        swap_items(heap->items, i, first);
    }
}

static bool push(struct channel *c, const struct maximum *maximum, struct fault *fault)
{
    if (c->n == c->capacity) {
        const size_t capacity = c->capacity ? 2 * c->capacity : 16;
        struct maximum *grown = memory_resize(c->queue, capacity * sizeof *grown);
        if (!grown) return memory_fault(fault, "%zu local maxima", capacity);
        // What wraps around continues in the new half.
        memcpy(grown + c->capacity, grown, c->head * sizeof *grown);
        c->queue = grown;
        c->capacity = capacity;
    }
    c->queue[(c->head + c->n++) & (c->capacity - 1)] = *maximum;
    return true;
}

static struct maximum *queue_at(const struct channel *c, size_t i)
{
    return &c->queue[(c->head + i) & (c->capacity - 1)];
}

bool peaks_open(struct peaks **ret, const struct peaks_request *request, struct fault *fault)
{
    // As if a very large sample came just before the first.
    const struct maximum before = {{.index = UINT64_MAX, .level = INFINITY}, true};
    struct peaks *p = calloc(1, sizeof *p);
    *ret = NULL;
    if (!p) return fault_set(fault, "out of memory");
    p->request = *request;
    p->kept.before = is_less;
    p->ready.before = is_earlier;
    p->threshold = request->threshold;
    if (type_is_complex(request->type)) p->threshold *= request->threshold;
    p->channels = calloc(request->channels, sizeof *p->channels);
    bool good = p->channels || fault_set(fault, "out of memory");
    for (size_t c = 0; good && c < request->channels; c++) {
        for (int i = 0; i < RING; i++) p->channels[c].ring[i].level = ABSENT;
        p->channels[c].known = !request->continues;
        good = p->channels[c].known || push(&p->channels[c], &before, fault);
    }
    if (good) *ret = p;
    else peaks_close(p);
    return good;
}

static struct sample load(enum partita_type type, const void *y, size_t i)
{
    const bool f64 = type_is_double(type);
    struct sample s = {.re = scalar_get(f64, y, type_is_complex(type) ? 2 * i : i)};
    if (type_is_complex(type)) {
        s.im = scalar_get(f64, y, 2 * i + 1);
        s.level = s.re * s.re + s.im * s.im;
    } else {
        s.level = fabs(s.re);
    }
    return isfinite(s.level) ? s : (struct sample){.level = ABSENT};
}

static const struct sample *sample_at(const struct channel *channel, uint64_t i)
{
    return &channel->ring[i % RING];
}

// |p(t)|^2 of the polynomial p through the neighbours of sample i, `reach` to each side, in
// barycentric form: the weights are binomial coefficients of alternating sign.
static double interpolated(const struct channel *channel, uint64_t i, int reach, double t)
{
    double re = 0, im = 0, sum = 0, binomial = 1;
    for (int j = -reach; j <= reach; j++) {
        const struct sample *s = sample_at(channel, i + (uint64_t)(int64_t)j);
        const double apart = fabs(t - j) < 1e-12 ? 1e-12 : t - j, weight = binomial / apart;
        re += weight * s->re;
        im += weight * s->im;
        sum += weight;
        binomial *= -(double)(reach - j) / (reach + j + 1);
    }
    return (re * re + im * im) / (sum * sum);
}

// The position of the interpolated maximum near the local maximum i, by a search in (-1, 1), at
// whose ends the magnitude is no larger than in the middle: of the thirds the lower outer one goes.
static double interpolate_shift(const struct channel *channel, uint64_t i)
{
    const double enough = 1e-6;
    int reach = 0;
    while (reach < REACH && sample_at(channel, i + (uint64_t)reach + 1)->level >= 0 &&
           sample_at(channel, i - (uint64_t)reach - 1)->level >= 0)
        reach++;
    if (!reach) return 0; // at an end
    double low = -1, high = 1;
    while (high - low > enough) {
        const double third = (high - low) / 3;
        const bool falls = interpolated(channel, i, reach, low + third) >=
                           interpolated(channel, i, reach, high - third);
        if (falls) high -= third;
        else low += third;
    }
    return (low + high) / 2;
}

static struct peak describe(const struct peaks *p, size_t channel, uint64_t i)
{
    const struct channel *c = &p->channels[channel];
    const struct sample *s = sample_at(c, i);
    return (struct peak){.index = i,
                         .channel = channel,
                         .magnitude = hypot(s->re, s->im),
                         .phase = atan2(s->im, s->re),
                         .level = s->level,
                         .shift = interpolate_shift(c, i)};
}

// No later sample of this level is reported.
static bool is_too_small(const struct peaks *p, double level)
{
    const size_t max_count = p->request.max_count;
    return level <= 0 || level < p->threshold ||
           (max_count && p->kept.n == max_count && level <= p->kept.items[0].level);
}

static bool accept(struct peaks *p, const struct peak *found, struct fault *fault)
{
    const struct peaks_request *q = &p->request;
    if (found->index < q->first || found->index >= q->end) return true;
    if (!q->max_count) return heap_add(&p->ready, found, fault);
    if (p->kept.n < q->max_count) return heap_add(&p->kept, found, fault);
    if (is_less(&p->kept.items[0], found)) heap_replace_root(&p->kept, found);
    return true;
}

// Whether sample i is larger than the one before it and than the first different one after it, of
// the next PEAKS_MARGIN.
static bool is_local_maximum(const struct channel *c, uint64_t i)
{
    const double level = sample_at(c, i)->level;
    if (level <= sample_at(c, i - 1)->level) return false;
    for (uint64_t j = 1; j <= REACH; j++)
        if (sample_at(c, i + j)->level != level) return sample_at(c, i + j)->level < level;
    return true;
}

static bool add_maximum(struct peaks *p, size_t channel, uint64_t i, struct fault *fault)
{
    struct channel *c = &p->channels[channel];
    struct maximum maximum = {{.index = i, .level = sample_at(c, i)->level}, false};
    const double level = maximum.peak.level;
    if (is_too_small(p, level)) return true;
    if (c->known) {
        const bool hidden = c->hides && i - c->last < p->request.distance;
        if (hidden || (c->n && level <= queue_at(c, c->n - 1)->peak.level)) return true;
        maximum.peak = describe(p, channel, i);
        return push(c, &maximum, fault);
    }
    while (c->n && queue_at(c, c->n - 1)->peak.level < level) c->n--;
    maximum.dominated = c->n > 0;
    return push(c, &maximum, fault);
}

// The last of the queue is a peak. Its peaks are moved to its end.
static bool take_queue(struct peaks *p, struct channel *c, struct fault *fault)
{
    size_t first = c->n - 1;
    for (size_t j = first; j-- > 0;)
        if (queue_at(c, first)->peak.index - queue_at(c, j)->peak.index >= p->request.distance)
            *queue_at(c, --first) = *queue_at(c, j);
    c->last = queue_at(c, c->n - 1)->peak.index;
    c->hides = true;
    for (size_t j = first; j < c->n; j++)
        if (!accept(p, &queue_at(c, j)->peak, fault)) return false;
    c->n = 0;
    return true;
}

// What comes before is unknown: the front of the queue is `distance` samples old. If none within
// the distance before it is as large, it is a peak, and so hides the rest of the queue; if the
// queue is empty without it, nothing before matters.
static void leave_unknown(struct peaks *p, struct channel *c)
{
    const struct maximum front = *queue_at(c, 0);
    p->lost = p->lost || front.peak.index + 1 > p->request.first; // UINT64_MAX: before the stream
    c->head = (c->head + 1) & (c->capacity - 1);
    c->n--;
    if (front.dominated && c->n) return;
    c->known = true;
    c->hides = true;
    c->last = front.peak.index;
    c->n = 0;
}

// All channels have examined the samples up to i.
static bool take_old(struct peaks *p, struct channel *c, uint64_t i, struct fault *fault)
{
    if (!c->n) return true;
    const uint64_t index = queue_at(c, c->known ? c->n - 1 : 0)->peak.index;
    if (i - index + 1 < p->request.distance) return true;
    if (c->known) return take_queue(p, c, fault);
    leave_unknown(p, c);
    return true;
}

// Reports the peaks before all maxima that may become peaks.
static bool report_ready(struct peaks *p, struct fault *fault)
{
    struct heap *ready = &p->ready;
    uint64_t begin = UINT64_MAX;
    for (size_t k = 0; ready->n && k < p->request.channels; k++) {
        const struct channel *c = &p->channels[k];
        const uint64_t possible = !c->known ? 0 : c->n ? queue_at(c, 0)->peak.index : begin;
        begin = possible < begin ? possible : begin;
    }
    while (ready->n && ready->items[0].index < begin && !p->lost) {
        const struct peak first = ready->items[0];
        heap_replace_root(ready, &ready->items[--ready->n]);
        if (!p->request.report(p->request.context, &first, fault)) return false;
    }
    return true;
}

// Examines the sample that has REACH samples after it.
static bool examine(struct peaks *p, struct fault *fault)
{
    const uint64_t i = p->arrived - 1 - REACH;
    if (p->arrived <= REACH) return true;
    for (size_t channel = 0; channel < p->request.channels; channel++) {
        struct channel *c = &p->channels[channel];
        if (is_local_maximum(c, i) && !add_maximum(p, channel, i, fault)) return false;
        if (!take_old(p, c, i, fault)) return false;
    }
    return !p->ready.n || report_ready(p, fault);
}

bool peaks_add(struct peaks *peaks, const void *y, size_t n, struct fault *fault)
{
    const size_t channels = peaks->request.channels;
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < channels; c++) {
            const struct sample s = load(peaks->request.type, y, i * channels + c);
            if (s.level > peaks->largest) peaks->largest = s.level;
            peaks->channels[c].ring[peaks->arrived % RING] = s;
        }
        peaks->arrived++;
        if (!examine(peaks, fault)) return false;
    }
    return true;
}

static int compare_positions(const void *a, const void *b)
{
    return is_earlier(a, b) ? -1 : is_earlier(b, a);
}

// No more samples arrive.
static bool take_rest(struct peaks *p, struct fault *fault)
{
    for (size_t k = 0; k < p->request.channels; k++) {
        struct channel *c = &p->channels[k];
        while (c->n && !c->known) leave_unknown(p, c);
        if (c->n && !take_queue(p, c, fault)) return false;
    }
    return report_ready(p, fault);
}

bool peaks_finish(struct peaks *peaks, struct fault *fault)
{
    const struct peaks_request *q = &peaks->request;
    for (int k = 0; k < REACH; k++) {
        for (size_t c = 0; c < q->channels; c++)
            peaks->channels[c].ring[peaks->arrived % RING] = (struct sample){.level = ABSENT};
        peaks->arrived++;
        if (!examine(peaks, fault)) return false;
    }
    if (!take_rest(peaks, fault)) return false;
    struct heap *kept = &peaks->kept;
    if (kept->n) qsort(kept->items, kept->n, sizeof *kept->items, compare_positions);
    for (size_t i = 0; i < kept->n && !peaks->lost; i++)
        if (!q->report(q->context, &kept->items[i], fault)) return false;
    return true;
}

bool peaks_lost(const struct peaks *peaks)
{
    return peaks->lost;
}

bool peaks_settled(const struct peaks *peaks)
{
    const struct peaks_request *q = &peaks->request;
    bool settled = peaks->arrived >= REACH && peaks->arrived - REACH >= q->end;
    for (size_t k = 0; settled && k < q->channels; k++) {
        const struct channel *c = &peaks->channels[k];
        settled = c->known && (!c->n || queue_at(c, 0)->peak.index >= q->end);
    }
    return settled;
}

static int compare_sizes(const void *a, const void *b)
{
    return is_less(b, a) ? -1 : is_less(a, b);
}

size_t peaks_select(struct peak *peaks, size_t n, size_t max_count)
{
    if (!n) return 0;
    if (max_count && n > max_count) {
        qsort(peaks, n, sizeof *peaks, compare_sizes);
        n = max_count;
    }
    qsort(peaks, n, sizeof *peaks, compare_positions);
    return n;
}

double peaks_largest(const struct peaks *peaks)
{
    return type_is_complex(peaks->request.type) ? sqrt(peaks->largest) : peaks->largest;
}

void peaks_close(struct peaks *peaks)
{
    if (!peaks) return;
    for (size_t c = 0; peaks->channels && c < peaks->request.channels; c++)
        memory_free(peaks->channels[c].queue);
    free(peaks->channels);
    memory_free(peaks->kept.items);
    memory_free(peaks->ready.items);
    free(peaks);
}
