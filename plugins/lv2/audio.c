// SPDX-License-Identifier: MIT
// The audio thread of a plug-in: events, levels, filters and the fades between them.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <lv2/atom/util.h>
#include <lv2/core/lv2.h>

#include "io/samples/samples.h"
#include "live/chain/denormals.h"
#include "plugin.h"

uint32_t message_fill(struct message *message, enum message_kind kind, const char *path)
{
    const size_t bytes = path ? strlen(path) + 1 : 0;
    message->kind = kind;
    if (path) memcpy(message->path, path, bytes);
    return (uint32_t)(offsetof(struct message, path) + bytes);
}

static bool audio_send(struct plugin *p, enum message_kind kind, const char *path)
{
    struct message message;
    const uint32_t size = message_fill(&message, kind, path);
    return p->schedule->schedule_work(p->schedule->handle, size, &message) == LV2_WORKER_SUCCESS;
}

// A path that is too long for the system is cut; the worker then says that it cannot be opened.
void audio_want(struct plugin *plugin, const char *text, size_t size)
{
    const size_t n = strnlen(text, size < PATH_SIZE - 1 ? size : PATH_SIZE - 1);
    memcpy(plugin->audio.wanted, text, n);
    plugin->audio.wanted[n] = 0;
}

static void read_event(struct plugin *p, const LV2_Atom_Object *object)
{
    const LV2_Atom *property = NULL, *value = NULL;
    lv2_atom_object_get(object, p->urids.patch_property, &property, p->urids.patch_value, &value,
                        0);
    const bool ours = property && property->type == p->urids.atom_urid &&
                      ((const LV2_Atom_URID *)property)->body == p->urids.response;
    if (object->body.otype == p->urids.patch_get && (ours || !property))
        p->audio.notify_wanted = true;
    if (object->body.otype == p->urids.patch_set && ours && value &&
        value->type == p->urids.atom_path)
        audio_want(p, LV2_ATOM_BODY_CONST(value), value->size);
}

static void read_events(struct plugin *p)
{
    if (!p->control || p->control->atom.type != p->urids.atom_sequence) return;
    LV2_ATOM_SEQUENCE_FOREACH(p->control, event)
    {
        if (lv2_atom_forge_is_object_type(&p->forge, event->body.type))
            read_event(p, (const LV2_Atom_Object *)&event->body);
    }
}

// Writes the sequence of events, with a patch:Set of the file that plays if the host is to be told.
static void write_events(struct plugin *p)
{
    enum { SPACE_BESIDE_PATH = 256 };
    struct plugin_audio *a = &p->audio;
    const uint32_t capacity = p->notify ? p->notify->atom.size : 0;
    const char *path = a->next.path ? a->next.path : a->playing.path;
    const uint32_t n = path ? (uint32_t)strlen(path) : 0;
    LV2_Atom_Forge_Frame sequence, set;
    if (capacity < sizeof(LV2_Atom_Sequence)) return; // not even an empty sequence
    lv2_atom_forge_set_buffer(&p->forge, (uint8_t *)p->notify, capacity);
    lv2_atom_forge_sequence_head(&p->forge, &sequence, 0);
    if (a->notify_wanted && n && capacity >= n + SPACE_BESIDE_PATH) {
        lv2_atom_forge_frame_time(&p->forge, 0);
        lv2_atom_forge_object(&p->forge, &set, 0, p->urids.patch_set);
        lv2_atom_forge_key(&p->forge, p->urids.patch_property);
        lv2_atom_forge_urid(&p->forge, p->urids.response);
        lv2_atom_forge_key(&p->forge, p->urids.patch_value);
        lv2_atom_forge_path(&p->forge, path, n);
        lv2_atom_forge_pop(&p->forge, &set);
    }
    a->notify_wanted = false;
    lv2_atom_forge_pop(&p->forge, &sequence);
}

// NaN and everything below the lowest level is silence.
static float amplitude(float decibels)
{
    const float db = fminf(fmaxf(decibels, MIN_DB), MAX_DB);
    return db > MIN_DB ? powf(10, db / 20) : 0;
}

static void update_levels(struct plugin *p)
{
    struct plugin_audio *a = &p->audio;
    const float gain = amplitude(*p->gain), dry = gain * amplitude(*p->dry),
                wet = gain * amplitude(*p->wet);
    const size_t frames = a->started ? p->ramp : 0;
    if (dry != a->dry.target) ramp_set_target(&a->dry, dry, frames);
    if (wet != a->wet.target) ramp_set_target(&a->wet, wet, frames);
    a->started = true;
}

static void end_fade(struct plugin_audio *a)
{
    a->playing = a->next;
    a->next = (struct loaded){0};
    a->release_wanted = true;
}

static void begin_change(struct plugin *p, const struct loaded *loaded)
{
    struct plugin_audio *a = &p->audio;
    if (loaded->convolver == a->playing.convolver) {
        partita_stream_swap(loaded->convolver->stream, loaded->filter, p->fade);
        a->playing = *loaded;
        a->swapping = true;
    } else {
        a->next = *loaded;
        a->fade_at = 0;
    }
    a->notify_wanted = true;
}

// Ends and begins changes. The host may execute the work within the call that schedules it.
static void follow_changes(struct plugin *p)
{
    struct plugin_audio *a = &p->audio;
    if (a->swapping && !partita_stream_swapping(a->playing.convolver->stream)) {
        a->swapping = false;
        a->release_wanted = true;
    }
    if (a->next.convolver && a->fade_at >= p->fade) end_fade(a);
    if (a->release_wanted) a->release_wanted = !audio_send(p, MESSAGE_RELEASE, NULL);
    if (!a->wanted[0] || atomic_load(&p->busy)) return;
    atomic_store(&p->busy, true);
    if (audio_send(p, MESSAGE_LOAD, a->wanted)) a->wanted[0] = 0;
    else atomic_store(&p->busy, false); // the host's queue is full: in the next call
}

static void play(const struct loaded *loaded, const struct plugin *p, float *const *y, size_t n)
{
    if (loaded->convolver) {
        partita_stream_process(loaded->convolver->stream, y, p->audio.x, n);
        return;
    }
    for (size_t k = 0; k < p->variant->outputs; k++) memset(y[k], 0, n * sizeof **y);
}

// As partita_stream_swap fades: frame i is old + (new - old) * (i + 1) / (fade + 1).
static void fade_to_next(struct plugin *p, size_t n)
{
    struct plugin_audio *a = &p->audio;
    play(&a->next, p, a->y_next, n);
    for (size_t k = 0; k < p->variant->outputs; k++) {
        for (size_t i = 0; i < n; i++) {
            const size_t at = a->fade_at + i;
            const float share = at < p->fade ? (float)(at + 1) / (float)(p->fade + 1) : 1;
            a->y[k][i] += (a->y_next[k][i] - a->y[k][i]) * share;
        }
    }
    a->fade_at += n;
}

// A single input is mixed into every output, several inputs each into the output of the same
// number.
static void mix(struct plugin *p, size_t at, size_t n)
{
    struct plugin_audio *a = &p->audio;
    ramp_next(&a->dry, a->dry_levels, n);
    ramp_next(&a->wet, a->wet_levels, n);
    for (size_t k = 0; k < p->variant->outputs; k++) {
        const float *x = a->x[p->variant->inputs == 1 ? 0 : k];
        float *y = p->outputs[k] + at;
        for (size_t i = 0; i < n; i++)
            y[i] = a->wet_levels[i] * a->y[k][i] + a->dry_levels[i] * x[i];
    }
}

// Copies the inputs first, since the host may use the same memory for outputs.
static void process(struct plugin *p, size_t at, size_t n)
{
    struct plugin_audio *a = &p->audio;
    for (size_t c = 0; c < p->variant->inputs; c++) {
        memcpy(a->x[c], p->inputs[c] + at, n * sizeof *a->x[c]);
        samples_zero_nonfinite_f32(a->x[c], n); // they would spread over the length of the filter
    }
    play(&a->playing, p, a->y, n);
    if (a->next.convolver) fade_to_next(p, n);
    mix(p, at, n);
}

void audio_run(struct plugin *plugin, uint32_t n)
{
    struct plugin *p = plugin;
    const uint64_t mode = denormals_off();
    read_events(p);
    update_levels(p);
    for (size_t at = 0; at < n; at += p->block)
        process(p, at, n - at < p->block ? n - at : p->block);
    denormals_restore(mode);
    follow_changes(p);
    write_events(p);
    const struct convolver *c = p->audio.playing.convolver;
    *p->latency = c ? (float)partita_stream_latency(c->stream) : 0;
}

void audio_reset(struct plugin *plugin)
{
    struct plugin_audio *a = &plugin->audio;
    if (a->next.convolver) end_fade(a);
    if (a->playing.convolver) partita_stream_reset(a->playing.convolver->stream);
    a->started = false;
}

LV2_Worker_Status audio_receive(LV2_Handle instance, uint32_t size, const void *data)
{
    struct plugin *p = instance;
    struct message message;
    if (size > sizeof message) return LV2_WORKER_ERR_UNKNOWN;
    memcpy(&message, data, size);
    if (message.kind == MESSAGE_LOADED) begin_change(p, &message.loaded);
    else audio_want(p, message.path, size - offsetof(struct message, path));
    return LV2_WORKER_SUCCESS;
}
