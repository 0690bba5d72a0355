// SPDX-License-Identifier: MIT
// What a plug-in does beside the audio thread: it loads and releases filters, saves and restores
// its state.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <lv2/core/lv2_util.h>

#include "plugin.h"

// Loads a file. present: the convolver that may get a filter of the same plan; NULL: none.
static bool load(struct plugin *p, const char *path, struct convolver *present)
{
    struct plugin_worker *w = &p->worker;
    const struct convolver_request request = {p->variant, path, p->rate, p->block, present};
    struct fault note, fault;
    struct loaded loaded;
    if (!convolver_load(&loaded, &request, &note, &fault)) {
        lv2_log_error(&p->logger, "partita: %s%s\n", fault.text,
                      w->now.convolver ? "; the previous impulse response stays" : "");
        // A state that is saved now still names the file, which may be back next time.
        if (!w->now.path) w->now.path = strdup(path);
        return false;
    }
    if (*note.text) lv2_log_warning(&p->logger, "partita: %s\n", note.text);
    w->before = w->now;
    w->now = loaded;
    return true;
}

static void take_back(struct plugin_worker *w)
{
    struct loaded refused = w->now;
    w->now = w->before;
    w->before = (struct loaded){0};
    convolver_release(&refused, w->now.convolver);
}

static LV2_Worker_Status work_load(struct plugin *p, const char *path,
                                   LV2_Worker_Respond_Function respond,
                                   LV2_Worker_Respond_Handle handle)
{
    if (!load(p, path, p->worker.now.convolver)) {
        atomic_store(&p->busy, false);
        return LV2_WORKER_SUCCESS;
    }
    const struct message answer = {.kind = MESSAGE_LOADED, .loaded = p->worker.now};
    const size_t size = offsetof(struct message, loaded) + sizeof answer.loaded;
    if (respond(handle, (uint32_t)size, &answer) == LV2_WORKER_SUCCESS) return LV2_WORKER_SUCCESS;
    lv2_log_error(&p->logger, "partita: %s: the host does not take the answer of the worker\n",
                  path);
    take_back(&p->worker);
    atomic_store(&p->busy, false);
    return LV2_WORKER_ERR_NO_SPACE;
}

static LV2_Worker_Status work(LV2_Handle instance, LV2_Worker_Respond_Function respond,
                              LV2_Worker_Respond_Handle handle, uint32_t size, const void *data)
{
    struct plugin *p = instance;
    LV2_Worker_Status status = LV2_WORKER_SUCCESS;
    struct message message;
    if (size > sizeof message) return LV2_WORKER_ERR_UNKNOWN;
    memcpy(&message, data, size);
    if (message.kind == MESSAGE_WANT) return respond(handle, size, data);
    pthread_mutex_lock(&p->worker.lock);
    if (message.kind == MESSAGE_LOAD) {
        status = work_load(p, message.path, respond, handle);
    } else {
        convolver_release(&p->worker.before, p->worker.now.convolver);
        atomic_store(&p->busy, false);
    }
    pthread_mutex_unlock(&p->worker.lock);
    return status;
}

const LV2_Worker_Interface worker_interface = {work, audio_receive, NULL};

static LV2_State_Status save(LV2_Handle instance, LV2_State_Store_Function store,
                             LV2_State_Handle handle, uint32_t flags,
                             const LV2_Feature *const *features)
{
    struct plugin *p = instance;
    const LV2_State_Map_Path *map = lv2_features_data(features, LV2_STATE__mapPath);
    const LV2_State_Free_Path *release = lv2_features_data(features, LV2_STATE__freePath);
    (void)flags;
    pthread_mutex_lock(&p->worker.lock);
    const char *now = p->worker.now.path;
    char *path = now ? strdup(now) : NULL;
    pthread_mutex_unlock(&p->worker.lock);
    if (!path) return now ? LV2_STATE_ERR_NO_SPACE : LV2_STATE_SUCCESS;
    char *abstract = map ? map->abstract_path(map->handle, path) : NULL;
    const char *value = abstract ? abstract : path;
    const LV2_State_Status status =
        store(handle, p->urids.response, value, strlen(value) + 1, p->urids.atom_path,
              LV2_STATE_IS_POD | (abstract ? LV2_STATE_IS_PORTABLE : 0));
    if (release) release->free_path(release->handle, abstract);
    else free(abstract);
    free(path);
    return status;
}

// Loads at once if the audio thread cannot run, so that the first sample is already filtered.
// Otherwise the audio thread asks for the file, after a change that is under way.
static LV2_State_Status choose(struct plugin *p, const char *path,
                               const LV2_Worker_Schedule *schedule)
{
    if (p->activated || atomic_load(&p->busy)) {
        struct message message;
        if (strlen(path) >= PATH_SIZE) return LV2_STATE_ERR_UNKNOWN;
        const uint32_t size = message_fill(&message, MESSAGE_WANT, path);
        if (!schedule) audio_want(p, path, strlen(path)); // the host does not call run() meanwhile
        else if (schedule->schedule_work(schedule->handle, size, &message) != LV2_WORKER_SUCCESS)
            return LV2_STATE_ERR_NO_SPACE;
        return LV2_STATE_SUCCESS;
    }
    p->audio.wanted[0] = 0; // an older choice
    pthread_mutex_lock(&p->worker.lock);
    const bool good = load(p, path, NULL);
    if (good) {
        p->audio.playing = p->worker.now;
        p->audio.notify_wanted = true;
        convolver_release(&p->worker.before, p->worker.now.convolver);
    }
    pthread_mutex_unlock(&p->worker.lock);
    return good ? LV2_STATE_SUCCESS : LV2_STATE_ERR_UNKNOWN;
}

static LV2_State_Status restore(LV2_Handle instance, LV2_State_Retrieve_Function retrieve,
                                LV2_State_Handle handle, uint32_t flags,
                                const LV2_Feature *const *features)
{
    struct plugin *p = instance;
    const LV2_State_Map_Path *map = lv2_features_data(features, LV2_STATE__mapPath);
    const LV2_State_Free_Path *release = lv2_features_data(features, LV2_STATE__freePath);
    size_t size = 0;
    uint32_t type = 0;
    const char *value = retrieve(handle, p->urids.response, &size, &type, &flags);
    if (!value || !size) return LV2_STATE_SUCCESS; // saved without an impulse response
    // PipeWire, which reads the path from its configuration, gives no type.
    if (type && type != p->urids.atom_path) return LV2_STATE_ERR_BAD_TYPE;
    char *text = strndup(value, size);
    if (!text) return LV2_STATE_ERR_NO_SPACE;
    char *absolute = map ? map->absolute_path(map->handle, text) : NULL;
    const LV2_State_Status status =
        choose(p, absolute ? absolute : text, lv2_features_data(features, LV2_WORKER__schedule));
    if (release) release->free_path(release->handle, absolute);
    else free(absolute);
    free(text);
    return status;
}

const LV2_State_Interface state_interface = {save, restore};
