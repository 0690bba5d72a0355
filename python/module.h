// SPDX-License-Identifier: MIT
// What the Python module does in C: it collects log lines, releases objects of the library in the
// right order, and fills a stream's tables of channels.
#include <partita/partita.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Lines that calls of this thread have logged and that no exception has shown yet. A log function
// in Python would need Python's lock in the middle of a call.
static _Thread_local char py_log_text[4096];

// For struct partita_log. Lines that do not fit are lost.
static void py_log_line(void *user, const char *text)
{
    (void)user;
    const size_t used = strlen(py_log_text);
    if (used + strlen(text) + 2 > sizeof py_log_text) return;
    snprintf(py_log_text + used, sizeof py_log_text - used, "%s%s", used ? "\n" : "", text);
}

static const char *py_log_lines(void)
{
    return py_log_text;
}

static void py_log_forget(void)
{
    py_log_text[0] = 0;
}

// Matches in an array that grows; `failed`: no memory.
struct py_matches {
    struct partita_match *found;
    size_t n, capacity;
    bool failed;
};

static void py_match(void *context, const struct partita_match *match)
{
    struct py_matches *all = context;
    if (all->n == all->capacity) {
        const size_t capacity = 2 * all->capacity + 64;
        void *grown = realloc(all->found, capacity * sizeof *all->found);
        all->failed = all->failed || !grown;
        if (!grown) return;
        all->found = grown;
        all->capacity = capacity;
    }
    all->found[all->n++] = *match;
}

static void py_matches_free(struct py_matches *all)
{
    free(all->found);
}

// An object of the library that Python owns, with the objects that must outlive it. Python's
// collector of cycles finalizes a plan and its filters in any order; here the plan is destroyed
// when the last of them is released.
struct py_object {
    atomic_size_t holders; // Python's reference, and one for each link to the object
    void *object;
    void (*destroy)(void *object);
    struct py_link *links; // newest first
};

struct py_link {
    struct py_object *to;
    struct py_link *next;
};

// NULL: no memory; the object is then destroyed.
static struct py_object *py_object_create(void *object, void (*destroy)(void *object))
{
    struct py_object *owner = malloc(sizeof *owner);
    if (!owner) {
        destroy(object);
        return NULL;
    }
    atomic_init(&owner->holders, 1);
    owner->object = object;
    owner->destroy = destroy;
    owner->links = NULL;
    return owner;
}

static void py_object_release(struct py_object *owner)
{
    if (atomic_fetch_sub(&owner->holders, 1) > 1) return;
    owner->destroy(owner->object);
    while (owner->links) {
        struct py_link *link = owner->links;
        owner->links = link->next;
        py_object_release(link->to);
        free(link);
    }
    free(owner);
}

// `needed` is destroyed after `owner`. False: no memory. Threads: one at a time for an owner.
static bool py_object_link(struct py_object *owner, struct py_object *needed)
{
    struct py_link *link = malloc(sizeof *link);
    if (!link) return false;
    atomic_fetch_add(&needed->holders, 1);
    *link = (struct py_link){.to = needed, .next = owner->links};
    owner->links = link;
    return true;
}

// Removes all links but the newest. Threads: as py_object_link.
static void py_object_keep_newest(struct py_object *owner)
{
    while (owner->links && owner->links->next) {
        struct py_link *link = owner->links->next;
        owner->links->next = link->next;
        py_object_release(link->to);
        free(link);
    }
}

// A stream of the CPU with what a call needs besides its frames.
struct py_stream {
    struct partita_stream *stream;
    void **y; // [outputs]
    void **x; // [inputs]
    size_t outputs, inputs, sample_bytes;
    bool frames_first; // frames of all channels, not channels of all frames
    bool in_place;     // outputs may take the place of inputs
};

static void py_fill_channels(const struct py_stream *s, void **table, size_t channels, char *base,
                             size_t frames)
{
    const size_t step = s->sample_bytes * (s->frames_first ? 1 : frames);
    for (size_t c = 0; c < channels; c++) table[c] = base + c * step;
}

// Fills both tables; x NULL: silence.
// Errors: PARTITA_ERR_ARG if y overlaps x in another way than partita_stream_process allows.
static enum partita_status py_fill_tables(const struct py_stream *s, char *y, char *x,
                                          size_t frames)
{
    const size_t frames_out = partita_stream_output_frames(s->stream, frames);
    const size_t y_bytes = frames_out * s->outputs * s->sample_bytes;
    const size_t x_bytes = frames * s->inputs * s->sample_bytes;
    const bool same = x == y && s->in_place;
    if (x && !same && y < x + x_bytes && x < y + y_bytes) return PARTITA_ERR_ARG;
    py_fill_channels(s, s->y, s->outputs, y, frames_out);
    if (x) py_fill_channels(s, s->x, s->inputs, x, frames);
    return PARTITA_OK;
}

// partita_stream_process for arrays of all channels.
// Errors: as py_fill_tables.
static enum partita_status py_stream_process(const struct py_stream *s, char *y, char *x,
                                             size_t frames)
{
    const enum partita_status status = py_fill_tables(s, y, x, frames);
    if (status != PARTITA_OK) return status;
    partita_stream_process_strided(s->stream, s->y, s->frames_first ? s->outputs : 1,
                                   x ? s->x : NULL, s->frames_first ? s->inputs : 1, frames);
    return PARTITA_OK;
}

// The same in the memory of the stream's device, on a queue of the caller's; frames of one channel
// follow each other.
// Errors: as py_fill_tables and partita_stream_process_queued.
static enum partita_status py_stream_process_queued(const struct py_stream *s, char *y, char *x,
                                                    size_t frames, void *queue)
{
    const enum partita_status status = py_fill_tables(s, y, x, frames);
    if (status != PARTITA_OK) return status;
    return partita_stream_process_queued(s->stream, s->y, x ? s->x : NULL, frames, queue);
}

// Forward or backward data with a filter, which is updated before where there are taps. Addresses
// are numbers, which cost cffi less than pointers do.
static enum partita_status py_run(const struct partita_plan *plan, enum partita_direction direction,
                                  struct partita_filter *filter, uintptr_t to, uintptr_t from,
                                  uintptr_t taps, uintptr_t bias, const struct partita_call *call)
{
    if (taps) {
        const enum partita_status status =
            partita_filter_update(filter, (const void *)taps, (const void *)bias, call);
        if (status != PARTITA_OK) return status;
    }
    if (direction == PARTITA_FORWARD)
        return partita_forward(plan, filter, (void *)to, (const void *)from, call);
    return partita_backward_data(plan, filter, (void *)to, (const void *)from, call);
}

// partita_causal_forward for frames that continue states, in a call like one that is known.
static enum partita_status py_causal_continue(const struct partita_causal *known, uintptr_t y,
                                              uintptr_t x, uintptr_t states, uintptr_t w,
                                              uintptr_t bias, uintptr_t indices, uintptr_t seqlens)
{
    struct partita_causal call = *known;
    call.y.data = (void *)y;
    call.x.data = (void *)x;
    call.initial.data = call.final.data = (void *)states;
    call.w = (const void *)w;
    call.bias = (const void *)bias;
    call.cache_indices = (const int32_t *)indices;
    call.cache_seqlens = (const int32_t *)seqlens;
    return partita_causal_forward(&call);
}

// What a capsule of DLPack (version 0) points to begins with this.
struct py_dlpack {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits; // of a sample: kind of number, size
    uint16_t lanes;
    int64_t *shape, *strides; // [ndim]; strides NULL: contiguous
    uint64_t byte_offset;
};

#include "memo.h"
#include "xla.h"
