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

enum { LOOK_MILLISECONDS = 100 };

struct control {
    struct session *session;
    struct heartbeat heartbeat;
    bool on_screen;
    double next_line; // s
    uint64_t xruns;   // told already
    char news[sizeof((struct fault *)0)->text];
};

// One sentence for the user: on the screen if there is one.
static void tell(struct control *c, const struct fault *fault)
{
    if (c->on_screen) snprintf(c->news, sizeof c->news, "%s", fault->text);
    else report_warning(c->session->settings, "%s", fault->text);
}

static void end(struct session *s)
{
    s->ending = true;
    chain_end(s->chain);
}

static void select_beside(struct control *c, int step)
{
    struct session *s = c->session;
    int n = filter_set_size(s->bank);
    if (n > 1) filter_set_select(s->bank, (filter_set_current(s->bank) + step + n) % n);
    *c->news = 0;
}

static void take_key(struct control *c, int key)
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
        select_beside(c, 1);
        break;
    case 'p':
        select_beside(c, -1);
        break;
    case 'r':
        filter_set_reload(s->bank);
        break;
    case 'q':
        end(s);
        break;
    default:
        return;
    }
    session_set_levels(s);
}

static void take_signals(struct control *c, int signals)
{
    for (int number; (number = signals_next(signals)) != 0;) {
        if (number == SIGHUP && !terminal_has_gone()) filter_set_reload(c->session->bank);
        else end(c->session);
    }
}

static void look_after_filters(struct control *c)
{
    struct session *s = c->session;
    struct fault told;
    enum filter_set_news news = filter_set_poll(s->bank, &told);
    if (news == FILTER_SET_UNCHANGED) return;
    if (news == FILTER_SET_KEPT || c->on_screen) tell(c, &told);
    else report_detail(s->settings, "%s", told.text);
}

static void look_after_files(struct control *c)
{
    struct session *s = c->session;
    struct fault fault, told;
    if (!s->recorder || s->recording_failed || recorder_check(s->recorder, &fault)) return;
    s->recording_failed = true;
    fault_set(&told, "%.500s; playing goes on unrecorded", fault.text);
    tell(c, &told);
}

// A reader that is gone has seen enough. Where lines cannot be written for another reason, sound
// goes on without.
static void look_after_lines(struct control *c)
{
    struct session *s = c->session;
    bool had_error = s->lines.error;
    lines_push(&s->lines);
    if (!s->lines.error || had_error) return;
    if (s->lines.error == EPIPE) end(s);
    else report_warning(s->settings, "standard output: cannot write: %s", strerror(s->lines.error));
}

// At most one sentence a second, and on the screen none: it has the counts.
static void tell_xruns(struct control *c, const struct chain_counts *counts)
{
    if (counts->xruns > c->xruns && !c->on_screen && !c->session->settings->json)
        report_warning(c->session->settings, "xruns: %llu",
                       (unsigned long long)(counts->xruns - c->xruns));
    c->xruns = counts->xruns;
}

static void show(struct control *c, const struct chain_counts *counts, double now)
{
    struct session *s = c->session;
    if (c->on_screen && terminal_is_there()) status_draw(s, c->news);
    if (now < c->next_line) return;
    c->next_line += 1;
    if (c->next_line < now) c->next_line = now + 1;
    if (s->settings->json && lines_are_free(&s->lines))
        lines_put(&s->lines, status_compose_json(s, false));
    tell_xruns(c, counts);
}

static bool is_lost(struct control *c, const struct chain_counts *counts, double now)
{
    const struct session *s = c->session;
    double buffered = session_latency(s) + (double)s->settings->block / s->format.rate;
    double limit = heartbeat_limit(counts->calls, counts->frames, s->format.rate, buffered);
    if (!heartbeat_look(&c->heartbeat, counts->calls, now, limit)) return true;
    // The last call ends the stream too, perhaps just now.
    return !device_is_active(s->host) && !chain_counts(s->chain).ended;
}

void control_run(struct session *session, int signals)
{
    struct control c = {.session = session};
    double now = clock_now();
    bool keys = terminal_is_there();
    c.on_screen = keys && !session->settings->quiet && !session->settings->json;
    c.next_line = now + 1;
    heartbeat_start(&c.heartbeat, now);
    if (keys) terminal_take();
    for (;;) {
        struct pollfd files[] = {
            {.fd = signals, .events = POLLIN},
            {.fd = keys && terminal_is_there() ? STDIN_FILENO : -1, .events = POLLIN}};
        poll(files, 2, LOOK_MILLISECONDS);
        take_signals(&c, signals);
        for (int key; (key = terminal_key()) != 0;) take_key(&c, key);
        look_after_filters(&c);
        look_after_files(&c);
        struct chain_counts counts = chain_counts(session->chain);
        now = clock_now();
        show(&c, &counts, now);
        look_after_lines(&c);
        if (counts.ended) break;
        session->lost = is_lost(&c, &counts, now);
        if (session->lost) break;
    }
    terminal_restore();
}
