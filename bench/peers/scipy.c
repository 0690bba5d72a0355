// SPDX-License-Identifier: MIT
// SciPy as a contender: a Python process that lives as long as the contender. It reads the same
// samples, computes in their type, times its own calls, so that pipes cost it nothing, and writes
// its result for the check.
#include "peers/peers.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workloads/layer.h"

struct scipy {
    pid_t child;
    FILE *to, *from;
    char folder[64];
};

static const char *const file_names[] = {"x", "h", "y"};

static void scipy_path(char ret[96], const struct scipy *s, const char *name)
{
    snprintf(ret, 96, "%s/%s", s->folder, name);
}

static bool scipy_transfer(const struct scipy *s, const char *name, const char *mode, void *data,
                           size_t bytes)
{
    char path[96];
    scipy_path(path, s, name);
    FILE *file = fopen(path, mode);
    if (file == NULL) return false;
    size_t n = mode[0] == 'w' ? fwrite(data, 1, bytes, file) : fread(data, 1, bytes, file);
    return (fclose(file) == 0) & (n == bytes);
}

// Sends one line and reads the number that answers it; returns NAN if the process has ended.
static double scipy_ask(struct scipy *s, const char *line)
{
    double answer = NAN;
    fprintf(s->to, "%s\n", line);
    if (fflush(s->to) != 0 || fscanf(s->from, "%lf", &answer) != 1) return NAN;
    return answer;
}

static void scipy_close(void *state)
{
    struct scipy *s = state;
    if (s->to != NULL) fclose(s->to);
    if (s->from != NULL) fclose(s->from);
    if (s->child > 0) waitpid(s->child, NULL, 0);
    for (size_t i = 0; i < sizeof file_names / sizeof *file_names; i++) {
        char path[96];
        scipy_path(path, s, file_names[i]);
        unlink(path);
    }
    rmdir(s->folder);
    free(s);
}

static double scipy_pass(void *state, const struct workload *w, double *calls)
{
    (void)w;
    (void)calls;
    return scipy_ask(state, "run");
}

static bool scipy_fetch(void *state, const struct workload *w)
{
    return !isnan(scipy_ask(state, "write")) &&
           scipy_transfer(state, "y", "r", w->y, w->n_out * partita_type_size(w->signal));
}

// One call of many, since the clock's steps are not much shorter; an item is a call.
static double numpy_pass(void *state, const struct workload *w, double *calls)
{
    (void)calls;
    return scipy_ask(state, "run-many") * (double)w->n_frames;
}

// What the process computes: a function by name, with a number or a shape as its parameter.
struct scipy_task {
    const char *function;
    char parameter[80];
    size_t x, h; // samples
};

static bool scipy_spawn(struct scipy *s, const struct scipy_task *task, const struct workload *w)
{
    int down[2], up[2];
    // Closed on exec: a second child holding these ends would keep the first from reading its end.
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) return false;
    s->child = fork();
    if (s->child == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        execl("/usr/bin/python3", "python3", PEERS_FOLDER "/scipy_server.py", task->function,
              s->folder, partita_type_name(w->signal), partita_type_name(w->taps), task->parameter,
              (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    s->to = fdopen(down[1], "w");
    s->from = fdopen(up[0], "r");
    return s->child > 0 && s->to != NULL && s->from != NULL;
}

static bool scipy_start(struct contender *contender, const struct workload *w,
                        const struct scipy_task *task)
{
    struct scipy *s = bench_allocate(sizeof *s);
    snprintf(s->folder, sizeof s->folder, "/tmp/partita-bench-XXXXXX");
    contender->state = s;
    contender->pass = scipy_pass;
    contender->fetch = scipy_fetch;
    contender->close = scipy_close;
    contender->gate = gate_peer(w);
    bool ready = mkdtemp(s->folder) != NULL &&
                 scipy_transfer(s, "x", "w", w->x, task->x * partita_type_size(w->signal)) &&
                 scipy_transfer(s, "h", "w", w->h, task->h * partita_type_size(w->taps)) &&
                 scipy_spawn(s, task, w) && !isnan(scipy_ask(s, "load"));
    if (ready) {
        scipy_ask(s, "run");
        contender->bytes = (size_t)scipy_ask(s, "bytes");
        return true;
    }
    snprintf(contender->reason, sizeof contender->reason,
             "/usr/bin/python3 with SciPy does not answer");
    scipy_close(s);
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
