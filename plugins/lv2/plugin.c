// SPDX-License-Identifier: MIT
// The plug-ins, one for each variant, all with the same functions.
#include "plugin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lv2/buf-size/buf-size.h>
#include <lv2/core/lv2.h>
#include <lv2/core/lv2_util.h>
#include <lv2/options/options.h>
#include <lv2/patch/patch.h>

// The fade from one impulse response to the next, and the time that levels take to change.
static const double FADE_SECONDS = 0.05, RAMP_SECONDS = 0.02;

static const double MAX_RATE = 1 << 24;

enum { DEFAULT_BLOCK = 1024, MAX_BLOCK = 8192 };

#define VARIANT(uri, title, inputs, outputs, order) {uri, title, inputs, outputs, order},
static const struct variant variants[N_VARIANTS] = {EACH_VARIANT(VARIANT)};

static void map_urids(struct plugin_urids *u, LV2_URID_Map *map)
{
    u->atom_path = map->map(map->handle, LV2_ATOM__Path);
    u->atom_urid = map->map(map->handle, LV2_ATOM__URID);
    u->atom_sequence = map->map(map->handle, LV2_ATOM__Sequence);
    u->atom_int = map->map(map->handle, LV2_ATOM__Int);
    u->patch_set = map->map(map->handle, LV2_PATCH__Set);
    u->patch_get = map->map(map->handle, LV2_PATCH__Get);
    u->patch_property = map->map(map->handle, LV2_PATCH__property);
    u->patch_value = map->map(map->handle, LV2_PATCH__value);
    u->nominal_block = map->map(map->handle, LV2_BUF_SIZE__nominalBlockLength);
    u->max_block = map->map(map->handle, LV2_BUF_SIZE__maxBlockLength);
    u->response = map->map(map->handle, RESPONSE_URI);
}

// The length of the usual call: nominal, else the longest, else a default. Calls may be longer.
static size_t choose_block(const struct plugin *p, const LV2_Options_Option *options)
{
    int32_t nominal = 0, longest = 0;
    for (const LV2_Options_Option *o = options; o && o->key; o++) {
        if (o->type != p->urids.atom_int || o->size != sizeof(int32_t)) continue;
        if (o->key == p->urids.nominal_block) nominal = *(const int32_t *)o->value;
        if (o->key == p->urids.max_block) longest = *(const int32_t *)o->value;
    }
    const int32_t block = nominal > 0 ? nominal : longest > 0 ? longest : DEFAULT_BLOCK;
    return (size_t)(block < MAX_BLOCK ? block : MAX_BLOCK);
}

static bool allocate_samples(struct plugin *p)
{
    struct plugin_audio *a = &p->audio;
    const size_t inputs = p->variant->inputs, outputs = p->variant->outputs;
    float *at = calloc((inputs + 2 * outputs + 2) * p->block, sizeof *at);
    p->samples = at;
    if (!at) return false;
    for (size_t c = 0; c < inputs; c++, at += p->block) a->x[c] = at;
    for (size_t k = 0; k < outputs; k++, at += p->block) a->y[k] = at;
    for (size_t k = 0; k < outputs; k++, at += p->block) a->y_next[k] = at;
    a->dry_levels = at;
    a->wet_levels = at + p->block;
    return true;
}

static void connect_port(LV2_Handle instance, uint32_t port, void *data)
{
    struct plugin *p = instance;
    switch (port) {
    case PORT_CONTROL:
        p->control = data;
        return;
    case PORT_NOTIFY:
        p->notify = data;
        return;
    case PORT_DRY:
        p->dry = data;
        return;
    case PORT_WET:
        p->wet = data;
        return;
    case PORT_GAIN:
        p->gain = data;
        return;
    case PORT_LATENCY:
        p->latency = data;
        return;
    }
    const size_t channel = port - N_FIXED_PORTS, inputs = p->variant->inputs;
    if (channel < inputs) p->inputs[channel] = data;
    else if (channel - inputs < p->variant->outputs) p->outputs[channel - inputs] = data;
}

static void activate(LV2_Handle instance)
{
    struct plugin *p = instance;
    audio_reset(p);
    p->activated = true;
}

static void run(LV2_Handle instance, uint32_t n)
{
    audio_run(instance, n);
}

static void deactivate(LV2_Handle instance)
{
    struct plugin *p = instance;
    p->activated = false;
}

static void cleanup(LV2_Handle instance)
{
    struct plugin *p = instance;
    convolver_release_all(&p->worker.now, &p->worker.before);
    pthread_mutex_destroy(&p->worker.lock);
    free(p->samples);
    free(p);
}

static const void *extension_data(const char *uri)
{
    if (strcmp(uri, LV2_WORKER__interface) == 0) return &worker_interface;
    if (strcmp(uri, LV2_STATE__interface) == 0) return &state_interface;
    return NULL;
}

static LV2_Handle instantiate(const LV2_Descriptor *descriptor, double rate, const char *folder,
                              const LV2_Feature *const *features)
{
    const struct variant *variant = variants;
    while (strcmp(variant->uri, descriptor->URI) != 0) variant++;
    LV2_URID_Map *map = lv2_features_data(features, LV2_URID__map);
    const LV2_Worker_Schedule *schedule = lv2_features_data(features, LV2_WORKER__schedule);
    LV2_Log_Logger logger;
    (void)folder;
    lv2_log_logger_init(&logger, map, lv2_features_data(features, LV2_LOG__log));
    if (!map || !schedule) {
        lv2_log_error(&logger, "partita: %s: the host lacks the feature %s\n", variant->title,
                      map ? LV2_WORKER__schedule : LV2_URID__map);
        return NULL;
    }
    if (!(rate >= 1 && rate <= MAX_RATE)) {
        lv2_log_error(&logger, "partita: %s: a sample rate of %g Hz; 1 to %g are possible\n",
                      variant->title, rate, MAX_RATE);
        return NULL;
    }
    struct plugin *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->variant = variant;
    p->rate = (uint32_t)lrint(rate);
    p->fade = (size_t)(FADE_SECONDS * rate);
    p->ramp = (size_t)(RAMP_SECONDS * rate);
    p->logger = logger;
    p->schedule = schedule;
    map_urids(&p->urids, map);
    lv2_atom_forge_init(&p->forge, map);
    p->block = choose_block(p, lv2_features_data(features, LV2_OPTIONS__options));
    pthread_mutex_init(&p->worker.lock, NULL);
    if (allocate_samples(p)) return p;
    lv2_log_error(&logger, "partita: %s: out of memory\n", variant->title);
    cleanup(p);
    return NULL;
}

#define DESCRIPTOR(uri, title, inputs, outputs, order)                                             \
    {uri, instantiate, connect_port, activate, run, deactivate, cleanup, extension_data},
static const LV2_Descriptor descriptors[N_VARIANTS] = {EACH_VARIANT(DESCRIPTOR)};

LV2_SYMBOL_EXPORT const LV2_Descriptor *lv2_descriptor(uint32_t index)
{
    return index < N_VARIANTS ? &descriptors[index] : NULL;
}
