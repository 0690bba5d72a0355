// SPDX-License-Identifier: MIT
#include "steer.h"

#include <jansson.h>
#include <math.h>

#include "base/json_values.h"
#include "control.h"
#include "scene.h"
#include "status.h"

// Steps of a level that has "off" end and begin here, in decibels.
static const double MIN_STEP_LEVEL = -60;

// Responses that are 30 dB below full scale exist; more is a slip, such as 60 for 6.
static const double DOUBTFUL_LEVEL = 30;

bool steer_doubt_level(const char *name, double decibels, struct fault *ret_warning)
{
    if (!(decibels > DOUBTFUL_LEVEL)) return false;
    fault_set(ret_warning,
              "%s %g: multiplies samples by %.3g; what exceeds full scale is distorted", name,
              decibels, pow(10, decibels / 20));
    return true;
}

// The value that a command changes; NULL: it changes none.
static double *value_of(struct live_state *state, enum control_id id)
{
    return id == CONTROL_GAIN         ? &state->gain
           : id == CONTROL_WET        ? &state->wet
           : id == CONTROL_DRY        ? &state->dry
           : id == CONTROL_INPUT_GAIN ? &state->input_gain
           : id == CONTROL_FADE       ? &state->fade
           : id == CONTROL_AZIMUTH    ? &state->direction.azimuth
           : id == CONTROL_ELEVATION  ? &state->direction.elevation
                                      : NULL;
}

void steer_set_value(struct live_state *state, const struct control_command *c)
{
    const struct control_row *row = &control_rows[c->id];
    double *value = value_of(state, c->id);
    double low = row->has_off ? MIN_STEP_LEVEL : row->low;
    if (c->verb == CONTROL_SET) *value = c->number;
    if (c->verb == CONTROL_OFF) *value = -INFINITY;
    if (c->verb == CONTROL_UP) *value = fmin(fmax(*value, low) + c->number, row->high);
    if (c->verb == CONTROL_DOWN) *value -= c->number;
    if (c->verb == CONTROL_DOWN && *value <= low) *value = row->has_off ? -INFINITY : low;
    state->direction.azimuth = remainder(state->direction.azimuth, 360);
}

static void change_switch(bool *value, const struct control_command *c)
{
    *value = c->verb == CONTROL_TOGGLE ? !*value : c->verb == CONTROL_ON;
}

// Scenes are selected instead where there are any. Negative i: there is none, and a fault.
static bool select_filter(struct session *s, int i, struct control_reply *reply,
                          struct fault *fault)
{
    int n = s->scenes->n ? s->scenes->n : filter_set_view(s->filters).n;
    if (i < 0) return false;
    if (i >= n) return fault_set(fault, "filter %d: there %s %d", i + 1, n == 1 ? "is" : "are", n);
    if (s->scenes->n) return scene_select(s, i, reply, fault);
    filter_set_select(s->filters, i);
    return true;
}

static bool select_neighbour(struct session *s, int step, struct control_reply *reply,
                             struct fault *fault)
{
    const struct filter_set_view f = filter_set_view(s->filters);
    const int n = s->scenes->n ? s->scenes->n : f.n, from = s->scenes->n ? s->scene : f.current;
    return n == 1 || select_filter(s, (from + step + n) % n, reply, fault);
}

static bool steer_execute(struct session *s, const struct control_command *c,
                          struct control_reply *reply, struct fault *fault)
{
    switch (c->id) {
    case CONTROL_MUTE:
        change_switch(&s->state.mute, c);
        break;
    case CONTROL_BYPASS:
        change_switch(&s->state.bypass, c);
        break;
    case CONTROL_FILTER:
        return select_filter(s, (int)c->number - 1, reply, fault);
    case CONTROL_NEXT:
        return select_neighbour(s, 1, reply, fault);
    case CONTROL_PREVIOUS:
        return select_neighbour(s, -1, reply, fault);
    case CONTROL_SCENE:
        return select_filter(s, scenes_find(s->scenes, c->text, fault), reply, fault);
    case CONTROL_LOAD:
        reply->ticket = filter_set_load(s->filters, c->text, false, fault);
        return reply->ticket != 0;
    case CONTROL_RELOAD:
        reply->ticket = filter_set_reload(s->filters, fault);
        return reply->ticket != 0;
    case CONTROL_AZIMUTH:
    case CONTROL_ELEVATION:
        if (!filter_set_has_directions(s->filters))
            return fault_set(
                fault,
                "%s: no filter of this run is from a SOFA file (.sofa), which has directions",
                control_rows[c->id].name);
        break;
    case CONTROL_SUBSCRIBE:
        reply->period = c->verb == CONTROL_OFF ? 0 : c->number * 1e-3;
        break;
    case CONTROL_QUIT:
        session_end(s);
        break;
    default:
        break;
    }
    if (value_of(&s->state, c->id)) steer_set_value(&s->state, c);
    session_apply_state(s);
    return true;
}

static json_t *list_commands(void)
{
    json_t *list = json_array();
    for (int i = 0; i < N_CONTROLS; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s}", "name", control_rows[i].name, "argument",
                                        control_rows[i].argument, "help", control_rows[i].help));
    return list;
}

static json_t *report_control(const char *key, json_t *value)
{
    json_t *j = json_report("partita-control/1", command_rows[COMMAND_CONTROL].name);
    json_object_set_new(j, key, value);
    return j;
}

static char *compose_error(const char *text)
{
    json_t *j = report_control("ok", json_false());
    json_object_set_new(j, "error", json_text(text));
    return status_dump(j);
}

static char *compose_answer(struct session *s, enum control_id id)
{
    struct fault warning;
    json_t *j = report_control("ok", json_true());
    const double *level =
        control_rows[id].quantity == QUANTITY_DECIBELS ? value_of(&s->state, id) : NULL;
    if (level && steer_doubt_level(control_rows[id].name, *level, &warning))
        json_object_set_new(j, "warning", json_text(warning.text));
    if (id == CONTROL_HELP) json_object_set_new(j, "commands", list_commands());
    else if (id == CONTROL_STATUS) status_put_all(j, s, false);
    else if (id == CONTROL_RESPONSE) json_object_set_new(j, "response", status_response(s));
    else status_put_settings(j, s);
    return status_dump(j);
}

void steer_run(void *session, char *line, struct control_reply *reply)
{
    struct control_command c;
    const bool good =
        control_parse(&c, line, &reply->fault) && steer_execute(session, &c, reply, &reply->fault);
    if (!good) reply->line = compose_error(reply->fault.text);
    else if (!reply->ticket) reply->line = compose_answer(session, c.id);
}

void steer_run_waiting(void *waiting, char *line, struct control_reply *reply)
{
    struct waiting *w = waiting;
    struct control_command c;
    bool good = control_parse(&c, line, &reply->fault);
    w->ended = w->ended || (good && c.id == CONTROL_QUIT);
    if (good && c.id != CONTROL_STATUS && c.id != CONTROL_HELP && c.id != CONTROL_QUIT)
        good =
            fault_set(&reply->fault,
                      "%s: is not possible while the program waits for the audio device (%.300s); "
                      "status, help and quit are",
                      control_rows[c.id].name, w->reason);
    if (!good) {
        reply->line = compose_error(reply->fault.text);
        return;
    }
    json_t *j = report_control("ok", json_true());
    if (c.id == CONTROL_HELP) json_object_set_new(j, "commands", list_commands());
    else {
        json_object_set_new(j, "state", json_string(w->ended ? "ending" : "waiting"));
        json_object_set_new(j, "waiting_for", json_text(w->reason));
        json_object_set_new(j, "seconds", json_real(w->seconds));
    }
    reply->line = status_dump(j);
}

char *steer_compose_news(struct session *session, const struct filter_set_news *news)
{
    return news->event == FILTER_SET_FAILED ? compose_error(news->message.text)
                                            : compose_answer(session, CONTROL_RELOAD);
}

char *steer_compose_event(const struct session *session)
{
    json_t *j = report_control("event", json_string("status"));
    status_put_all(j, session, false);
    return status_dump(j);
}
