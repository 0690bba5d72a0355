// SPDX-License-Identifier: MIT
// The scenes of a run: --scene.
#ifndef PARTITA_APPS_LIVE_SCENE_H
#define PARTITA_APPS_LIVE_SCENE_H

#include "session.h"

// Reads the file of scenes, if settings->scene names one, and makes their filters those of the
// settings, that of the scene to play first in front. False, with a fault that names file, line and
// value, also if a filter's file cannot be opened.
bool scene_open(struct scenes *ret, struct settings *settings, struct fault *fault);

// The levels of a scene; the options say what it does not, or everything for NULL. Leaves mute and
// bypass.
void scene_set_state(struct live_state *state, const struct settings *settings,
                     const struct scene *scene);

// Fades to a scene, at once or with reply->ticket once its file has been read. False, with a fault:
// nothing changes.
bool scene_select(struct session *session, int i, struct control_reply *reply, struct fault *fault);

// Puts file and line of the scene with this filter in front of a message about it. Returns false.
bool scene_locate_fault(const struct scenes *scenes, const char *ir, struct fault *fault);

// Continues a scene whose file has been read, or says where the scene is whose file cannot be used.
void scene_continue(struct session *session, struct filter_set_news *news);

// Reads the file again if it has changed. True, with a message, if it has been read or cannot be
// used.
bool scene_poll(struct session *session, double now, struct fault *ret_message);

#endif
