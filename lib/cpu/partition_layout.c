// SPDX-License-Identifier: MIT
// Which partitions: the shortest path over predicted costs. A node is a hop with which a level may begin, an edge a
// level that covers the taps up to where the next, larger hop is in time.
// Source: Garcia, Optimal filter partition for efficient convolution with short input/output delay, AES 113 (2002);
// Wefers, Partitioned convolution algorithms for real-time auralization (2015).
#include <math.h>

#include "partitioned.h"

enum {
    MIN_TICK = 16,
    MAX_TICK = 1024,
    MAX_HOP = 1 << 17,
    MAX_HOPS = 14, // MIN_TICK << 13
    MAX_MULTIPLE = 4,
    // Zeros behind the last tap: a tenth of the filter, so that spectra take 2.2 times its bytes at most.
    MOST_WASTE = 10,
};

// What a slice, a turn of an output and a tick cost beyond their loops.
static const double SLICE_SECONDS = 1e-8, TURN_SECONDS = 2e-8, TICK_SECONDS = 3e-8;

static size_t cells_of(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}

// Complex bins of a level's spectra.
static size_t bins_of(const struct shape *shape, const struct level *level)
{
    return shape->complex_signal ? level->n : level->n / 2;
}

// How far away a level's spectra are: all cells' partitions and all inputs' slots.
static enum host_distance distance_of(const struct request *request, const struct level *level)
{
    const struct shape *shape = request->shape;
    const size_t bytes = 2 * bins_of(shape, level) * shape->scalar_bytes, shared = request->host->shared_bytes;
    const size_t held = bytes * (cells_of(shape) * level->parts + shape->in_channels * level_slots(level));
    // A filter that no cache holds comes from memory block after block, but for its small levels.
    const size_t filter = 2 * cells_of(shape) * shape->axis[0].span * shape->tap_bytes;
    if (filter > shared / 2 && held > shared / 16) return HOST_MEMORY;
    return held > request->host->cache_bytes / 2 ? HOST_FAR : HOST_NEAR;
}

// Seconds of a bin's product if `sums` are made at once. The outputs share what they read of the inputs.
static double product_seconds(const struct request *request, const struct level *level, size_t sums)
{
    const struct host_costs *costs = &request->host->costs[request->shape->f64];
    const enum host_distance distance = distance_of(request, level);
    const double *cost = costs->product[distance],
                 share = fmin(1, (double)level->multiple / (double)cells_of(request->shape) *
                                     (double)request->shape->in_channels);
    const size_t i = sums / 2; // 1, 2, 4
    if (distance == HOST_MEMORY) return cost[i] * (1 + share);
    return distance == HOST_FAR ? fmax(costs->product[HOST_NEAR][i], cost[i] * (1 + share) / 2) : cost[i];
}

// A share of the tiles has each age once in a bundle.
struct level_costs layout_costs(const struct request *request, const struct level *level)
{
    const struct shape *shape = request->shape;
    double products = 0;
    size_t bounds[SECTIONS + 1];
    level_sections(level, bounds);
    for (size_t age = 0; age < level->bundle; age++) {
        struct turn turns[SECTIONS];
        const size_t n = level_turns(level, age, turns);
        for (size_t i = 0; i < n; i++)
            products += (double)((bounds[turns[i].section + 1] - bounds[turns[i].section]) * turns[i].sums) *
                        product_seconds(request, level, turns[i].sums);
    }
    return (struct level_costs){
        .transform = host_fft(request->host, shape->f64, shape->complex_signal, level->n) / 2,
        .product = products * (double)bins_of(shape, level) / (double)level->bundle,
    };
}

// Seconds of a block's products for all outputs.
static double products_seconds(const struct request *request, const struct level *level)
{
    const struct shape *shape = request->shape;
    size_t turns = 0;
    for (size_t age = 0; age < level->bundle; age++) turns += level_turns(level, age, (struct turn[SECTIONS]){{0}});
    return (double)cells_of(shape) * layout_costs(request, level).product +
           (double)(turns * shape->out_channels) * TURN_SECONDS;
}

// Seconds a frame.
static double level_seconds(const struct request *request, const struct level *level, size_t tick)
{
    const struct shape *shape = request->shape;
    const struct level_costs costs = layout_costs(request, level);
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const struct host_costs *host = &request->host->costs[shape->f64];
    // Inputs are fetched, then stored as spectra; half of the outputs is written.
    const double moved = (double)(level->n * (shape->complex_signal ? 2 : 1)) * (host->copy / 2 + host->fetch);
    const double block = channels * (costs.transform + moved + 4 * SLICE_SECONDS) + products_seconds(request, level);
    return block / (double)level->hop + TICK_SECONDS / (double)tick;
}

static double head_seconds(const struct request *request, size_t head, size_t tick)
{
    const struct shape *shape = request->shape;
    const struct host_costs *costs = &request->host->costs[shape->f64];
    const size_t call = shape->block < tick ? shape->block : tick;
    const double products = (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
    const double cell = (double)head * products * costs->fma + (head ? costs->fir_call / (double)call : 0);
    return (double)cells_of(shape) * cell + TICK_SECONDS / (double)call;
}

// The way to a hop: what it costs, the first tap that its level would cover, and the level before it.
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
};

static size_t hop_at(const struct search *search, size_t i)
{
    return search->tick << i;
}

static bool served(const struct search *search, size_t i, size_t multiple)
{
    const size_t n = (multiple + 1) * hop_at(search, i);
    return fft_good_size(n) == n;
}

// The last level works during the whole of the next block; the others in half the time, so that they may begin
// earlier: the levels above them fill the other half (partition_schedule.c).
static size_t window_of(size_t ticks, bool last)
{
    return last || ticks == 1 ? ticks : ticks / 2;
}

// The first tap that a level of a hop can serve in time, latency included.
static size_t in_time(const struct search *search, size_t i, bool last)
{
    return hop_at(search, i) + (window_of((size_t)1 << i, last) - 1) * search->tick;
}

// The cheapest bundle that has far partitions and a tile for every share.
static void bundle_blocks(const struct request *request, struct level *level)
{
    double least = products_seconds(request, level);
    const size_t tiles = 2 * bins_of(request->shape, level) * request->shape->scalar_bytes / TILE_BYTES;
    const size_t known = (level->parts - 1) * level->multiple; // blocks before, of the last partition
    for (size_t bundle = 2; bundle <= MAX_BUNDLE && bundle <= tiles && bundle - 1 <= known; bundle *= 2) {
        struct level other = *level;
        other.bundle = bundle;
        const double seconds = products_seconds(request, &other);
        if (seconds >= least) continue;
        least = seconds;
        level->bundle = bundle;
    }
}

static struct level level_from(const struct search *search, size_t i, size_t first, size_t multiple, size_t parts,
                               bool last)
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
    level.far = distance_of(search->request, &level) != HOST_NEAR;
    bundle_blocks(search->request, &level);
    return level;
}

static size_t parts_for(size_t taps, size_t multiple, size_t hop)
{
    const size_t parts = (taps + multiple * hop - 1) / (multiple * hop);
    return parts ? parts : 1;
}

// The level from node i to hop j: as few partitions as bring the latter in time.
static struct level level_between(const struct search *search, size_t i, size_t j, size_t multiple, bool last)
{
    const size_t first = search->node[i].first, have = first + search->latency, need = in_time(search, j, last);
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
    const double seconds = search->node[i].seconds + level_seconds(search->request, &level, search->tick);
    if (seconds < search->node[j].seconds) search->node[j] = (struct node){seconds, end_of(&level), i, level};
}

// Takes the levels that lead to node i, the one before the last if there is one, and the last, if that is the best yet.
static void consider(const struct search *search, size_t i, const struct level *before, const struct level *last,
                     double seconds, struct layout *best)
{
    const size_t span = search->request->shape->axis[0].span;
    const bool wasteful = end_of(last) - span > span / MOST_WASTE;
    if (best->n_levels && (best->wasteful == wasteful ? best->seconds <= seconds : wasteful)) return;
    *best = (struct layout){.tick = search->tick,
                            .latency = search->latency,
                            .whole = search->whole,
                            .head = before ? search->node[search->begin].first : last->first,
                            .n_levels = before ? 2 : 1,
                            .wasteful = wasteful,
                            .seconds = seconds};
    best->head_seconds = head_seconds(search->request, best->head, search->tick);
    for (size_t at = i; before && at != search->begin; at = search->node[at].before) best->n_levels++;
    size_t place = best->n_levels;
    best->level[--place] = *last;
    if (before) best->level[--place] = *before;
    for (size_t at = i; place > 0; at = search->node[at].before) best->level[--place] = search->node[at].level;
}

static double seconds_to_beat(const struct layout *best)
{
    return best->n_levels && !best->wasteful ? best->seconds : INFINITY;
}

// Completes what leads to node i by a level of hop j that holds the rest.
static void finish(const struct search *search, size_t i, size_t j, size_t multiple, struct layout *best)
{
    const size_t span = search->request->shape->axis[0].span;
    const struct level before = level_between(search, i, j, multiple, true);
    const double seconds = search->node[i].seconds + level_seconds(search->request, &before, search->tick);
    if (end_of(&before) >= span || seconds >= seconds_to_beat(best)) return;
    for (size_t own = 1; own <= MAX_MULTIPLE; own++) {
        if (!served(search, j, own)) continue;
        const size_t parts = parts_for(span - end_of(&before), own, hop_at(search, j));
        const struct level last = level_from(search, j, end_of(&before), own, parts, true);
        consider(search, i, &before, &last, seconds + level_seconds(search->request, &last, search->tick), best);
    }
}

// Layouts of a single level, with a head before it.
static void finish_alone(const struct search *search, size_t i, size_t first, struct layout *best)
{
    const size_t span = search->request->shape->axis[0].span;
    for (size_t own = 1; first < span && own <= MAX_MULTIPLE; own++) {
        if (!served(search, i, own)) continue;
        const size_t parts = parts_for(span - first, own, hop_at(search, i));
        const struct level last = level_from(search, i, first, own, parts, true);
        consider(search, i, NULL, &last,
                 head_seconds(search->request, first, search->tick) +
                     level_seconds(search->request, &last, search->tick),
                 best);
    }
}

// Delays are whole ticks and whole output frames; more than a first level needs is not taken. Returns the taps that are
// left to the head.
static size_t choose_latency(struct search *search, size_t needed, size_t allowed)
{
    const size_t stride = search->request->shape->axis[0].stride;
    // The least common multiple: a tick is a power of two.
    const size_t twos = stride & (~stride + 1),
                 unit = size_mul(stride, search->tick / (twos < search->tick ? twos : search->tick));
    const size_t own = search->whole ? search->tick : 0, more = needed > own ? needed - own : 0;
    const size_t least = more / unit + (more % unit > 0); // units
    search->latency = own + (least <= allowed / unit ? least : allowed / unit) * unit;
    return needed > search->latency ? needed - search->latency : 0;
}

// All layouts of one tick whose first level has hop `begin`.
static void search_from(struct search *search, size_t begin, size_t allowed, struct layout *best)
{
    const size_t span = search->request->shape->axis[0].span;
    finish_alone(search, begin, choose_latency(search, in_time(search, begin, true), allowed), best);
    const size_t head = choose_latency(search, in_time(search, begin, false), allowed);
    if (head >= span) return;
    search->begin = begin;
    for (size_t i = 0; i < search->n_hops; i++) search->node[i] = (struct node){.seconds = INFINITY};
    search->node[begin] =
        (struct node){.seconds = head_seconds(search->request, head, search->tick), .first = head, .before = begin};
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
    for (size_t tick = MIN_TICK; tick <= MAX_TICK && (tick == MIN_TICK || tick <= shape->block); tick *= 2) {
        struct search search = {
            .request = request, .tick = tick, .whole = shape->whole_blocks && shape->block % tick == 0};
        // A hop beyond the filter's length covers it with one partition: no larger one is needed.
        while (search.n_hops < MAX_HOPS && hop_at(&search, search.n_hops) <= MAX_HOP &&
               (search.n_hops == 0 || hop_at(&search, search.n_hops - 1) < shape->axis[0].span))
            search.n_hops++;
        for (size_t begin = 0; begin < search.n_hops; begin++)
            search_from(&search, begin, shape->latency == PARTITA_UNBOUNDED ? 4 * MAX_HOP : shape->latency, ret);
    }
    return ret->n_levels > 0;
}
