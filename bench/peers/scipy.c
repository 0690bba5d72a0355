// SPDX-License-Identifier: MIT
// SciPy as a contender: a Python process that lives as long as the contender. It reads the same
// samples, computes in their type, times its own calls, so that pipes cost it nothing, and writes
// its result for the check.
#include "peers/peers.h"

#include <math.h>
#include <string.h>

#include "peers/process.h"
#include "workloads/layer.h"

static double scipy_pass(void *state, const struct workload *w, double *calls)
{
    (void)w;
    (void)calls;
    return process_ask(state, "run");
}

// One call of many, since the clock's steps are not much shorter; an item is a call.
static double numpy_pass(void *state, const struct workload *w, double *calls)
{
    (void)calls;
    return process_ask(state, "run-many") * (double)w->n_frames;
}

// What the process computes: a function by name, with a number or a shape as its parameter.
struct scipy_task {
    const char *function;
    char parameter[80];
    size_t x, h; // samples
};

static bool scipy_start(struct contender *contender, const struct workload *w,
                        const struct scipy_task *task)
{
    struct process *s = process_create();
    contender->state = s;
    contender->pass = scipy_pass;
    contender->fetch = process_fetch;
    contender->close = process_close;
    contender->gate = gate_peer(w);
    const char *const words[] = {"/usr/bin/python3",
                                 PEERS_FOLDER "/scipy_server.py",
                                 task->function,
                                 process_folder(s),
                                 partita_type_name(w->signal),
                                 partita_type_name(w->taps),
                                 task->parameter,
                                 NULL};
    if (process_write(s, "x", w->x, task->x * partita_type_size(w->signal)) &&
        process_write(s, "h", w->h, task->h * partita_type_size(w->taps)) &&
        process_start(s, words) && !isnan(process_ask(s, "load"))) {
        process_ask(s, "run");
        contender->bytes = (size_t)process_ask(s, "bytes");
        return true;
    }
    snprintf(contender->reason, sizeof contender->reason,
             "/usr/bin/python3 with SciPy does not answer");
    process_close(s);
    return false;
}

static bool scipy_signal_open(struct contender *contender, const struct workload *w,
                              const char *function)
{
    if (w->layer != NULL || w->block > 0 || w->in_channels != 1 || w->out_channels != 1)
        return false;
    if ((w->lags > 0) != (strcmp(function, "correlate") == 0)) return false;
    struct scipy_task task = {.function = function, .x = w->n_frames, .h = w->n_taps};
    snprintf(task.parameter, sizeof task.parameter, "%zu", w->lags);
    return scipy_start(contender, w, &task);
}

// Causal sequences with a filter of the same length for each channel.
bool peer_scipy_rfft(struct contender *contender, const struct workload *w)
{
    if (w->layer == NULL) return false;
    const struct partita_problem p = layer_problem(w);
    const enum partita_direction direction = w->layer->direction;
    const size_t channels = p.groups, length = p.size[0], all = p.batch * channels * length;
    if (p.rank > 1 || channels != p.in_channels || channels != p.out_channels ||
        p.kernel[0] != length || p.pad_begin[0] != (ptrdiff_t)length - 1 || p.pad_end[0] != 0)
        return false;
    struct scipy_task task = {.x = all,
                              .h = direction == PARTITA_BACKWARD_WEIGHT ? all : channels * length};
    task.function = direction == PARTITA_FORWARD         ? "rfft-forward"
                    : direction == PARTITA_BACKWARD_DATA ? "rfft-backward-data"
                                                         : "rfft-backward-weight";
    snprintf(task.parameter, sizeof task.parameter, "%zux%zux%zu", p.batch, channels, length);
    return scipy_start(contender, w, &task);
}

bool peer_scipy_oaconvolve(struct contender *contender, const struct workload *w)
{
    return scipy_signal_open(contender, w, "oaconvolve");
}

bool peer_scipy_fftconvolve(struct contender *contender, const struct workload *w)
{
    return scipy_signal_open(contender, w, "fftconvolve");
}

bool peer_numpy_convolve(struct contender *contender, const struct workload *w)
{
    if (!scipy_signal_open(contender, w, "numpy-convolve")) return false;
    contender->pass = numpy_pass;
    return true;
}

bool peer_scipy_correlate(struct contender *contender, const struct workload *w)
{
    return scipy_signal_open(contender, w, "correlate");
}
