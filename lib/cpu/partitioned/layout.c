// SPDX-License-Identifier: MIT
// Which partitions: the shortest path over predicted costs. A node is a hop with which a level may
// begin, an edge a level that covers the taps up to where the next, larger hop is in time. Source:
// Garcia, Optimal filter partition for efficient convolution with short input/output delay, AES 113
// (2002); Wefers, Partitioned convolution algorithms for real-time auralization (2015).
#include <math.h>

#include "partitioned.h"

enum {
    MIN_TICK = 16,
    MAX_TICK = 1024,
    MAX_HOP = 1 << 17,
    MAX_HOPS = 14, // MIN_TICK << 13
    MAX_MULTIPLE = 4,
    // Zeros behind the last tap: a tenth of the filter, so that spectra take 2.2 times its bytes at
    // most.
    MOST_WASTE = 10,
};

// The way to a hop: what it costs, the first tap that its level would cover, and the level before
// it.
struct node {
    double seconds;
    size_t first, before;
    struct level level; // from `before` to here
};

struct search {
    const struct request *request;
    size_t tick, latency, n_hops;
    bool whole;   // struct layout
    size_t begin; // index of the first level's hop
    struct node node[MAX_HOPS];
    double transforms[MAX_HOPS][MAX_MULTIPLE + 1]; // of a hop and a multiple, seconds a frame; 0:
                                                   // not asked for yet
};

static size_t hop_at(const struct search *search, size_t i)
{
    return search->tick << i;
}

// Seconds a frame.
static double level_seconds(struct search *search, const struct level *level)
{
    double *transforms = &search->transforms[__builtin_ctzll(level->ticks)][level->multiple];
    if (*transforms <= 0) *transforms = cost_transforms(search->request, level);
    return *transforms + cost_products(search->request, level) + cost_tick() / (double)search->tick;
}

static bool served(const struct search *search, size_t i, size_t multiple)
{
    const size_t n = (multiple + 1) * hop_at(search, i);
    return fft_good_size(n) == n;
}

// The last level works during the whole of the next block; the others in half the time, so that
// they may begin earlier: the levels above them fill the other half (partition_schedule.c).
static size_t window_of(size_t ticks, bool last)
{
    return last || ticks == 1 ? ticks : ticks / 2;
}

// The first tap that a level of a hop can serve in time, latency included.
static size_t in_time(const struct search *search, size_t i, bool last)
{
    return hop_at(search, i) + (window_of((size_t)1 << i, last) - 1) * search->tick;
}

static struct level level_from(const struct search *search, size_t i, size_t first, size_t multiple,
                               size_t parts, bool last)
{
    const size_t hop = hop_at(search, i), ticks = (size_t)1 << i;
    struct level level = {
        .hop = hop,
        .n = (multiple + 1) * hop,
        .multiple = multiple,
        .parts = parts,
        .bundle = 1,
        .first = first,
        .ticks = ticks,
        .window = window_of(ticks, last),
        // Work may wait as long as the level's taps are further away than they need be.
        .start = ticks - 1 + (first + search->latency - in_time(search, i, last)) / search->tick,
    };
    cost_bundle(search->request, &level);
    return level;
}

static size_t parts_for(size_t taps, size_t multiple, size_t hop)
{
    const size_t parts = (taps + multiple * hop - 1) / (multiple * hop);
    return parts ? parts : 1;
}

// The level from node i to hop j: as few partitions as bring the latter in time.
static struct level level_between(const struct search *search, size_t i, size_t j, size_t multiple,
                                  bool last)
{
    const size_t first = search->node[i].first, have = first + search->latency,
                 need = in_time(search, j, last);
    const size_t parts = parts_for(need > have ? need - have : 0, multiple, hop_at(search, i));
    return level_from(search, i, first, multiple, parts, false);
}

static size_t end_of(const struct level *level)
{
    return level->first + level->parts * level->multiple * level->hop;
}

static void relax(struct search *search, size_t i, size_t j, size_t multiple)
{
    const struct level level = level_between(search, i, j, multiple, false);
    if (end_of(&level) >= search->request->shape->axis[0].span) return;
    const double seconds = search->node[i].seconds + level_seconds(search, &level);
    if (seconds < search->node[j].seconds)
        search->node[j] = (struct node){seconds, end_of(&level), i, level};
}

// Takes the levels that lead to node i, the one before the last if there is one, and the last, if
// that is the best yet.
static void consider(const struct search *search, size_t i, const struct level *before,
                     const struct level *last, double seconds, struct layout *best)
{
    const size_t span = search->request->shape->axis[0].span;
    const bool wasteful = end_of(last) - span > span / MOST_WASTE;
    if (best->n_levels && (best->wasteful == wasteful ? best->seconds <= seconds : wasteful))
        return;
    *best = (struct layout){.tick = search->tick,
                            .latency = search->latency,
                            .whole = search->whole,
                            .head = before ? search->node[search->begin].first : last->first,
                            .n_levels = before ? 2 : 1,
                            .wasteful = wasteful,
                            .seconds = seconds};
    best->head_seconds = cost_head(search->request, best->head, search->tick);
    for (size_t at = i; before && at != search->begin; at = search->node[at].before)
        best->n_levels++;
    size_t place = best->n_levels;
    best->level[--place] = *last;
    if (before) best->level[--place] = *before;
    for (size_t at = i; place > 0; at = search->node[at].before)
        best->level[--place] = search->node[at].level;
}

static double seconds_to_beat(const struct layout *best)
{
    return best->n_levels && !best->wasteful ? best->seconds : INFINITY;
}

// Completes what leads to node i by a level of hop j that holds the rest.
static void finish(struct search *search, size_t i, size_t j, size_t multiple, struct layout *best)
{
    const size_t span = search->request->shape->axis[0].span;
    const struct level before = level_between(search, i, j, multiple, true);
    const double seconds = search->node[i].seconds + level_seconds(search, &before);
    if (end_of(&before) >= span || seconds >= seconds_to_beat(best)) return;
    for (size_t own = 1; own <= MAX_MULTIPLE; own++) {
        if (!served(search, j, own)) continue;
        const size_t parts = parts_for(span - end_of(&before), own, hop_at(search, j));
        const struct level last = level_from(search, j, end_of(&before), own, parts, true);
        consider(search, i, &before, &last, seconds + level_seconds(search, &last), best);
    }
}

// Layouts of a single level, with a head before it.
static void finish_alone(struct search *search, size_t i, size_t first, struct layout *best)
{
    const size_t span = search->request->shape->axis[0].span;
    for (size_t own = 1; first < span && own <= MAX_MULTIPLE; own++) {
        if (!served(search, i, own)) continue;
        const size_t parts = parts_for(span - first, own, hop_at(search, i));
        const struct level last = level_from(search, i, first, own, parts, true);
        consider(search, i, NULL, &last,
                 cost_head(search->request, first, search->tick) + level_seconds(search, &last),
                 best);
    }
}

// Delays are whole ticks and whole output frames; more than a first level needs is not taken.
// Returns the taps that are left to the head.
static size_t choose_latency(struct search *search, size_t needed, size_t allowed)
{
    const size_t stride = search->request->shape->axis[0].stride;
    // The least common multiple: a tick is a power of two.
    const size_t twos = stride & (~stride + 1),
                 unit =
                     size_mul(stride, search->tick / (twos < search->tick ? twos : search->tick));
    const size_t own = search->whole ? search->tick : 0, more = needed > own ? needed - own : 0;
    const size_t least = more / unit + (more % unit > 0); // units
    search->latency = own + (least <= allowed / unit ? least : allowed / unit) * unit;
    return needed > search->latency ? needed - search->latency : 0;
}

// All layouts of one tick whose first level has hop `begin`.
static void search_from(struct search *search, size_t begin, size_t allowed, struct layout *best)
{
    const size_t span = search->request->shape->axis[0].span;
    finish_alone(search, begin, choose_latency(search, in_time(search, begin, true), allowed),
                 best);
    const size_t head = choose_latency(search, in_time(search, begin, false), allowed);
    if (head >= span) return;
    search->begin = begin;
    for (size_t i = 0; i < search->n_hops; i++)
        search->node[i] = (struct node){.seconds = INFINITY};
    search->node[begin] = (struct node){
        .seconds = cost_head(search->request, head, search->tick), .first = head, .before = begin};
    for (size_t i = begin; i < search->n_hops; i++) {
        if (search->node[i].seconds >= seconds_to_beat(best)) continue;
        for (size_t multiple = 1; multiple <= MAX_MULTIPLE; multiple++) {
            if (!served(search, i, multiple)) continue;
            for (size_t j = i + 1; j < search->n_hops; j++) {
                finish(search, i, j, multiple, best);
                relax(search, i, j, multiple);
            }
        }
    }
}

bool layout_search(const struct request *request, struct layout *ret)
{
    const struct shape *shape = request->shape;
    *ret = (struct layout){0};
    for (size_t tick = MIN_TICK; tick <= MAX_TICK && (tick == MIN_TICK || tick <= shape->block);
         tick *= 2) {
        struct search search = {.request = request,
                                .tick = tick,
                                .whole = shape->whole_blocks && shape->block % tick == 0};
        // A hop beyond the filter's length covers it with one partition: no larger one is needed.
        while (search.n_hops < MAX_HOPS && hop_at(&search, search.n_hops) <= MAX_HOP &&
               (search.n_hops == 0 || hop_at(&search, search.n_hops - 1) < shape->axis[0].span))
            search.n_hops++;
        for (size_t begin = 0; begin < search.n_hops; begin++)
            search_from(&search, begin,
                        shape->latency == PARTITA_UNBOUNDED ? 4 * MAX_HOP : shape->latency, ret);
    }
    return ret->n_levels > 0;
}
