// SPDX-License-Identifier: MIT
// `partita layer forward|backward-data|backward-weight`: reads arrays, makes one problem of their
// shapes and the options, runs it, writes the result.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "engine_name.h"
#include "interrupt.h"
#include "io/audio.h"
#include "io/bytes/temp.h"
#include "io/formats/npy.h"
#include "option_words.h"
#include "report.h"
#include "wisdom_file.h"

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT, N_DIRECTIONS };

static const struct {
    const char *name;
    enum partita_direction direction;
    const char *axes; // of the option that gives the result's shape, with what its numbers are
} directions[N_DIRECTIONS] = {
    {"forward", PARTITA_FORWARD, NULL},
    {"backward-data", PARTITA_BACKWARD_DATA, "--input-shape"},
    {"backward-weight", PARTITA_BACKWARD_WEIGHT, "--kernel-shape"},
};

struct job {
    struct settings settings;
    enum direction direction;
    struct npy_array x, w, bias, gy, result,
        gb; // what the direction has; the gradient of x or w is the result
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_wisdom *wisdom;
    char detail[480]; // the library's words
};

// Whole numbers between commas. False: not such a list, or more than `most`.
static bool parse_list(const char *option, const char *text, int64_t low, int64_t *values, int most,
                       int *ret_n, struct fault *fault)
{
    const char *at = text;
    for (*ret_n = 0; *ret_n < most; at++) {
        char *end;
        errno = 0;
        values[*ret_n] = strtoll(at, &end, 10);
        if (end == at || errno || (*end && *end != ',') || values[*ret_n] < low ||
            values[*ret_n] > (int64_t)1 << 40)
            return fault_set(fault,
                             "%s %s: is not a list of whole numbers from %" PRId64 " on, as in 2,1",
                             option, text, low);
        ++*ret_n;
        if (!*end) return true;
        at = end;
    }
    return fault_set(fault, "%s %s: more than %d numbers", option, text, most);
}

// One number for each axis, or one for all.
static bool parse_axes(const char *option, const char *text, int rank,
                       size_t values[PARTITA_MAX_RANK], struct fault *fault)
{
    int64_t list[NPY_DIMENSIONS];
    int n;
    if (!text) return true;
    if (!parse_list(option, text, 1, list, NPY_DIMENSIONS, &n, fault)) return false;
    if (n != 1 && n != rank)
        return fault_set(fault, "%s %s: %d numbers for %d axes", option, text, n, rank);
    for (int i = 0; i < rank; i++) values[i] = (size_t)list[n == 1 ? 0 : i];
    return true;
}

static bool parse_pad(const char *text, int rank, struct partita_problem *p, struct fault *fault)
{
    int64_t list[2 * PARTITA_MAX_RANK];
    int n;
    if (!text) return true;
    if (!parse_list("--pad", text, -((int64_t)1 << 40), list, 2 * PARTITA_MAX_RANK, &n, fault))
        return false;
    if (n != 1 && n != rank && n != 2 * rank)
        return fault_set(
            fault, "--pad %s: %d numbers for %d axes; one, one an axis, or all begins and all ends",
            text, n, rank);
    for (int i = 0; i < rank; i++) {
        p->pad_begin[i] = (ptrdiff_t)list[n == 1 ? 0 : i];
        p->pad_end[i] = (ptrdiff_t)list[n == 1 ? 0 : n == rank ? i : rank + i];
    }
    return true;
}

// Arrays are written as .npy; a name that does not say so is refused.
static bool check_names(const struct settings *s, struct fault *fault)
{
    const char *const names[][2] = {{"--output", s->output}, {"--grad-bias", s->grad_bias}};
    bool known;
    for (int i = 0; i < 2; i++) {
        const char *name = names[i][1];
        if (!name || temp_is_special(name) || container_of_name(name, &known) == CONTAINER_NPY)
            continue;
        return fault_set(fault, "%s %s: layers write .npy arrays; name a .npy", names[i][0], name);
    }
    return true;
}

// What each direction is given, in the order of the checks.
static bool check_usage(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const char *word = s->operands[0];
    while (job->direction < N_DIRECTIONS && strcmp(word, directions[job->direction].name) != 0)
        job->direction++;
    if (job->direction == N_DIRECTIONS)
        return fault_set(fault, "%s: is none of forward, backward-data, backward-weight", word);
    const bool of[N_DIRECTIONS] = {job->direction == FORWARD, job->direction == BACKWARD_DATA,
                                   job->direction == BACKWARD_WEIGHT};
    const struct {
        const char *name, *value;
        bool needed, allowed;
    } options[] = {
        {"--input", s->input, !of[BACKWARD_DATA], !of[BACKWARD_DATA]},
        {"--weight", s->weight, !of[BACKWARD_WEIGHT], !of[BACKWARD_WEIGHT]},
        {"--bias", s->bias, false, of[FORWARD]},
        {"--grad-output", s->grad_output, !of[FORWARD], !of[FORWARD]},
        {"--input-shape", s->input_shape, of[BACKWARD_DATA], of[BACKWARD_DATA]},
        {"--kernel-shape", s->kernel_shape, of[BACKWARD_WEIGHT], of[BACKWARD_WEIGHT]},
        {"--output", s->output, true, true},
        {"--grad-bias", s->grad_bias, false, of[BACKWARD_WEIGHT]},
        {"--relu", s->relu ? "" : NULL, false, of[FORWARD]},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].needed && !options[i].value)
            return fault_set(fault, "%s needs %s", word, options[i].name);
        if (!options[i].allowed && options[i].value)
            return fault_set(fault, "%s has no %s", word, options[i].name);
    }
    return engine_check(s, fault) && check_names(s, fault);
}

static bool load_inputs(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const char *const files[] = {s->input, s->weight, s->bias, s->grad_output};
    struct npy_array *const arrays[] = {&job->x, &job->w, &job->bias, &job->gy};
    const struct npy_array *first = NULL;
    for (int i = 0; i < 4; i++) {
        if (!files[i]) continue;
        if ((s->output && !temp_differs(s->output, &files[i], 1, fault)) ||
            (s->grad_bias && !temp_differs(s->grad_bias, &files[i], 1, fault)) ||
            !npy_array_load(arrays[i], files[i], fault))
            return false;
        if (first && first->f64 != arrays[i]->f64)
            return fault_set(fault, "%s is %s, but %s is %s", first->name, first->f64 ? "f8" : "f4",
                             files[i], arrays[i]->f64 ? "f8" : "f4");
        if (!first) first = arrays[i];
    }
    return true;
}

// [batch, channels, 1 to 3 axes]
static bool check_rank(const struct npy_array *array, int rank, struct fault *fault)
{
    if (array->rank == rank + 2 && rank >= 1 && rank <= PARTITA_MAX_RANK) return true;
    return fault_set(fault, "%s: array of %d dimensions; expected %d", array->name, array->rank,
                     rank >= 1 && rank <= PARTITA_MAX_RANK ? rank + 2 : 4);
}

static bool take_input_shape(struct job *job, struct fault *fault)
{
    int64_t list[NPY_DIMENSIONS];
    int n;
    struct npy_array *x = &job->result;
    if (!parse_list("--input-shape", job->settings.input_shape, 1, list, NPY_DIMENSIONS, &n, fault))
        return false;
    if (n != job->gy.rank)
        return fault_set(fault, "--input-shape %s: %d numbers, but %s has %d dimensions",
                         job->settings.input_shape, n, job->gy.name, job->gy.rank);
    *x = (struct npy_array){.name = "--input-shape", .rank = n, .f64 = job->gy.f64};
    for (int i = 0; i < n; i++) x->shape[i] = (size_t)list[i];
    return true;
}

static bool take_geometry(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    struct partita_problem *p = &job->problem;
    const struct npy_array *x = job->direction == BACKWARD_DATA ? &job->result : &job->x;
    if (job->direction == BACKWARD_DATA && !take_input_shape(job, fault)) return false;
    *p = (struct partita_problem){
        .op = PARTITA_CORRELATE, .rank = x->rank - 2, .groups = (size_t)s->layer_groups};
    if (!check_rank(x, p->rank, fault)) return false;
    p->signal = p->taps = x->f64 ? PARTITA_F64 : PARTITA_F32;
    p->batch = x->shape[0];
    p->in_channels = x->shape[1];
    memcpy(p->size, x->shape + 2, (size_t)p->rank * sizeof *p->size);
    if (s->relu) p->activation = PARTITA_RELU;
    return parse_axes("--stride", s->strides, p->rank, p->stride, fault) &&
           parse_axes("--dilation", s->dilation, p->rank, p->dilation, fault) &&
           parse_axes("--kernel-shape", s->kernel_shape, p->rank, p->kernel, fault) &&
           parse_pad(s->pad, p->rank, p, fault);
}

static bool not_empty(const struct npy_array *array, struct fault *fault)
{
    for (int i = 0; i < array->rank; i++)
        if (array->shape[i] == 0) return fault_set(fault, "%s: dimension %d is 0", array->name, i);
    return true;
}

// Kernel and channels from w, which must go with x.
static bool take_weight(struct job *job, struct fault *fault)
{
    struct partita_problem *p = &job->problem;
    const struct npy_array *w = &job->w;
    if (!check_rank(w, p->rank, fault) || !not_empty(w, fault)) return false;
    p->out_channels = w->shape[0];
    memcpy(p->kernel, w->shape + 2, (size_t)p->rank * sizeof *p->kernel);
    if (p->in_channels % p->groups || w->shape[1] != p->in_channels / p->groups)
        return fault_set(fault,
                         "%s has %zu input channels and --groups is %zu, but %s has %zu channels",
                         w->name, w->shape[1], p->groups,
                         job->direction == FORWARD ? job->x.name : "--input-shape", p->in_channels);
    return true;
}

static bool check_bias(const struct job *job, struct fault *fault)
{
    const struct npy_array *bias = &job->bias;
    if (!bias->name || (bias->rank == 1 && bias->shape[0] == job->problem.out_channels))
        return true;
    return fault_set(fault, "%s: not an array of %zu numbers, one for each output channel",
                     bias->name, job->problem.out_channels);
}

static void keep_line(void *user, const char *text)
{
    struct job *job = user;
    size_t n = strlen(job->detail);
    snprintf(job->detail + n, sizeof job->detail - n, "%s%s", n ? "; " : "", text);
}

static bool fail(const struct job *job, enum partita_status status, struct fault *fault)
{
    fault_set(fault, "%s%s%s", partita_status_string(status), *job->detail ? ": " : "",
              job->detail);
    return option_words(COMMAND_LAYER, fault);
}

// gy against the outputs that the problem has.
static bool check_gradient(const struct job *job, const size_t outputs[PARTITA_MAX_RANK],
                           struct fault *fault)
{
    const struct partita_problem *p = &job->problem;
    const struct npy_array *gy = &job->gy;
    if (!gy->name) return true;
    bool same =
        gy->rank == p->rank + 2 && gy->shape[0] == p->batch && gy->shape[1] == p->out_channels;
    for (int i = 0; i < p->rank && same; i++) same = gy->shape[i + 2] == outputs[i];
    if (same) return true;
    char text[2][120];
    for (int k = 0; k < 2; k++) {
        const int rank = k ? p->rank : gy->rank - 2;
        int n = snprintf(text[k], sizeof text[k], "%zu,%zu", k ? p->batch : gy->shape[0],
                         k ? p->out_channels : gy->shape[1]);
        for (int i = 0; i < rank; i++)
            n += snprintf(text[k] + n, sizeof text[k] - (size_t)n, ",%zu",
                          k ? outputs[i] : gy->shape[i + 2]);
    }
    return fault_set(fault, "%s: shape %s, but this layer's output is %s", gy->name, text[0],
                     text[1]);
}

static bool make_problem(struct job *job, struct fault *fault)
{
    struct partita_problem *p = &job->problem;
    size_t outputs[PARTITA_MAX_RANK];
    if (!take_geometry(job, fault)) return false;
    if (job->direction == BACKWARD_WEIGHT) {
        if (job->gy.rank < 2) return check_rank(&job->gy, p->rank, fault);
        p->out_channels = job->gy.shape[1];
    } else if (!take_weight(job, fault)) {
        return false;
    }
    const struct npy_array *arrays[] = {&job->x, &job->gy};
    for (int i = 0; i < 2; i++)
        if (arrays[i]->name && !not_empty(arrays[i], fault)) return false;
    char name[ENGINE_NAME_SIZE];
    const struct settings *s = &job->settings;
    const struct partita_options options = {.device = s->device,
                                            .engine = engine_name(s->engine, name),
                                            .threads = (int)s->layer_threads,
                                            .workspace_limit = (size_t)s->workspace_limit,
                                            .directions = directions[job->direction].direction,
                                            .wisdom = job->wisdom,
                                            .log = {keep_line, job}};
    if (partita_problem_output_size(p, outputs) == PARTITA_OK &&
        !check_gradient(job, outputs, fault))
        return false;
    const enum partita_status status = partita_plan_create(p, &options, &job->plan);
    if (status) return fail(job, status, fault);
    if (job->direction == FORWARD) {
        job->result = (struct npy_array){.rank = p->rank + 2, .shape = {p->batch, p->out_channels}};
        memcpy(job->result.shape + 2, outputs, (size_t)p->rank * sizeof *outputs);
    } else if (job->direction == BACKWARD_WEIGHT) {
        job->result = (struct npy_array){.rank = p->rank + 2,
                                         .shape = {p->out_channels, p->in_channels / p->groups}};
        memcpy(job->result.shape + 2, p->kernel, (size_t)p->rank * sizeof *p->kernel);
    }
    job->result.name = s->output;
    job->result.f64 = p->signal == PARTITA_F64;
    return check_bias(job, fault);
}

static void explain(const struct job *job)
{
    const size_t n = partita_plan_explain(job->plan, NULL, 0);
    char *text = job->settings.verbose ? malloc(n + 1) : NULL;
    if (!text) return;
    partita_plan_explain(job->plan, text, n + 1);
    fputs(text, stderr);
    free(text);
}

static bool compute(struct job *job, struct fault *fault)
{
    enum partita_status status = PARTITA_OK;
    if (!npy_array_reserve(&job->result, fault)) return false;
    if (job->direction != BACKWARD_WEIGHT)
        status = partita_filter_create_biased(job->plan, job->w.samples, job->bias.samples,
                                              &job->filter);
    if (status == PARTITA_OK && job->direction == FORWARD)
        status = partita_forward(job->plan, job->filter, job->result.samples, job->x.samples, NULL);
    if (status == PARTITA_OK && job->direction == BACKWARD_DATA)
        status = partita_backward_data(job->plan, job->filter, job->result.samples, job->gy.samples,
                                       NULL);
    if (status == PARTITA_OK && job->direction == BACKWARD_WEIGHT)
        status = partita_backward_weight(job->plan, job->result.samples, job->x.samples,
                                         job->gy.samples, NULL);
    return status == PARTITA_OK || fail(job, status, fault);
}

static bool save_bias(struct job *job, struct fault *fault)
{
    if (!job->settings.grad_bias) return true;
    job->gb = (struct npy_array){.name = job->settings.grad_bias,
                                 .rank = 1,
                                 .shape = {job->problem.out_channels},
                                 .f64 = job->result.f64};
    if (!npy_array_reserve(&job->gb, fault)) return false;
    const enum partita_status status =
        partita_backward_bias(job->plan, job->gb.samples, job->gy.samples);
    if (status) return fail(job, status, fault);
    return npy_array_save(&job->gb, job->settings.grad_bias, fault);
}

static void release(struct job *job)
{
    struct npy_array *const arrays[] = {&job->x,  &job->w,      &job->bias,
                                        &job->gy, &job->result, &job->gb};
    partita_filter_destroy(job->filter);
    partita_plan_destroy(job->plan);
    partita_wisdom_destroy(job->wisdom);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) npy_array_release(arrays[i]);
}

int layer_main(const struct settings *settings)
{
    struct job job = {.settings = *settings};
    struct fault fault;
    if (!check_usage(&job, &fault)) return report_usage(COMMAND_LAYER, &fault);
    interrupt_install();
    job.wisdom = wisdom_file_load();
    bool good = load_inputs(&job, &fault) && make_problem(&job, &fault);
    if (good) explain(&job);
    good = good && compute(&job, &fault) &&
           npy_array_save(&job.result, job.settings.output, &fault) && save_bias(&job, &fault);
    int status = good ? EXIT_DONE : report_fault(COMMAND_LAYER, &fault, EXIT_FAILED);
    release(&job);
    return status;
}
