// SPDX-License-Identifier: MIT
// `partita layer forward|backward-data|backward-weight`: reads arrays, derives the problem from
// their shapes and the options, computes it and writes the result.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/clock.h"
#include "base/json_values.h"
#include "base/memory.h"
#include "base/number.h"
#include "commands.h"
#include "engine_name.h"
#include "io/audio.h"
#include "io/bytes/temp.h"
#include "io/formats/npy.h"
#include "option_words.h"
#include "report.h"
#include "wisdom_file.h"

#define MAX_NUMBER ((int64_t)1 << 40)

enum {
    FORWARD = PARTITA_FORWARD,
    DATA = PARTITA_BACKWARD_DATA,
    WEIGHT = PARTITA_BACKWARD_WEIGHT,
    EVERY = FORWARD | DATA | WEIGHT,
};

struct layer {
    const struct settings *settings;
    int direction;
    struct npy_array x, w, bias, gy; // as far as the direction needs them
    struct npy_array result;         // y, or the gradient of x or w
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_wisdom *wisdom;
    double seconds;   // of preparing the weights and computing
    struct fault log; // the library's last line
};

enum { MAX_NUMBERS = 2 * PARTITA_MAX_RANK }; // of an option such as --stride 2,1

// Parses whole numbers between commas, none below `low`, which is 1, or below 0 for --pad. Returns
// how many there are, or 0 with a fault.
static int parse_list(const char *option, const char *text, int64_t low,
                      struct number numbers[MAX_NUMBERS], struct fault *fault)
{
    const int n = number_parse_list(text, QUANTITY_COUNT, numbers, MAX_NUMBERS);
    bool good = n > 0;
    for (int i = 0; i < n; i++)
        good = good && numbers[i].whole && numbers[i].integer >= low &&
               numbers[i].integer <= MAX_NUMBER;
    if (good) return n;
    fault_set(fault, "%s %s: is not a list of up to %d whole numbers%s, such as 2,1%s", option,
              text, MAX_NUMBERS, low == 1 ? " from 1 on" : "",
              low == 1 ? "" : ", and not the word same");
    return 0;
}

// One number for each axis, or one for all.
static bool parse_axes(const char *option, const char *text, int rank,
                       size_t values[PARTITA_MAX_RANK], struct fault *fault)
{
    struct number numbers[MAX_NUMBERS];
    const int n = text ? parse_list(option, text, 1, numbers, fault) : 0;
    if (n > 1 && n != rank)
        return fault_set(fault, "%s %s: %d numbers for %d axes", option, text, n, rank);
    for (int i = 0; n && i < rank; i++) values[i] = (size_t)numbers[n == 1 ? 0 : i].integer;
    return n || !text;
}

// With same, the output has the size of the input; of an odd number of zeros the extra one is at
// the end, as in PyTorch.
static bool parse_pad(const char *text, struct partita_problem *p, struct fault *fault)
{
    struct number numbers[MAX_NUMBERS];
    const int rank = p->rank;
    const bool same = text && strcmp(text, "same") == 0;
    for (int i = 0; i < rank && same; i++) {
        if (p->stride[i] > 1)
            return fault_set(fault, "--pad same: needs a stride of 1, not %zu", p->stride[i]);
        const size_t dilation = p->dilation[i] ? p->dilation[i] : 1;
        const size_t zeros = (p->kernel[i] - 1) * dilation;
        p->pad_begin[i] = (ptrdiff_t)(zeros / 2);
        p->pad_end[i] = (ptrdiff_t)(zeros - zeros / 2);
    }
    if (!text || same) return true;
    const int n = parse_list("--pad", text, -MAX_NUMBER, numbers, fault);
    if (!n) return false;
    if (n != 1 && n != rank && n != 2 * rank)
        return fault_set(fault,
                         "--pad %s: %d numbers for %d axes; give one, one per axis, or all begins "
                         "and then all ends",
                         text, n, rank);
    for (int i = 0; i < rank; i++) {
        const int begin = n == 1 ? 0 : i, end = n == 2 * rank ? rank + i : begin;
        p->pad_begin[i] = (ptrdiff_t)numbers[begin].integer;
        p->pad_end[i] = (ptrdiff_t)numbers[end].integer;
    }
    return true;
}

// The name of a boundary, or the value of a constant one.
static bool parse_boundary(const char *text, struct partita_problem *p, struct fault *fault)
{
    static const char *const names[] = {"edge", "reflect", "symmetric", "wrap"};
    char hint[NEAREST_HINT_SIZE];
    struct number number;
    if (!text) return true;
    const int found = nearest_find(text, names, 4, sizeof *names, hint);
    p->boundary = found < 0 ? PARTITA_BOUNDARY_CONSTANT
                            : (enum partita_boundary)(PARTITA_BOUNDARY_EDGE + found);
    if (found >= 0) return true;
    if (!number_parse(text, QUANTITY_COUNT, &number) || !isfinite(number.value))
        return fault_set(fault,
                         "--boundary %s: must be edge, reflect, symmetric, wrap or a finite number",
                         text);
    p->boundary_value = number.value;
    return true;
}

// Checks that the direction exists and has the options that it needs and no others. Outputs must be
// named .npy, except pipes and devices.
static bool layer_check_usage(struct layer *layer, struct fault *fault)
{
    const struct settings *s = layer->settings;
    static const char *const words[] = {"forward", "backward-data", "backward-weight"};
    const char *word = s->operands[0];
    char hint[NEAREST_HINT_SIZE];
    const int found = nearest_find(word, words, 3, sizeof *words, hint);
    if (found < 0)
        return fault_set(fault, "%s: must be one of forward, backward-data, backward-weight%s",
                         word, hint);
    const int direction = layer->direction = 1 << found; // in the order of enum partita_direction
    const struct {
        const char *name, *value;
        int needed, allowed; // directions
        bool written;
    } options[] = {
        {"--input", s->input, FORWARD | WEIGHT, FORWARD | WEIGHT, false},
        {"--weight", s->weight, FORWARD | DATA, FORWARD | DATA, false},
        {"--bias", s->bias, 0, FORWARD, false},
        {"--grad-output", s->grad_output, DATA | WEIGHT, DATA | WEIGHT, false},
        {"--input-shape", s->input_shape, DATA, DATA, false},
        {"--kernel-shape", s->kernel_shape, WEIGHT, WEIGHT, false},
        {"--relu", s->relu ? "" : NULL, 0, FORWARD, false},
        {"--output", s->output, EVERY, EVERY, true},
        {"--grad-bias", s->grad_bias, 0, WEIGHT, true},
    };
    if (!engine_check(s, fault)) return false;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *name = options[i].name, *value = options[i].value;
        if (options[i].needed & direction && !value)
            return fault_set(fault, "%s needs %s", word, name);
        if (!(options[i].allowed & direction) && value)
            return fault_set(fault, "%s does not take %s", word, name);
        bool known;
        if (options[i].written && value && !temp_is_special(value) &&
            container_of_name(value, &known) != CONTAINER_NPY)
            return fault_set(fault, "%s %s: layers write .npy arrays; the name must end in .npy",
                             name, value);
    }
    return true;
}

// [batch, channels, 1 to 3 axes], as the array that was read first; a bias is [out].
static bool check_array(const struct npy_array *array, const struct npy_array *first, bool is_bias,
                        struct fault *fault)
{
    if (first->f64 != array->f64)
        return fault_set(fault, "%s is %s, but %s is %s; save one of them as x.astype('f8')",
                         first->name, first->f64 ? "f8" : "f4", array->name,
                         array->f64 ? "f8" : "f4");
    if (!is_bias && array->rank != first->rank)
        return fault_set(fault,
                         "%s: array of %d dimensions, but %s has %d; both need the same axes",
                         array->name, array->rank, first->name, first->rank);
    if (!is_bias && (array->rank < 3 || array->rank > PARTITA_MAX_RANK + 2))
        return fault_set(fault,
                         "%s: array of %d dimensions; expected [batch, channels, 1 to %d axes]",
                         array->name, array->rank, PARTITA_MAX_RANK);
    for (int i = 0; i < array->rank; i++)
        if (array->shape[i] == 0) return fault_set(fault, "%s: dimension %d is 0", array->name, i);
    return true;
}

static bool load_inputs(struct layer *layer, struct fault *fault)
{
    const struct settings *s = layer->settings;
    const char *const files[] = {s->input, s->weight, s->grad_output, s->bias};
    struct npy_array *const arrays[] = {&layer->x, &layer->w, &layer->gy, &layer->bias};
    const struct npy_array *first = NULL;
    for (int i = 0; i < 4; i++) {
        if (!files[i]) continue;
        if (!temp_differs(s->output, &files[i], 1, fault) ||
            (s->grad_bias && !temp_differs(s->grad_bias, &files[i], 1, fault)) ||
            !npy_array_load(arrays[i], files[i], fault))
            return false;
        if (!first) first = arrays[i];
        if (!check_array(arrays[i], first, arrays[i] == &layer->bias, fault)) return false;
    }
    return true;
}

// What has the input's shape: the gradient of backward data, or the input.
static const struct npy_array *input_of(const struct layer *layer)
{
    return layer->direction == DATA ? &layer->result : &layer->x;
}

static bool parse_input_shape(struct layer *layer, struct fault *fault)
{
    struct number numbers[MAX_NUMBERS];
    struct npy_array *x = &layer->result;
    const char *text = layer->settings->input_shape;
    const int n = parse_list("--input-shape", text, 1, numbers, fault);
    if (n && n != layer->gy.rank)
        return fault_set(fault, "--input-shape %s: %d numbers, but %s has %d dimensions", text, n,
                         layer->gy.name, layer->gy.rank);
    *x = (struct npy_array){.name = "--input-shape", .rank = n, .f64 = layer->gy.f64};
    for (int i = 0; i < n; i++) x->shape[i] = (size_t)numbers[i].integer;
    return n;
}

static bool set_geometry(struct layer *layer, struct fault *fault)
{
    const struct settings *s = layer->settings;
    struct partita_problem *p = &layer->problem;
    const struct npy_array *x = input_of(layer);
    if (layer->direction == DATA && !parse_input_shape(layer, fault)) return false;
    *p = (struct partita_problem){
        .op = PARTITA_CORRELATE, .rank = x->rank - 2, .groups = (size_t)s->layer_groups};
    p->signal = p->taps = x->f64 ? PARTITA_F64 : PARTITA_F32;
    p->batch = x->shape[0];
    p->in_channels = x->shape[1];
    memcpy(p->size, x->shape + 2, (size_t)p->rank * sizeof *p->size);
    if (s->relu) p->activation = PARTITA_RELU;
    return parse_axes("--stride", s->strides, p->rank, p->stride, fault) &&
           parse_axes("--dilation", s->dilation, p->rank, p->dilation, fault) &&
           parse_axes("--kernel-shape", s->kernel_shape, p->rank, p->kernel, fault) &&
           parse_boundary(s->boundary, p, fault);
}

// Kernel and channels from w, whose input channels must match those of x.
static bool set_weight_shape(struct layer *layer, struct fault *fault)
{
    struct partita_problem *p = &layer->problem;
    const struct npy_array *w = &layer->w;
    p->out_channels = w->shape[0];
    memcpy(p->kernel, w->shape + 2, (size_t)p->rank * sizeof *p->kernel);
    if (p->in_channels % p->groups || w->shape[1] != p->in_channels / p->groups)
        return fault_set(fault,
                         "%s has %zu input channels in each of %zu group%s, but %s has %zu "
                         "channels in all",
                         w->name, w->shape[1], p->groups, p->groups == 1 ? "" : "s",
                         input_of(layer)->name, p->in_channels);
    return true;
}

static bool succeeded(const struct layer *layer, enum partita_status status, struct fault *fault)
{
    return option_words_of_status(fault, COMMAND_LAYER, status, &layer->log);
}

static struct npy_array shaped(const char *name, const struct partita_problem *p,
                               const size_t first[2], const size_t axes[PARTITA_MAX_RANK])
{
    struct npy_array ret = {.name = name,
                            .rank = p->rank + 2,
                            .shape = {first[0], first[1]},
                            .f64 = p->signal == PARTITA_F64};
    memcpy(ret.shape + 2, axes, (size_t)p->rank * sizeof *axes);
    return ret;
}

enum { SHAPE_TEXT = 120 };

static const char *shape_text(const struct npy_array *array, char text[SHAPE_TEXT])
{
    int n = 0;
    for (int i = 0; i < array->rank; i++)
        n += snprintf(text + n, SHAPE_TEXT - (size_t)n, "%s%zu", i ? "," : "", array->shape[i]);
    return text;
}

// gy must have the shape of the problem's outputs.
static bool check_gradient(const struct npy_array *gy, const struct npy_array *y,
                           struct fault *fault)
{
    char text[2][SHAPE_TEXT];
    if (!gy->name || memcmp(gy->shape, y->shape, (size_t)y->rank * sizeof *y->shape) == 0)
        return true;
    return fault_set(fault, "%s: shape %s, but this layer's output is %s", gy->name,
                     shape_text(gy, text[0]), shape_text(y, text[1]));
}

static bool make_problem(struct layer *layer, struct fault *fault)
{
    struct partita_problem *p = &layer->problem;
    size_t outputs[PARTITA_MAX_RANK];
    char name[ENGINE_NAME_SIZE];
    const struct settings *s = layer->settings;
    if (!set_geometry(layer, fault)) return false;
    if (layer->direction == WEIGHT) p->out_channels = layer->gy.shape[1];
    else if (!set_weight_shape(layer, fault)) return false;
    if (!parse_pad(s->pad, p, fault)) return false;
    const struct partita_options options = {.device = s->device,
                                            .engine = engine_name(s->engine, name),
                                            .threads = (int)s->layer_threads,
                                            .workspace_limit = (size_t)s->workspace_limit,
                                            .directions = (unsigned)layer->direction,
                                            .wisdom = layer->wisdom,
                                            .allocator = memory_allocator(),
                                            .log = {option_words_log, &layer->log}};
    if (partita_problem_output_size(p, outputs) == PARTITA_OK) {
        const struct npy_array y =
            shaped(s->output, p, (size_t[]){p->batch, p->out_channels}, outputs);
        if (!check_gradient(&layer->gy, &y, fault)) return false;
        if (layer->direction == FORWARD) layer->result = y;
    }
    if (!succeeded(layer, partita_plan_create(p, &options, &layer->plan), fault)) return false;
    if (layer->direction == WEIGHT)
        layer->result = shaped(s->output, p,
                               (size_t[]){p->out_channels, p->in_channels / p->groups}, p->kernel);
    layer->result.name = s->output;
    const struct npy_array *bias = &layer->bias;
    return !bias->name || (bias->rank == 1 && bias->shape[0] == p->out_channels) ||
           fault_set(fault, "%s: not an array of %zu numbers, one for each output channel",
                     bias->name, p->out_channels);
}

static bool layer_compute(struct layer *layer, struct fault *fault)
{
    enum partita_status status = PARTITA_OK;
    if (!npy_array_reserve(&layer->result, fault)) return false;
    const double start = clock_seconds();
    if (layer->direction != WEIGHT)
        status = partita_filter_create_from(
            layer->plan,
            &(struct partita_taps){.dense = layer->w.samples,
                                   .dense_count = partita_plan_taps_count(layer->plan),
                                   .bias = layer->bias.samples},
            &layer->filter);
    if (status == PARTITA_OK && layer->direction == FORWARD)
        status = partita_forward(layer->plan, layer->filter, layer->result.samples,
                                 layer->x.samples, NULL);
    if (status == PARTITA_OK && layer->direction == DATA)
        status = partita_backward_data(layer->plan, layer->filter, layer->result.samples,
                                       layer->gy.samples, NULL);
    if (status == PARTITA_OK && layer->direction == WEIGHT)
        status = partita_backward_weight(layer->plan, layer->result.samples, layer->x.samples,
                                         layer->gy.samples, NULL);
    layer->seconds = clock_seconds() - start;
    return succeeded(layer, status, fault);
}

static bool print_json(const struct layer *layer, struct fault *fault)
{
    const enum partita_direction direction = (enum partita_direction)layer->direction;
    const struct npy_array *result = &layer->result;
    if (!layer->settings->json) return true;
    json_t *j = json_report("partita-layer/1", command_rows[COMMAND_LAYER].name);
    json_t *shape = json_array();
    for (int i = 0; i < result->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)result->shape[i]));
    json_object_set_new(j, "direction", json_text(layer->settings->operands[0]));
    json_object_set_new(j, "engine", json_text(partita_plan_engine(layer->plan, direction)));
    json_object_set_new(j, "type", json_text(result->f64 ? "f64" : "f32"));
    json_object_set_new(j, "output", json_text(result->name));
    json_object_set_new(j, "shape", shape);
    json_object_set_new(j, "workspace_bytes",
                        json_integer((json_int_t)partita_plan_workspace(layer->plan, direction)));
    json_object_set_new(j, "seconds", json_finite(layer->seconds));
    return json_print(j, stdout) || fault_set(fault, "cannot write the JSON");
}

static bool save_bias(struct layer *layer, struct fault *fault)
{
    const char *path = layer->settings->grad_bias;
    struct npy_array gb = {path, 1, {layer->problem.out_channels}, layer->result.f64, NULL};
    if (!path) return true;
    const bool good =
        npy_array_reserve(&gb, fault) &&
        succeeded(layer, partita_backward_bias(layer->plan, gb.samples, layer->gy.samples, NULL),
                  fault) &&
        npy_array_save(&gb, path, fault);
    npy_array_release(&gb);
    return good;
}

int layer_main(const struct settings *settings, struct fault *fault)
{
    struct layer layer = {.settings = settings};
    if (!layer_check_usage(&layer, fault)) return EXIT_USAGE;
    layer.wisdom = wisdom_file_load();
    bool good = load_inputs(&layer, fault) && make_problem(&layer, fault);
    if (good) report_plan_detail(settings, layer.plan);
    good = good && layer_compute(&layer, fault) &&
           npy_array_save(&layer.result, settings->output, fault) && save_bias(&layer, fault) &&
           print_json(&layer, fault);
    partita_filter_destroy(layer.filter);
    partita_plan_destroy(layer.plan);
    partita_wisdom_destroy(layer.wisdom);
    struct npy_array *const arrays[] = {&layer.x, &layer.w, &layer.bias, &layer.gy, &layer.result};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) npy_array_release(arrays[i]);
    return good ? EXIT_DONE : EXIT_FAILED;
}
