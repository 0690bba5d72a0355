// SPDX-License-Identifier: MIT
// See control.h.
#include "control.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/report.h"
#include "live/console/signals.h"
#include "live/console/terminal.h"
#include "live/device/heartbeat.h"
#include "status.h"

enum { POLL_MILLISECONDS = 100 };

struct control {
    struct session *session;
    struct heartbeat heartbeat;
    bool on_screen;
    double next_line; // s
    uint64_t xruns;   // reported so far
    char message[sizeof((struct fault *)0)->text];
};

// Shows a message on the screen, or prints it if there is none.
static void show_message(struct control *c, const struct fault *fault)
{
    if (c->on_screen) snprintf(c->message, sizeof c->message, "%s", fault->text);
    else report_warning(c->session->settings, "%s", fault->text);
}

static void end_session(struct session *s)
{
    s->ending = true;
    chain_end(s->chain);
}

static void select_neighbour(struct control *c, int step)
{
    struct session *s = c->session;
    int n = filter_set_size(s->filters);
    if (n > 1) filter_set_select(s->filters, (filter_set_current(s->filters) + step + n) % n);
    *c->message = 0;
}

static void handle_key(struct control *c, int key)
{
    struct session *s = c->session;
    switch (key) {
    case 'm':
        s->mute = !s->mute;
        break;
    case 'b':
        s->bypass = !s->bypass;
        break;
    case '+':
    case '=':
        s->gain = fmin(s->gain + 1, 300);
        break;
    case '-':
        s->gain = fmax(s->gain - 1, -300);
        break;
    case 'n':
        select_neighbour(c, 1);
        break;
    case 'p':
        select_neighbour(c, -1);
        break;
    case 'r':
        filter_set_reload(s->filters);
        break;
    case 'q':
        end_session(s);
        break;
    default:
        return;
    }
    session_set_levels(s);
}

static void handle_signals(struct control *c, int signals)
{
    for (int number; (number = signals_next(signals)) != 0;) {
        if (number == SIGHUP && !terminal_has_gone()) filter_set_reload(c->session->filters);
        else end_session(c->session);
    }
}

static void poll_filters(struct control *c)
{
    struct session *s = c->session;
    struct fault message;
    enum filter_set_event event = filter_set_poll(s->filters, &message);
    if (event == FILTER_SET_UNCHANGED) return;
    if (event == FILTER_SET_NOT_RELOADED || c->on_screen) show_message(c, &message);
    else report_detail(s->settings, "%s", message.text);
}

static void check_recording(struct control *c)
{
    struct session *s = c->session;
    struct fault fault, message;
    if (!s->recorder || s->recording_failed || recorder_check(s->recorder, &fault)) return;
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
    if (s->lines.error == EPIPE) end_session(s);
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
    if (c->on_screen && terminal_available()) status_draw(s, c->message);
    if (now < c->next_line) return;
    c->next_line += 1;
    if (c->next_line < now) c->next_line = now + 1;
    if (s->settings->json && lines_are_free(&s->lines))
        lines_put(&s->lines, status_compose_json(s, false));
    report_xruns(c, counts);
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

void control_run(struct session *session, int signals)
{
    struct control c = {.session = session};
    double now = clock_now();
    bool keys = terminal_available();
    c.on_screen = keys && !session->settings->quiet && !session->settings->json;
    c.next_line = now + 1;
    heartbeat_start(&c.heartbeat, now);
    if (keys) terminal_enter_raw();
    for (;;) {
        struct pollfd files[] = {
            {.fd = signals, .events = POLLIN},
            {.fd = keys && terminal_available() ? STDIN_FILENO : -1, .events = POLLIN}};
        poll(files, 2, POLL_MILLISECONDS);
        handle_signals(&c, signals);
        for (int key; (key = terminal_read_key()) != 0;) handle_key(&c, key);
        poll_filters(&c);
        check_recording(&c);
        struct chain_counts counts = chain_counts(session->chain);
        now = clock_now();
        update_status(&c, &counts, now);
        push_lines(&c);
        if (counts.ended) break;
        session->lost = is_lost(&c, &counts, now);
        if (session->lost) break;
    }
    terminal_restore();
}
