// SPDX-License-Identifier: MIT
// Morphs of streams that close, begin again, and are saved or restored.
#include <string.h>

#include "morph.h"

void morph_close(struct partita_stream *stream)
{
    struct morph *morph = morph_of(stream);
    workers_close(stream);
    if (morph) mem_release(&stream->plan->allocator, morph->memory);
    mem_release(&stream->plan->allocator, morph);
}

void morph_reset(struct partita_stream *stream)
{
    const struct partitioned_stream *state = partitioned_stream_of(stream);
    struct morph *morph = state->morph;
    workers_abandon(stream);
    memset(state->region.data, 0, state->region.bytes);
    if (morph) {
        morph_set_weights(morph, morph->request->to);
        morph_sum_all(stream->plan, morph);
        for (size_t i = 0; i <= partitioned_of(stream->plan)->layout.n_segments; i++)
            *morph->part[i].cycle = (struct morph_cycle){.next = 0};
        morph->request->quantum = morph->request->frames = 0;
    }
    workers_resume(stream);
}

struct region morph_region(struct partita_stream *stream)
{
    const struct partitioned_stream *state = partitioned_stream_of(stream);
    if (!state->morph) return state->region;
    return (struct region){.bytes = state->region.bytes + state->morph->region.bytes};
}

void morph_copy_out(struct partita_stream *stream, void *to)
{
    const struct region *region = &partitioned_stream_of(stream)->region;
    memcpy(to, region->data, region->bytes);
    memcpy((char *)to + region->bytes, morph_of(stream)->region.data,
           morph_of(stream)->region.bytes);
}

void morph_copy_in(struct partita_stream *stream, const void *from)
{
    const struct region *region = &partitioned_stream_of(stream)->region;
    struct morph *morph = morph_of(stream);
    const char *moved = (const char *)from + region->bytes;
    memcpy(region->data, from, region->bytes);
    memcpy(morph->region.data, moved, morph->region.bytes);
    morph_sum_all(stream->plan, morph);
    memcpy(morph->region.data, moved, morph->region.bytes); // with cycles and changes
}
