// SPDX-License-Identifier: MIT
#include "control.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/base/clock.h"
#include "cli/report.h"
#include "live/console/terminal.h"
#include "live/device/heartbeat.h"
#include "scene.h"
#include "screen.h"
#include "status.h"
#include "steer.h"

// TURN: while a filter waits for the fade before it.
static const double POLL_SECONDS = 0.1, TURN_SECONDS = 0.005;

struct control {
    struct session *session;
    struct heartbeat heartbeat;
    bool on_screen;
    struct screen screen;
    double next_draw, next_line; // s
    // See raise_priority.
    double paced_since; // s
    uint64_t paced_frames;
    bool priority_is_set;
    uint64_t xruns; // reported so far
    char message[sizeof((struct fault *)0)->text];
};

// Shows a message on the screen, or prints it. An empty one clears the screen's.
static void show_message(struct control *c, const struct fault *fault)
{
    c->next_draw = 0;
    if (c->on_screen) snprintf(c->message, sizeof c->message, "%s", fault->text);
    else if (*fault->text) report_warning(c->session->settings, "%s", fault->text);
}

static void handle_key(struct control *c, int key)
{
    char line[64];
    struct control_reply reply = {0};
    const char *command = control_key_line(key);
    c->next_draw = 0;
    if (key == '?') c->screen.shows_keys = !c->screen.shows_keys;
    if (!command) return;
    snprintf(line, sizeof line, "%s", command);
    steer_run(c->session, line, &reply);
    free(reply.line);
    show_message(c, &reply.fault);
}

static bool ends(int signal)
{
    return signal != SIGHUP || terminal_has_gone();
}

static void handle_signals(struct control *c, int signals)
{
    for (int number; (number = signals_next(signals)) != 0;) {
        struct fault fault;
        if (ends(number)) session_end(c->session);
        else if (!filter_set_reload(c->session->filters, &fault)) show_message(c, &fault);
    }
}

static void poll_filters(struct control *c)
{
    struct session *s = c->session;
    struct filter_set_news news;
    filter_set_poll(s->filters, &news);
    if (news.event == FILTER_SET_UNCHANGED) return;
    scene_continue(s, &news);
    show_message(c, &news.message);
    char *line = steer_compose_news(s, &news);
    if (line) remotes_answer(s->remotes, news.request, line);
    free(line);
}

static void publish_status(struct control *c, double now)
{
    struct session *s = c->session;
    if (now < control_socket_due(s->remotes->socket)) return;
    char *line = steer_compose_event(s);
    if (line) control_socket_publish(s->remotes->socket, now, line);
    free(line);
}

static void check_recording(struct control *c)
{
    struct session *s = c->session;
    struct fault fault, message;
    if (!s->recorder || s->recording_failed || ring_check(recorder_ring(s->recorder), &fault))
        return;
    s->recording_failed = true;
    fault_set(&message, "%.500s; playing continues without recording", fault.text);
    show_message(c, &message);
}

// If the reader of standard output is gone, the session ends. After any other write error it
// continues without output.
static void push_lines(struct control *c)
{
    struct session *s = c->session;
    bool had_error = s->lines.error;
    lines_push(&s->lines);
    if (!s->lines.error || had_error) return;
    if (s->lines.error == EPIPE) session_end(s);
    else report_warning(s->settings, "standard output: cannot write: %s", strerror(s->lines.error));
}

// Prints xruns at most once a second; the screen shows the counts instead.
static void report_xruns(struct control *c, const struct chain_counts *counts)
{
    if (counts->xruns > c->xruns && !c->on_screen && !c->session->settings->json)
        report_warning(c->session->settings, "xruns: %llu",
                       (unsigned long long)(counts->xruns - c->xruns));
    c->xruns = counts->xruns;
}

static void update_status(struct control *c, const struct chain_counts *counts, double now)
{
    struct session *s = c->session;
    if (c->on_screen && now >= c->next_draw && terminal_available()) {
        screen_draw(&c->screen, s, c->message);
        c->next_draw = now + POLL_SECONDS;
    }
    if (now < c->next_line) return;
    c->next_line += 1;
    if (c->next_line < now) c->next_line = now + 1;
    if (s->settings->json) lines_put(&s->lines, status_compose_json(s, false));
    report_xruns(c, counts);
}

// Gives ALSA's audio thread real-time priority once the device has kept time for a second: a thread
// that never waits, as for a device made of files, would take a processor from all others, and so
// might one that waits for threads of ordinary priority.
static void raise_priority(struct control *c, const struct chain_counts *counts, double now)
{
    const struct session *s = c->session;
    double seconds = now - c->paced_since;
    uint64_t before = c->paced_frames;
    if (c->priority_is_set || seconds < 1) return;
    c->paced_since = now;
    c->paced_frames = counts->frames;
    if (!before) return; // in the first second buffers are filled
    c->priority_is_set = true;
    if (!s->out.is_alsa || s->settings->threads > 1) return;
    if ((double)(counts->frames - before) > 1.1 * seconds * s->format.rate) return;
    report_detail(s->settings, device_raise_priority(s->stream)
                                   ? "the audio thread has real-time priority"
                                   : "the audio thread has ordinary priority; `ulimit -r 10` "
                                     "would permit more");
}

static bool is_lost(struct control *c, const struct chain_counts *counts, double now)
{
    const struct session *s = c->session;
    double buffered = session_latency(s) + (double)s->settings->block / s->format.rate;
    double limit = heartbeat_limit(counts->calls, counts->frames, s->format.rate, buffered);
    if (!heartbeat_check(&c->heartbeat, counts->calls, now, limit)) return true;
    // The last call also stops the stream, perhaps just now.
    return !device_is_active(s->stream) && !chain_counts(s->chain).ended;
}

static void wait_for_events(const struct control *c, int signals, int keys, double now)
{
    const struct remotes *remotes = c->session->remotes;
    const double wait = filter_set_is_turning(c->session->filters) ? TURN_SECONDS : POLL_SECONDS;
    remotes_wait(remotes, signals, keys, now,
                 fmin(wait, control_socket_due(remotes->socket) - now));
}

void control_run(struct session *session, int signals)
{
    double now = clock_seconds();
    struct control c = {.session = session, .paced_since = now, .heartbeat = {.last_check = now}};
    struct fault message;
    bool keys = terminal_available();
    c.on_screen = keys && !session->settings->quiet && !session->settings->json;
    c.next_line = now + 1;
    if (keys) terminal_enter_raw();
    for (;;) {
        wait_for_events(&c, signals, keys && terminal_available() ? STDIN_FILENO : -1, now);
        now = clock_seconds();
        handle_signals(&c, signals);
        for (int key; (key = terminal_read_key()) != 0;) handle_key(&c, key);
        remotes_serve(session->remotes, now, steer_run, session);
        poll_filters(&c);
        if (scene_poll(session, now, &message)) show_message(&c, &message);
        check_recording(&c);
        struct chain_counts counts = chain_counts(session->chain);
        chain_update_levels(session->chain, now);
        publish_status(&c, now);
        raise_priority(&c, &counts, now);
        update_status(&c, &counts, now);
        push_lines(&c);
        if (counts.ended) break;
        session->lost = is_lost(&c, &counts, now);
        if (session->lost) break;
    }
    terminal_restore();
}

static void serve(struct waiting *w, double seconds)
{
    remotes_wait(&w->remotes, w->signals, -1, clock_seconds(), seconds);
    for (int number; (number = signals_next(w->signals)) != 0;) w->ended = w->ended || ends(number);
    remotes_serve(&w->remotes, clock_seconds(), steer_run_waiting, w);
}

bool waiting_pause(struct waiting *waiting, double seconds)
{
    const double end = clock_seconds() + seconds;
    for (double left = seconds; left > 0 && !waiting->ended; left = end - clock_seconds())
        serve(waiting, left);
    return !waiting->ended;
}

bool waiting_serve(void *waiting)
{
    struct waiting *w = waiting;
    serve(w, 0);
    return !w->ended;
}
