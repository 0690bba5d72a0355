// SPDX-License-Identifier: MIT
#include "scene.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ir_name.h"
#include "io/audio.h"
#include "route/route.h"
#include "steer.h"

// Between two looks at the file. It is read when two see the same file: an editor may still write.
static const double LOOK_SECONDS = 0.2;

// NaN: there is no file; an editor may be replacing it.
static double written_at(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return NAN;
    return (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
}

static bool check_filter(const struct settings *s, const char *ir, struct fault *fault)
{
    bool good = route_check(s, ir, fault);
    for (size_t n; good && *ir; ir += n + (ir[n] == '+')) {
        char part[PATH_MAX];
        n = ir_name_first(ir);
        snprintf(part, sizeof part, "%.*s", (int)n, ir);
        const char *path = ir_name_path(part, NULL);
        good = audio_check_regular(path, fault) &&
               (access(path, R_OK) == 0 ||
                fault_set(fault, "%s: cannot open: %s", path, strerror(errno)));
    }
    return good;
}

bool scene_locate_fault(const struct scenes *scenes, const char *ir, struct fault *fault)
{
    const struct fault said = *fault;
    for (int i = 0; ir && i < scenes->n; i++)
        if (strcmp(scenes->list[i].ir, ir) == 0)
            return fault_set(fault, "%s:%d: %.500s", scenes->path, scenes->list[i].line, said.text);
    return false;
}

static bool read_scenes(struct scenes *ret, const struct settings *s, struct fault *fault)
{
    const double written = written_at(s->scene);
    if (!scenes_read(ret, s->scene, fault)) return false;
    ret->written = written;
    for (int i = 0; i < ret->n; i++)
        if (!check_filter(s, ret->list[i].ir, fault))
            return scene_locate_fault(ret, ret->list[i].ir, fault);
    return true;
}

bool scene_open(struct scenes *ret, struct settings *settings, struct fault *fault)
{
    struct word_list *irs = &settings->irs;
    if (!settings->scene) return true;
    if (irs->n) return fault_usage(fault, "--scene names the filters; leave out --ir and --config");
    if (!read_scenes(ret, settings, fault)) return false;
    for (int i = 0; i < ret->n; i++) {
        const char *ir = ret->list[(ret->start + i) % ret->n].ir;
        int k = 0;
        while (k < irs->n && strcmp(irs->words[k], ir) != 0) k++;
        irs->words[k] = ir;
        irs->n = k < irs->n ? irs->n : k + 1;
    }
    return true;
}

void scene_set_state(struct live_state *state, const struct settings *settings,
                     const struct scene *scene)
{
    *state = (struct live_state){.gain = settings->gain,
                                 .dry = settings->dry,
                                 .fade = settings->fade,
                                 .direction = options_direction(settings),
                                 .mute = state->mute,
                                 .bypass = state->bypass};
    for (int i = 0; scene && i < scene->n_values; i++) steer_set_value(state, &scene->values[i]);
}

static void apply(struct session *s, int i, int slot)
{
    s->scene = i;
    scene_set_state(&s->state, s->settings, &s->scenes->list[i]);
    filter_set_fade(s->filters, s->state.fade);
    filter_set_select(s->filters, slot);
    session_apply_state(s);
}

bool scene_select(struct session *s, int i, struct control_reply *reply, struct fault *fault)
{
    const char *ir = s->scenes->list[i].ir;
    const int slot = filter_set_find(s->filters, ir);
    const uint64_t ticket = slot < 0 ? filter_set_load(s->filters, ir, true, fault) : 0;
    if (slot < 0 && !ticket) return false;
    s->scene_ticket = reply->ticket = ticket; // one that is still being read does not follow
    s->next_scene = i;
    if (slot >= 0) apply(s, i, slot);
    return true;
}

void scene_continue(struct session *s, struct filter_set_news *news)
{
    if (!s->scene_ticket || s->scene_ticket > news->request) return;
    s->scene_ticket = 0;
    const char *ir = s->scenes->list[s->next_scene].ir;
    const int slot = filter_set_find(s->filters, ir);
    if (news->event == FILTER_SET_FAILED) scene_locate_fault(s->scenes, ir, &news->message);
    else if (slot >= 0) apply(s, s->next_scene, slot);
}

// The scene that plays gets the levels and the filter that the file has for it by now.
static void read_again(struct session *s, struct fault *message)
{
    struct fault why;
    struct scenes scenes;
    struct control_reply ignored = {0};
    if (!read_scenes(&scenes, s->settings, &why)) {
        fault_set(message, "%.500s; the old scenes stay", why.text);
        return;
    }
    if (s->scene >= 0) s->scene = scenes_find(&scenes, s->scenes->list[s->scene].name, &why);
    *s->scenes = scenes;
    fault_set(message, "%s: read again%s", scenes.path,
              s->scene < 0 ? "; the scene that plays is not in it any more, and goes on" : "");
    if (s->scene >= 0 && !scene_select(s, s->scene, &ignored, &why)) *message = why;
}

bool scene_poll(struct session *s, double now, struct fault *ret_message)
{
    // While a scene's filter is read its number must not change.
    if (!s->scenes->path || s->scene_ticket || now < s->next_look) return false;
    s->next_look = now + LOOK_SECONDS;
    const double written = written_at(s->scenes->path);
    const bool settled = written == s->seen;
    s->seen = written;
    if (!settled || written == s->scenes->written) return false;
    s->scenes->written = written;
    read_again(s, ret_message);
    return true;
}
