// SPDX-License-Identifier: MIT
// See lv2_host.h.
#include "lv2_host.h"

#include <lilv/lilv.h>
#include <lv2/atom/forge.h>
#include <lv2/atom/util.h>
#include <lv2/buf-size/buf-size.h>
#include <lv2/log/log.h>
#include <lv2/options/options.h>
#include <lv2/patch/patch.h>
#include <lv2/state/state.h>
#include <lv2/worker/worker.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/interpose.h"

enum { SLOTS = 16, SLOT_BYTES = 4200, EVENT_BYTES = 8192, MAX_FEATURES = 8, N_LEVELS = 3 };

static const char response_uri[] = "urn:partita:lv2:impulse-response";

// Messages from one thread to another, without locks.
struct queue {
    atomic_uint first, end;
    struct {
        uint32_t size;
        char data[SLOT_BYTES];
    } slots[SLOTS];
};

struct host {
    LilvWorld *world;
    const LilvPlugin *plugin;
    LilvInstance *instance;
    const LV2_Worker_Interface *worker;
    LV2_Worker_Schedule schedule;
    LV2_Options_Option options[2];
    int32_t block;
    LV2_Feature features[MAX_FEATURES];
    const LV2_Feature *feature_list[MAX_FEATURES + 1];
    struct queue requests, answers;
    atomic_int refused_schedules, refused_answers;
    float levels[N_LEVELS], latency;
    uint32_t first_input, first_output, n_inputs, n_outputs;
    bool events;
    LV2_Atom_Forge forge;
    LV2_Atom_Forge_Frame sequence;
    _Alignas(8) uint8_t control[EVENT_BYTES], notify[EVENT_BYTES];
    LV2_Atom no_events;
    char notified[HOST_PATH];
    pthread_t thread;
    bool has_thread;
    atomic_bool stop;
};

// URIs and log lines of all hosts.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *uris[256];
static char log_text[HOST_LOG];

static LV2_URID map_uri(LV2_URID_Map_Handle handle, const char *uri)
{
    (void)handle;
    LV2_URID id = 0;
    pthread_mutex_lock(&lock);
    while (uris[id] && strcmp(uris[id], uri) != 0) id++;
    if (!uris[id]) uris[id] = strdup(uri);
    pthread_mutex_unlock(&lock);
    return id + 1;
}

static const char *unmap_uri(LV2_URID_Unmap_Handle handle, LV2_URID urid)
{
    (void)handle;
    return urid ? uris[urid - 1] : NULL;
}

static LV2_URID_Map map = {NULL, map_uri};
static LV2_URID_Unmap unmap = {NULL, unmap_uri};

static int log_va(LV2_Log_Handle handle, LV2_URID type, const char *format, va_list arguments)
{
    (void)handle;
    (void)type;
    pthread_mutex_lock(&lock);
    const size_t length = strlen(log_text);
    const int n = vsnprintf(log_text + length, sizeof log_text - length, format, arguments);
    pthread_mutex_unlock(&lock);
    return n;
}

__attribute__((format(printf, 3, 4))) static int log_line(LV2_Log_Handle handle, LV2_URID type,
                                                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = log_va(handle, type, format, arguments);
    va_end(arguments);
    return n;
}

static LV2_Log_Log host_log = {NULL, log_line, log_va};

const char *host_take_log(char text[HOST_LOG])
{
    pthread_mutex_lock(&lock);
    memcpy(text, log_text, HOST_LOG);
    log_text[0] = 0;
    pthread_mutex_unlock(&lock);
    return text;
}

static bool queue_put(struct queue *queue, uint32_t size, const void *data)
{
    const unsigned end = atomic_load(&queue->end);
    if (end - atomic_load(&queue->first) == SLOTS || size > SLOT_BYTES) return false;
    queue->slots[end % SLOTS].size = size;
    memcpy(queue->slots[end % SLOTS].data, data, size);
    atomic_store(&queue->end, end + 1);
    return true;
}

static bool is_refused(atomic_int *count)
{
    if (atomic_load(count) == 0) return false;
    atomic_fetch_sub(count, 1);
    return true;
}

static LV2_Worker_Status schedule_work(LV2_Worker_Schedule_Handle handle, uint32_t size,
                                       const void *data)
{
    struct host *host = handle;
    return !is_refused(&host->refused_schedules) && queue_put(&host->requests, size, data)
               ? LV2_WORKER_SUCCESS
               : LV2_WORKER_ERR_NO_SPACE;
}

static LV2_Worker_Status respond(LV2_Worker_Respond_Handle handle, uint32_t size, const void *data)
{
    struct host *host = handle;
    return !is_refused(&host->refused_answers) && queue_put(&host->answers, size, data)
               ? LV2_WORKER_SUCCESS
               : LV2_WORKER_ERR_NO_SPACE;
}

int host_work(struct host *host)
{
    struct queue *q = &host->requests;
    int n = 0;
    for (unsigned at; (at = atomic_load(&q->first)) != atomic_load(&q->end); n++) {
        host->worker->work(host->instance->lv2_handle, respond, host, q->slots[at % SLOTS].size,
                           q->slots[at % SLOTS].data);
        atomic_store(&q->first, at + 1);
    }
    return n;
}

static void *work_until_stop(void *argument)
{
    struct host *host = argument;
    while (!atomic_load(&host->stop)) {
        host_work(host);
        usleep(500);
    }
    return NULL;
}

static void offer(struct host *host, const char *uri, void *data)
{
    int n = 0;
    while (host->feature_list[n]) n++;
    host->features[n] = (LV2_Feature){uri, data};
    host->feature_list[n] = &host->features[n];
}

static void offer_all(struct host *host, const struct host_request *r)
{
    host->block = r->block;
    host->options[0] =
        (LV2_Options_Option){.context = LV2_OPTIONS_INSTANCE,
                             .key = r->block ? map_uri(NULL, LV2_BUF_SIZE__nominalBlockLength) : 0,
                             .size = sizeof host->block,
                             .type = map_uri(NULL, LV2_ATOM__Int),
                             .value = &host->block};
    host->schedule = (LV2_Worker_Schedule){host, schedule_work};
    offer(host, LV2_LOG__log, &host_log);
    offer(host, LV2_OPTIONS__options, host->options);
    if (!r->without_map) offer(host, LV2_URID__map, &map);
    if (!r->without_schedule) offer(host, LV2_WORKER__schedule, &host->schedule);
}

static uint32_t port_index(const struct host *host, const char *symbol)
{
    LilvNode *node = lilv_new_string(host->world, symbol);
    const LilvPort *port = lilv_plugin_get_port_by_symbol(host->plugin, node);
    lilv_node_free(node);
    if (port) return lilv_port_get_index(host->plugin, port);
    fprintf(stderr, "the plug-in has no port %s\n", symbol);
    abort();
}

static uint32_t count_ports(const struct host *host, const char *direction)
{
    LilvNode *audio = lilv_new_uri(host->world, LV2_CORE__AudioPort),
             *side = lilv_new_uri(host->world, direction);
    const uint32_t n = lilv_plugin_get_num_ports_of_class(host->plugin, audio, side, NULL);
    lilv_node_free(audio);
    lilv_node_free(side);
    return n;
}

static void empty_events(struct host *host)
{
    lv2_atom_forge_set_buffer(&host->forge, host->control, sizeof host->control);
    lv2_atom_forge_sequence_head(&host->forge, &host->sequence, 0);
    *(LV2_Atom *)host->notify = (LV2_Atom){EVENT_BYTES - sizeof(LV2_Atom), 0};
}

static void connect_ports(struct host *host, const struct host_request *r)
{
    static const char *const symbols[N_LEVELS] = {"dry", "wet", "gain"};
    void *control = host->control, *notify = host->notify;
    if (r->without_event_ports) control = notify = NULL;
    if (r->unsized_event_ports) control = notify = &host->no_events;
    host->events = control == host->control;
    lilv_instance_connect_port(host->instance, port_index(host, "control"), control);
    lilv_instance_connect_port(host->instance, port_index(host, "notify"), notify);
    lilv_instance_connect_port(host->instance, port_index(host, "latency"), &host->latency);
    for (int i = 0; i < N_LEVELS; i++)
        lilv_instance_connect_port(host->instance, port_index(host, symbols[i]), &host->levels[i]);
    host->levels[HOST_DRY] = -90;
    host->latency = -1;
    host->first_input = port_index(host, "input_1");
    host->first_output = port_index(host, "output_1");
    host->n_inputs = count_ports(host, LV2_CORE__InputPort);
    host->n_outputs = count_ports(host, LV2_CORE__OutputPort);
    lv2_atom_forge_init(&host->forge, &map);
    empty_events(host);
}

struct host *host_open(const struct host_request *request)
{
    struct host *host = calloc(1, sizeof *host);
    host->world = lilv_world_new();
    lilv_world_load_all(host->world);
    LilvNode *uri = lilv_new_uri(host->world, request->uri);
    host->plugin = lilv_plugins_get_by_uri(lilv_world_get_all_plugins(host->world), uri);
    lilv_node_free(uri);
    if (!host->plugin) {
        fprintf(stderr, "LV2_PATH has no %s\n", request->uri);
        abort();
    }
    offer_all(host, request);
    host->instance = lilv_plugin_instantiate(
        host->plugin, request->rate != 0 ? request->rate : 48000, host->feature_list);
    if (!host->instance) {
        host_close(host);
        return NULL;
    }
    host->worker = lilv_instance_get_extension_data(host->instance, LV2_WORKER__interface);
    connect_ports(host, request);
    if (request->thread)
        host->has_thread = pthread_create(&host->thread, NULL, work_until_stop, host) == 0;
    return host;
}

void host_close(struct host *host)
{
    atomic_store(&host->stop, true);
    if (host->has_thread) pthread_join(host->thread, NULL);
    lilv_instance_free(host->instance);
    lilv_world_free(host->world);
    free(host);
}

void host_activate(struct host *host)
{
    lilv_instance_activate(host->instance);
}

void host_deactivate(struct host *host)
{
    lilv_instance_deactivate(host->instance);
}

static void read_notified(struct host *host)
{
    LV2_ATOM_SEQUENCE_FOREACH((const LV2_Atom_Sequence *)host->notify, event)
    {
        const LV2_Atom *value = NULL;
        const LV2_Atom_Object *object = (const LV2_Atom_Object *)&event->body;
        lv2_atom_object_get(object, map_uri(NULL, LV2_PATCH__value), &value, 0);
        if (!value) continue;
        snprintf(host->notified, HOST_PATH, "%s", (const char *)LV2_ATOM_BODY_CONST(value));
        if (value->size == strlen(host->notified) + 1) continue;
        fprintf(stderr, "%s: an atom of %u bytes\n", host->notified, value->size);
        abort();
    }
}

void host_run(struct host *host, float *const *y, float *const *x, uint32_t n)
{
    struct queue *q = &host->answers;
    for (uint32_t c = 0; c < host->n_inputs; c++)
        lilv_instance_connect_port(host->instance, host->first_input + c, x[c]);
    for (uint32_t k = 0; k < host->n_outputs; k++)
        lilv_instance_connect_port(host->instance, host->first_output + k, y[k]);
    watch_this_thread(true);
    for (unsigned at; (at = atomic_load(&q->first)) != atomic_load(&q->end);) {
        host->worker->work_response(host->instance->lv2_handle, q->slots[at % SLOTS].size,
                                    q->slots[at % SLOTS].data);
        atomic_store(&q->first, at + 1);
    }
    lilv_instance_run(host->instance, n);
    watch_this_thread(false);
    if (!host->events) return;
    read_notified(host);
    empty_events(host);
}

void host_refuse(struct host *host, int schedules, int answers)
{
    atomic_store(&host->refused_schedules, schedules);
    atomic_store(&host->refused_answers, answers);
}

void host_set_level(struct host *host, enum host_level level, float decibels)
{
    host->levels[level] = decibels;
}

float host_latency(const struct host *host)
{
    return host->latency;
}

size_t host_outputs(const struct host *host)
{
    return host->n_outputs;
}

static void add_event(struct host *host, const char *type, const char *path)
{
    LV2_Atom_Forge_Frame frame;
    lv2_atom_forge_frame_time(&host->forge, 0);
    lv2_atom_forge_object(&host->forge, &frame, 0, map_uri(NULL, type));
    lv2_atom_forge_key(&host->forge, map_uri(NULL, LV2_PATCH__property));
    lv2_atom_forge_urid(&host->forge, map_uri(NULL, response_uri));
    if (path) {
        lv2_atom_forge_key(&host->forge, map_uri(NULL, LV2_PATCH__value));
        lv2_atom_forge_path(&host->forge, path, (uint32_t)strlen(path));
    }
    lv2_atom_forge_pop(&host->forge, &frame);
}

void host_choose(struct host *host, const char *path)
{
    add_event(host, LV2_PATCH__Set, path);
}

void host_ask(struct host *host)
{
    add_event(host, LV2_PATCH__Get, NULL);
}

const char *host_take_notified(struct host *host, char path[HOST_PATH])
{
    memcpy(path, host->notified, HOST_PATH);
    host->notified[0] = 0;
    return path;
}

void host_save(struct host *host, const char *folder)
{
    LilvState *state =
        lilv_state_new_from_instance(host->plugin, host->instance, &map, folder, folder, folder,
                                     folder, NULL, NULL, 0, host->feature_list);
    if (lilv_state_save(host->world, &map, &unmap, state, NULL, folder, "state.ttl")) abort();
    lilv_state_free(state);
}

void host_restore(struct host *host, const char *folder)
{
    char path[HOST_PATH];
    snprintf(path, sizeof path, "%s/state.ttl", folder);
    LilvState *state = lilv_state_new_from_file(host->world, &map, NULL, path);
    if (!state) abort();
    lilv_state_restore(state, host->instance, NULL, NULL, 0, host->feature_list);
    lilv_state_free(state);
}

static const void *retrieve_text(LV2_State_Handle path, uint32_t key, size_t *size, uint32_t *type,
                                 uint32_t *flags)
{
    *size = strlen(path);
    *type = 0;
    *flags = LV2_STATE_IS_POD | LV2_STATE_IS_PORTABLE;
    return key == map_uri(NULL, response_uri) ? path : NULL;
}

void host_restore_text(struct host *host, const char *path)
{
    const LV2_State_Interface *state =
        lilv_instance_get_extension_data(host->instance, LV2_STATE__interface);
    state->restore(host->instance->lv2_handle, retrieve_text, (void *)path, 0, host->feature_list);
}
