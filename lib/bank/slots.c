// SPDX-License-Identifier: MIT
// Channels that open, change and close while blocks are processed.
#include <math.h>

#include "base/sizes.h"
#include "channelizer.h"
#include "core/arguments.h"

static void release_held(const struct partita_channelizer *owner, struct channel_slot *slot,
                         size_t first)
{
    for (size_t i = first; i < SLOT_HELD; i++) {
        mem_release(&owner->options.allocator, slot->held[i]);
        slot->held[i] = NULL;
    }
}

// Hands a channel over. If the one before was not taken, nobody else has seen it. Otherwise the
// thread that processes may be fading to it from the second one of `held`, but it is done with the
// third.
static void post_channel(const struct partita_channelizer *owner, struct channel_slot *slot,
                         struct channel *channel)
{
    struct channel *unseen = atomic_exchange_explicit(&slot->posted, channel, memory_order_acq_rel);
    if (unseen) {
        assert(unseen == slot->held[0]);
        mem_release(&owner->options.allocator, unseen);
    } else {
        release_held(owner, slot, 2);
        slot->held[2] = slot->held[1];
        slot->held[1] = slot->held[0];
    }
    slot->held[0] = channel;
}

// Checks the centre and makes a channel, for opening and changing.
static enum partita_status make_channel(const struct partita_channelizer *owner,
                                        const struct partita_channel_filter *filter, double centre,
                                        size_t fade, struct channel **ret)
{
    const struct partita_log *log = &owner->options.log;
    const double half = owner->options.sample_rate / 2;
    if (filter->owner != owner)
        return log_error(log, PARTITA_ERR_ARG, "filter: is of another channelizer");
    if (!(fabs(centre) <= half))
        return log_error(log, PARTITA_ERR_ARG,
                         "centre = %.12g: from %g to %g, half of the sample rate", centre, -half,
                         half);
    struct channel *channel = channel_create(filter, centre, fade);
    if (!channel) return PARTITA_ERR_NOMEM;
    *ret = channel;
    return PARTITA_OK;
}

enum partita_status partita_channelizer_open(struct partita_channelizer *channelizer,
                                             const struct partita_channel_filter *filter,
                                             double centre, size_t *ret_channel)
{
    const struct partita_log log = channelizer ? channelizer->options.log : log_default();
    struct channel *channel;
    size_t i = 0;
    if (!arguments_given(log, channelizer, filter, ret_channel)) return PARTITA_ERR_ARG;
    struct channel_slot *slots = channelizer->slots;
    const size_t n = channelizer->options.channels;
    while (i < n && atomic_load_explicit(&slots[i].state, memory_order_acquire) != SLOT_FREE) i++;
    if (i == n)
        return log_error(&log, PARTITA_ERR_STATE,
                         "all %zu channels are open, or close with the next block", n);
    const enum partita_status status = make_channel(channelizer, filter, centre, 0, &channel);
    if (status != PARTITA_OK) return status;
    release_held(channelizer, &slots[i], 0);
    slots[i].held[0] = channel;
    atomic_store_explicit(&slots[i].posted, channel, memory_order_relaxed);
    atomic_store_explicit(&slots[i].state, SLOT_OPEN, memory_order_release);
    *ret_channel = i;
    return PARTITA_OK;
}

static bool is_open(const struct partita_channelizer *channelizer, size_t channel)
{
    return channel < channelizer->options.channels &&
           atomic_load_explicit(&channelizer->slots[channel].state, memory_order_relaxed) ==
               SLOT_OPEN;
}

enum partita_status partita_channelizer_change(struct partita_channelizer *channelizer,
                                               size_t channel,
                                               const struct partita_channel_filter *filter,
                                               double centre, size_t fade)
{
    const struct partita_log log = channelizer ? channelizer->options.log : log_default();
    struct channel *changed;
    if (!arguments_given(log, channelizer, filter)) return PARTITA_ERR_ARG;
    if (!is_open(channelizer, channel))
        return log_error(&log, PARTITA_ERR_STATE, "channel %zu is not open", channel);
    const struct channel *before = channelizer->slots[channel].held[0];
    if (fade && (before->up != filter->up || before->stride != filter->stride))
        return log_error(&log, PARTITA_ERR_ARG,
                         "fade = %zu: must be 0 where the output rate changes", fade);
    if (fade > before->count)
        return log_error(&log, PARTITA_ERR_ARG, "fade = %zu: at most the outputs of a block, %zu",
                         fade, before->count);
    const enum partita_status status = make_channel(channelizer, filter, centre, fade, &changed);
    if (status == PARTITA_OK) post_channel(channelizer, &channelizer->slots[channel], changed);
    return status;
}

enum partita_status partita_channelizer_close(struct partita_channelizer *channelizer,
                                              size_t channel)
{
    if (!channelizer) return PARTITA_ERR_ARG;
    if (!is_open(channelizer, channel)) return PARTITA_ERR_STATE;
    atomic_store_explicit(&channelizer->slots[channel].state, SLOT_CLOSING, memory_order_release);
    return PARTITA_OK;
}

// An empty slot begins with the channel that it takes, an open one fades to it.
static bool slot_take(struct channel_slot *slot)
{
    const int state = atomic_load_explicit(&slot->state, memory_order_acquire);
    slot->before = NULL;
    if (state == SLOT_FREE) return false;
    if (state == SLOT_CLOSING) {
        slot->now = NULL;
        atomic_store_explicit(&slot->posted, NULL, memory_order_relaxed);
        atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_release);
        return false;
    }
    if (!atomic_load_explicit(&slot->posted, memory_order_relaxed)) return true;
    struct channel *next = atomic_exchange_explicit(&slot->posted, NULL, memory_order_acq_rel);
    const struct channel *now = slot->now;
    if (next->fade && now && now->up == next->up && now->stride == next->stride)
        slot->before = slot->now;
    slot->now = next;
    return true;
}

size_t slots_take(struct partita_channelizer *owner)
{
    size_t n = 0;
    for (size_t i = 0; i < owner->options.channels; i++)
        if (slot_take(&owner->slots[i])) owner->active[n++] = i;
    return n;
}

void slots_release(struct partita_channelizer *owner)
{
    for (size_t i = 0; i < owner->options.channels; i++) release_held(owner, &owner->slots[i], 0);
}
