// SPDX-License-Identifier: MIT
// Planes side by side for cpu/depthwise: rows are transposed into lanes and back, and tasks compute
// boxes of outputs or, in backward weight, sums over some images and boxes. Boxes and splits are
// chosen by shape alone, and each sum has one order, so that bits do not depend on the number of
// threads.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "cpu/conv/finish.h"
#include "depthwise.h"
#include "geometry/samples.h"

// Channels of a group.
static size_t group_channels(const struct shape *shape, size_t group)
{
    const size_t width = depthwise_width(shape), first = group * width;
    assert(first < shape->in_channels);
    return size_min(width, shape->in_channels - first);
}

// Images that the lanes of a group hold: where it has fewer channels than half of the lanes, the
// same channels of further images follow.
static size_t group_images(const struct shape *shape, size_t group)
{
    return size_min(depthwise_width(shape) / group_channels(shape, group), shape->batch);
}

size_t depthwise_last_sets(const struct shape *shape)
{
    return ceil_div(shape->batch, group_images(shape, depthwise_groups(shape) - 1));
}

void depthwise_copy_lanes(const struct shape *shape, size_t group, char *to, const char *from,
                          size_t apart)
{
    const size_t bytes = shape->scalar_bytes, first = group * depthwise_width(shape) * apart;
    const size_t n = group_channels(shape, group);
    memset(to, 0, CONV_BLOCK_BYTES);
    for (size_t image = 0; image < group_images(shape, group); image++)
        samples_copy(to + image * n * bytes, 1, from + first * bytes, apart, n, bytes);
}

// The lanes of set number `set` of images.
static struct depthwise_lanes locate_lanes(const struct shape *shape, size_t group, size_t set,
                                           bool outputs)
{
    const size_t planes = outputs ? depthwise_multiplier(shape) : 1;
    const struct sample_strides strides = shape_strides(shape, outputs);
    const size_t apart = planes * strides.channel, n = group_channels(shape, group);
    const size_t images = group_images(shape, group), item = set * images;
    struct depthwise_lanes ret = {.used = n * size_min(images, shape->batch - item),
                                  .samples = outputs ? shape_outputs(shape) : shape_inputs(shape),
                                  .adjacent = apart == 1 && strides.position > 1 ? n : 1,
                                  .strides = strides};
    for (size_t l = 0; l < ret.used; l++)
        ret.first[l] =
            (item + l / n) * strides.item + (group * depthwise_width(shape) + l % n) * apart;
    return ret;
}

// Index of sample `first` of a row, counted from a lane's first sample.
static size_t row_sample(const struct depthwise_lanes *lanes, const struct depthwise_row *row,
                         ptrdiff_t first)
{
    const size_t sample = row->row + (size_t)first;
    return row->plane * lanes->strides.channel + sample * lanes->strides.position;
}

// Prefetches the samples of a row two rows ahead: the processor cannot predict accesses to that
// many planes at once.
static void prefetch_ahead(const struct depthwise_lanes *lanes, const struct depthwise_row *row,
                           const char *at, size_t bytes, bool write)
{
    const size_t position = lanes->strides.position * bytes, step = size_max(position, MEM_ALIGN);
    const size_t n = ((row->n - 1) * row->step + 1) * position;
    const uintptr_t ahead = (uintptr_t)at + DEPTHWISE.ahead * row->pitch * position;
    if (row->row + DEPTHWISE.ahead * row->pitch >= lanes->samples) return;
    for (size_t l = 0; l < lanes->used; l += lanes->adjacent) {
        const uintptr_t line = ahead + lanes->first[l] * bytes;
        for (size_t i = 0; i < n && write; i += step)
            __builtin_prefetch((const void *)(line + i), 1, 2);
        for (size_t i = 0; i < n && !write; i += step)
            __builtin_prefetch((const void *)(line + i), 0, 2);
    }
}

enum { PART = 64 }; // samples of a lane that are converted together

// n samples of all lanes, `step` samples apart and of 16 bits, from an array into lanes, or to the
// array with bias and activation. Lanes whose samples are adjacent are converted position by
// position, others lane by lane.
static void move_half(const struct depthwise_call *call, const struct depthwise_lanes *lanes,
                      char *blocks, char *array, const size_t range[2],
                      const struct conv_finish *finish)
{
    const size_t step = range[0], bytes = call->plan->shape.sample_bytes, used = lanes->used;
    const bool adjacent = used > 1 && lanes->adjacent == used;
    const size_t next = adjacent ? used : 1; // position
    convert_fn *convert = finish ? plan_narrow(call->plan) : plan_widen(call->plan);
    float rows[DEPTHWISE_LANES * PART];
    void *row[DEPTHWISE_LANES] = {NULL};
    for (size_t l = 0; l < used; l++) row[l] = rows + l * (adjacent ? 1 : PART);
    for (size_t i = 0; i < range[1]; i += PART, blocks += PART * CONV_BLOCK_BYTES) {
        const size_t n = size_min(PART, range[1] - i);
        if (finish)
            call->plan->kernels->lanes_write(row, next, blocks, n, finish->bias, finish->relu);
        for (size_t k = 0; k < n && adjacent; k++) {
            char *at = array + (lanes->first[0] + (i + k) * step) * bytes;
            float *wide = rows + k * used;
            convert(finish ? (void *)at : wide, finish ? (void *)wide : at, used);
        }
        for (size_t l = 0; l < used && !adjacent; l += lanes->adjacent) {
            char *at = array + (lanes->first[l] + i * step) * bytes;
            const struct sample_rows part = {row[l], size_min(lanes->adjacent, used - l), PART,
                                             step, n};
            samples_move(call->plan, &part, at, finish);
        }
        if (!finish) call->plan->kernels->lanes_read(blocks, 1, (const void *const *)row, next, n);
    }
}

static void read_row(const struct depthwise_call *call, const struct depthwise_lanes *lanes,
                     char *to, const char *array, const struct depthwise_row *row)
{
    const size_t bytes = call->plan->shape.sample_bytes;
    const size_t step = row->step * lanes->strides.position;
    const struct inside in = samples_inside(row->size, row->first, row->step, row->n);
    const size_t end = in.begin + in.count;
    memset(to, 0, in.begin * CONV_BLOCK_BYTES);
    memset(to + end * CONV_BLOCK_BYTES, 0, (row->n - end) * CONV_BLOCK_BYTES);
    if (!in.count) return;
    const void *from[DEPTHWISE_LANES] = {NULL};
    const ptrdiff_t first = row->first + (ptrdiff_t)(in.begin * row->step);
    const char *at = array + row_sample(lanes, row, first) * bytes;
    for (size_t l = 0; l < lanes->used; l++) from[l] = at + lanes->first[l] * bytes;
    if (call->far) prefetch_ahead(lanes, row, at, bytes, false);
    to += in.begin * CONV_BLOCK_BYTES;
    if (call->plan->shape.half)
        move_half(call, lanes, to, (char *)at, (const size_t[]){step, in.count}, NULL);
    else call->plan->kernels->lanes_read(to, 1, from, step, in.count);
}

void depthwise_read(const struct depthwise_task *task, char *to, const struct depthwise_row *row)
{
    read_row(task->call, &task->in, to, task->call->from, row);
}

// Row i of the box in plane j of the outputs.
static struct depthwise_row output_row(const struct depthwise_task *task, size_t j, size_t i)
{
    const struct conv_pass *pass = &task->call->layout->pass;
    const struct conv_axis *axis = pass->axis;
    const size_t n_h = task->index.count[1], n = task->index.count[2];
    return (struct depthwise_row){.plane = j,
                                  .row =
                                      conv_pass_output_sample(pass, &task->index, i / n_h, i % n_h),
                                  .pitch = axis[1].spread * axis[2].out_size,
                                  .size = n * axis[2].spread,
                                  .step = axis[2].spread,
                                  .n = n};
}

void depthwise_read_gy(const struct depthwise_task *task, size_t j, size_t i, char *to)
{
    const struct depthwise_row row = output_row(task, j, i);
    read_row(task->call, &task->out, to, task->call->gy, &row);
}

static void write_row(const struct depthwise_task *task, const char *from,
                      const struct depthwise_row *row, const struct conv_finish *finish)
{
    const struct depthwise_call *call = task->call;
    const struct depthwise_lanes *lanes = &task->out;
    const size_t bytes = call->plan->shape.sample_bytes;
    const size_t step = row->step * lanes->strides.position;
    char *at = call->to + row_sample(lanes, row, row->first) * bytes;
    void *to[DEPTHWISE_LANES] = {NULL};
    for (size_t l = 0; l < lanes->used; l++) to[l] = at + lanes->first[l] * bytes;
    if (call->far) prefetch_ahead(lanes, row, at, bytes, true);
    if (call->plan->shape.half)
        move_half(call, lanes, (char *)from, at, (const size_t[]){step, row->n}, finish);
    else call->plan->kernels->lanes_write(to, step, from, row->n, finish->bias, finish->relu);
}

// Box i of all sets of images of a group.
static struct depthwise_task make_task(const struct depthwise_call *call, size_t group, size_t i,
                                       int worker)
{
    const struct shape *shape = &call->plan->shape;
    const struct conv_pass *pass = &call->layout->pass;
    const size_t boxes = conv_pass_boxes(pass);
    const bool data = call->plan->direction == PARTITA_BACKWARD_DATA;
    return (struct depthwise_task){call,
                                   conv_pass_index(pass, i % boxes),
                                   group,
                                   locate_lanes(shape, group, i / boxes, data),
                                   locate_lanes(shape, group, i / boxes, !data),
                                   call->workers + (size_t)worker * call->plan->choice.worker};
}

void depthwise_run_task(void *context, size_t i, int worker)
{
    const struct depthwise_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct conv_pass *pass = &call->layout->pass;
    const size_t boxes = shape->batch * conv_pass_boxes(pass), group = i / boxes;
    const size_t item = i % boxes / conv_pass_boxes(pass) * group_images(shape, group);
    if (item >= shape->batch) return;
    const struct depthwise_task task = make_task(call, group, i % boxes, worker);
    const size_t rows = task.index.count[0] * task.index.count[1];
    for (size_t j = 0; j < pass->out; j++) {
        _Alignas(CONV_BLOCK_BYTES) char bias[CONV_BLOCK_BYTES];
        struct conv_finish finish = filter_finish(call->filter, j);
        if (finish.bias)
            depthwise_copy_lanes(shape, task.group, bias, finish.bias, depthwise_multiplier(shape));
        if (finish.bias) finish.bias = bias;
        call->sums->load(&task, j);
        for (size_t k = 0; k < rows; k++) {
            const struct depthwise_row row = output_row(&task, j, k);
            write_row(&task, call->sums->row(&task, j, k), &row, &finish);
        }
    }
}

// Stores the gradient of output j of each channel in one split.
static void write_gradient(const struct depthwise_task *task, size_t j, size_t split)
{
    const struct depthwise_call *call = task->call;
    const struct shape *shape = &call->plan->shape;
    const size_t taps = shape_taps(shape) * shape->scalar_bytes; // bytes of a path
    const size_t channel = task->group * depthwise_width(shape);
    char *gradient = task->memory + call->plan->choice.worker - depthwise_tap_blocks(shape);
    char *first = split_k_sums(&call->split_k, split);
    void *to[DEPTHWISE_LANES] = {NULL};
    const size_t n = group_channels(shape, task->group), lanes = depthwise_width(shape);
    for (size_t l = 0; l < n; l++)
        to[l] = first + ((channel + l) * depthwise_multiplier(shape) + j) * taps;
    call->sums->finish(task, gradient);
    // The sums of further images are added to those of the first.
    for (size_t t = 0; t < shape_taps(shape); t++)
        for (size_t l = n; l + n <= lanes; l += n)
            call->plan->kernels->add(gradient + t * CONV_BLOCK_BYTES,
                                     gradient + t * CONV_BLOCK_BYTES + l * shape->scalar_bytes, n);
    call->plan->kernels->lanes_write(to, 1, gradient, shape_taps(shape), NULL, false);
}

// One task of backward weight: a group in one split of its images and boxes.
static void sum_split(void *context, size_t index, int worker)
{
    const struct depthwise_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const size_t splits = call->split_k.splits, split = index % splits;
    const size_t images = group_images(shape, index / splits);
    const size_t all = ceil_div(shape->batch, images) * conv_pass_boxes(&call->layout->pass);
    const size_t begin = split * all / splits, end = (split + 1) * all / splits;
    assert(begin < end);
    for (size_t j = 0; j < depthwise_multiplier(shape); j++)
        for (size_t i = begin; i < end; i++) {
            const struct depthwise_task task = make_task(call, index / splits, i, worker);
            call->sums->add(&task, j, i == begin);
            if (i + 1 == end) write_gradient(&task, j, split);
        }
}

void depthwise_sum(struct depthwise_call *call, const struct depthwise_sums *sums)
{
    const struct partita_plan *plan = call->plan;
    const size_t groups = depthwise_groups(&plan->shape);
    call->sums = sums;
    call->layout = plan->state;
    const size_t boxes = plan->shape.batch * conv_pass_boxes(&call->layout->pass);
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) depthwise_run_splits(call, groups, sum_split);
    else thread_loop(plan->threads, groups * boxes, depthwise_run_task, call);
}

void depthwise_split_memory(const struct request *request, size_t worker, size_t tasks,
                            size_t max_splits, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t limit = request->workspace_limit;
    ret->worker = size_add(worker, depthwise_tap_blocks(shape));
    const size_t splits = split_k_count(shape, DEPTHWISE.min_tasks, tasks, max_splits,
                                        limit - size_min(limit, ret->worker));
    ret->shared = size_mul(splits - 1, split_k_bytes(shape));
    ret->bytes = size_add(ret->shared, ret->worker);
}

void depthwise_run_splits(struct depthwise_call *call, size_t tasks, task_fn *run)
{
    const struct partita_plan *plan = call->plan;
    const size_t bytes = split_k_bytes(&plan->shape), splits = plan->choice.shared / bytes + 1;
    call->split_k = (struct split_k){plan, call->to, call->shared, splits, bytes};
    thread_loop(plan->threads, tasks * splits, run, call);
    split_k_reduce(&call->split_k);
}
