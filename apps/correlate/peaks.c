// SPDX-License-Identifier: MIT
// See peaks.h. Samples are examined PEAKS_MARGIN samples after they arrive, when both sides of them
// are in a ring. The local maxima of the last `distance` samples are kept in a queue, without those
// that a later one exceeds: their magnitudes fall from front to back (the queue of a sliding
// maximum). The front has become a peak when it is `distance` samples old, unless an earlier one
// was as large.
#include "peaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sample_type.h"

enum { REACH = PEAKS_MARGIN, RING = 32, ABSENT = -1 };
_Static_assert(RING >= 2 * REACH + 2, "a sample needs its neighbours");

struct sample {
    double re, im;
    double level; // magnitude of a real sample, squared magnitude of a complex one; or ABSENT
};

struct maximum {
    uint64_t index;
    double level;
    bool dominated; // an earlier one within the distance is as large
};

struct channel {
    struct sample ring[RING]; // sample i at i % RING
    struct maximum *queue;    // circular
    size_t head, n, capacity; // capacity: 0 or a power of two
    struct peak front;        // of the queue, unless dominated
};

struct peaks {
    struct peaks_request request;
    struct channel *channels;
    uint64_t arrived;  // frames
    double threshold;  // as a level
    double largest;    // level
    struct peak *kept; // a heap; none comes after its root
    size_t n_kept;
};

bool peaks_open(struct peaks **ret, const struct peaks_request *request, struct fault *fault)
{
    struct peaks *p = calloc(1, sizeof *p);
    *ret = NULL;
    if (!p) return fault_set(fault, "out of memory");
    p->request = *request;
    p->threshold = request->threshold;
    if (type_is_complex(request->type)) p->threshold *= request->threshold;
    p->channels = calloc(request->channels, sizeof *p->channels);
    p->kept = calloc(request->most ? request->most : 1, sizeof *p->kept);
    *ret = p;
    for (size_t c = 0; p->channels && c < request->channels; c++)
        for (int i = 0; i < RING; i++) p->channels[c].ring[i].level = ABSENT;
    if (p->channels && p->kept) return true;
    peaks_close(p);
    *ret = NULL;
    return fault_set(fault, "out of memory for %zu peaks", request->most);
}

static struct sample load(enum partita_type type, const void *y, size_t i)
{
    const float *f = y;
    const double *d = y;
    const size_t k = type_is_complex(type) ? 2 * i : i;
    struct sample s = {.re = type_is_double(type) ? d[k] : (double)f[k]};
    if (type_is_complex(type)) {
        s.im = type_is_double(type) ? d[k + 1] : (double)f[k + 1];
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

// The position of the interpolated maximum near the local maximum i, by golden sections of (-1, 1),
// at whose ends the magnitude is no larger than in the middle.
static double interpolate_shift(const struct channel *channel, uint64_t i)
{
    const double ratio = (sqrt(5) - 1) / 2, enough = 1e-7;
    int reach = 0;
    while (reach < REACH && sample_at(channel, i + (uint64_t)reach + 1)->level >= 0 &&
           sample_at(channel, i - (uint64_t)reach - 1)->level >= 0)
        reach++;
    if (!reach) return 0; // at an end
    double low = -1, high = 1, left = high - ratio * (high - low),
           right = low + ratio * (high - low);
    double at_left = interpolated(channel, i, reach, left),
           at_right = interpolated(channel, i, reach, right);
    while (high - low > enough) {
        if (at_left >= at_right) {
            high = right;
            right = left;
            at_right = at_left;
            left = high - ratio * (high - low);
            at_left = interpolated(channel, i, reach, left);
        } else {
            low = left;
            left = right;
            at_left = at_right;
            right = low + ratio * (high - low);
            at_right = interpolated(channel, i, reach, right);
        }
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

// Whether a is to be kept rather than b: the larger one, of equal ones the first.
static bool comes_before(const struct peak *a, const struct peak *b)
{
    if (a->level != b->level) return a->level > b->level;
    if (a->index != b->index) return a->index < b->index;
    return a->channel < b->channel;
}

static void swap_kept(struct peak *heap, size_t i, size_t j)
{
    const struct peak first = heap[i];
    heap[i] = heap[j];
    heap[j] = first;
}

static void sift_up(struct peak *heap, size_t i)
{
    for (; i && comes_before(&heap[(i - 1) / 2], &heap[i]); i = (i - 1) / 2)
        swap_kept(heap, i, (i - 1) / 2);
}

static void sift_down(struct peak *heap, size_t n)
{
    for (size_t i = 0, last;; i = last) {
        last = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
            if (comes_before(&heap[last], &heap[child])) last = child;
        if (last == i) return;
        swap_kept(heap, i, last);
    }
}

// No later sample of this level is reported.
static bool is_too_small(const struct peaks *p, double level)
{
    const size_t most = p->request.most;
    return level <= 0 || level < p->threshold ||
           (most && p->n_kept == most && level <= p->kept[0].level);
}

static bool accept(struct peaks *p, const struct peak *found, struct fault *fault)
{
    const struct peaks_request *q = &p->request;
    if (found->index < q->first || found->index >= q->end) return true;
    if (!q->most) return q->report(q->context, found, fault);
    if (p->n_kept < q->most) {
        p->kept[p->n_kept] = *found;
        sift_up(p->kept, p->n_kept++);
    } else if (comes_before(found, &p->kept[0])) {
        p->kept[0] = *found;
        sift_down(p->kept, p->n_kept);
    }
    return true;
}

static bool push(struct channel *c, struct maximum maximum, struct fault *fault)
{
    if (c->n == c->capacity) {
        const size_t capacity = c->capacity ? 2 * c->capacity : 16;
        struct maximum *grown = realloc(c->queue, capacity * sizeof *grown);
        if (!grown) return fault_set(fault, "out of memory for %zu local maxima", capacity);
        // What wraps around continues in the new half.
        memcpy(grown + c->capacity, grown, c->head * sizeof *grown);
        c->queue = grown;
        c->capacity = capacity;
    }
    c->queue[(c->head + c->n++) & (c->capacity - 1)] = maximum;
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
    const double level = sample_at(c, i)->level;
    if (is_too_small(p, level)) return true;
    while (c->n && c->queue[(c->head + c->n - 1) & (c->capacity - 1)].level < level) c->n--;
    if (!c->n) c->front = describe(p, channel, i);
    return push(c, (struct maximum){i, level, c->n > 0}, fault);
}

// All channels have examined the samples up to i.
static bool take_front(struct peaks *p, struct channel *c, uint64_t i, struct fault *fault)
{
    if (!c->n || i - c->queue[c->head].index + 1 < p->request.distance) return true;
    const bool dominated = c->queue[c->head].dominated;
    c->head = (c->head + 1) & (c->capacity - 1);
    c->n--;
    return dominated || accept(p, &c->front, fault);
}

// Examines the sample that has REACH samples after it.
static bool examine(struct peaks *p, struct fault *fault)
{
    const uint64_t i = p->arrived - 1 - REACH;
    if (p->arrived <= REACH) return true;
    for (size_t channel = 0; channel < p->request.channels; channel++) {
        struct channel *c = &p->channels[channel];
        if (is_local_maximum(c, i) && !add_maximum(p, channel, i, fault)) return false;
        if (!take_front(p, c, i, fault)) return false;
    }
    return true;
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
    const struct peak *x = a, *y = b;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return (x->channel > y->channel) - (x->channel < y->channel);
}

// Of the maxima that are left only fronts can be peaks; in the order in which they would have
// become old enough.
static bool take_rest(struct peaks *p, struct fault *fault)
{
    for (;;) {
        struct channel *first = NULL;
        for (size_t k = 0; k < p->request.channels; k++) {
            struct channel *c = &p->channels[k];
            if (c->n && c->queue[c->head].dominated) c->n = 0;
            if (c->n && (!first || c->front.index < first->front.index)) first = c;
        }
        if (!first) return true;
        first->n = 0;
        if (!accept(p, &first->front, fault)) return false;
    }
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
    if (peaks->n_kept) qsort(peaks->kept, peaks->n_kept, sizeof *peaks->kept, compare_positions);
    for (size_t i = 0; i < peaks->n_kept; i++)
        if (!q->report(q->context, &peaks->kept[i], fault)) return false;
    return true;
}

static int compare_sizes(const void *a, const void *b)
{
    return comes_before(a, b) ? -1 : comes_before(b, a);
}

size_t peaks_select(struct peak *peaks, size_t n, size_t most)
{
    if (!n) return 0;
    if (most && n > most) {
        qsort(peaks, n, sizeof *peaks, compare_sizes);
        n = most;
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
        free(peaks->channels[c].queue);
    free(peaks->channels);
    free(peaks->kept);
    free(peaks);
}
