// SPDX-License-Identifier: MIT
// oneDNN as a contender, through its C interface of version 2: direct convolution and, where it has
// one, Winograd's. It chooses the formats of all three arrays itself (format "any"), which makes it
// fastest. `onednn` is timed on arrays in these formats; `onednn+reorder` has plain arrays as input
// and output, as its callers have them, with the weights reordered beforehand as ours are packed.
// Its threads are OpenMP's, as many as the row says.
#include "peers/peers.h"

#include <math.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/layer.h"

// Multiply-adds of a pass of its reference loops, which take seconds beyond that.
static const double MAX_REFERENCE_TERMS = 1e9;

// An array of the workload in its plain format, and in the format that the convolution requires.
struct onednn_operand {
    dnnl_memory_t plain, native;
    dnnl_primitive_t reorder; // from plain to native, for results from native to plain; NULL: the
                              // formats are the same
    bool result;
};

enum { X, H, Y, OPERANDS }; // as in the workload

struct onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t convolution;
    struct onednn_operand operand[OPERANDS];
    dnnl_exec_arg_t arguments[OPERANDS];
    int threads;
};

// What the three arrays are for oneDNN in each direction.
struct onednn_role {
    int argument;
    dnnl_query_t query;
};

static const struct onednn_role *onednn_roles(enum partita_direction direction)
{
    static const struct onednn_role forward[OPERANDS] = {{DNNL_ARG_SRC, dnnl_query_src_md},
                                                         {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                                                         {DNNL_ARG_DST, dnnl_query_dst_md}},
                                    data[OPERANDS] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                                                      {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                                                      {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md}},
                                    weight[OPERANDS] = {
                                        {DNNL_ARG_SRC, dnnl_query_src_md},
                                        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                                        {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md}};
    return direction == PARTITA_FORWARD         ? forward
           : direction == PARTITA_BACKWARD_DATA ? data
                                                : weight;
}

// The problem in oneDNN's terms, with any formats.
struct onednn_geometry {
    dnnl_memory_desc_t x, w, y;
    dnnl_dims_t stride, dilation, begin, end;
};

static dnnl_dim_t onednn_dim(size_t value)
{
    return (dnnl_dim_t)or_one(value);
}

static void onednn_describe(dnnl_memory_desc_t *ret, int n, const dnnl_dims_t dims,
                            dnnl_format_tag_t tag)
{
    dnnl_memory_desc_init_by_tag(ret, n, dims, dnnl_f32, tag);
}

static bool onednn_geometry_init(const struct workload *w, struct onednn_geometry *ret)
{
    const struct partita_problem p = layer_problem(w);
    size_t outputs[PARTITA_MAX_RANK];
    if (w->signal != PARTITA_F32 || partita_problem_output_size(&p, outputs) != PARTITA_OK)
        return false;
    const dnnl_dim_t groups = onednn_dim(p.groups);
    dnnl_dims_t x = {onednn_dim(p.batch), onednn_dim(p.in_channels)},
                y = {onednn_dim(p.batch), onednn_dim(p.out_channels)};
    dnnl_dims_t taps = {groups, y[1] / groups, x[1] / groups};
    for (int a = 0; a < p.rank; a++) {
        x[2 + a] = (dnnl_dim_t)p.size[a];
        y[2 + a] = (dnnl_dim_t)outputs[a];
        taps[3 + a] = onednn_dim(p.kernel[a]);
        ret->stride[a] = onednn_dim(p.stride[a]);
        ret->dilation[a] = onednn_dim(p.dilation[a]) - 1;
        ret->begin[a] = p.pad_begin[a];
        ret->end[a] = p.pad_end[a];
    }
    const int grouped = groups > 1; // a dense layer's weights have no axis of groups
    onednn_describe(&ret->x, 2 + p.rank, x, dnnl_format_tag_any);
    onednn_describe(&ret->y, 2 + p.rank, y, dnnl_format_tag_any);
    onednn_describe(&ret->w, 2 + p.rank + grouped, taps + !grouped, dnnl_format_tag_any);
    return true;
}

static bool onednn_describe_forward(dnnl_engine_t engine, const struct onednn_geometry *g,
                                    dnnl_prop_kind_t kind, dnnl_alg_kind_t algorithm,
                                    dnnl_primitive_desc_t *ret)
{
    dnnl_convolution_desc_t op;
    return dnnl_dilated_convolution_forward_desc_init(&op, kind, algorithm, &g->x, &g->w, NULL,
                                                      &g->y, g->stride, g->dilation, g->begin,
                                                      g->end) == dnnl_success &&
           dnnl_primitive_desc_create(ret, &op, NULL, engine, NULL) == dnnl_success;
}

static bool onednn_describe_direction(struct onednn *o, const struct onednn_geometry *g,
                                      enum partita_direction direction, dnnl_alg_kind_t algorithm)
{
    if (direction == PARTITA_FORWARD)
        return onednn_describe_forward(o->engine, g, dnnl_forward_inference, algorithm,
                                       &o->description);
    dnnl_primitive_desc_t hint;
    dnnl_convolution_desc_t op;
    if (!onednn_describe_forward(o->engine, g, dnnl_forward_training, algorithm, &hint))
        return false;
    dnnl_status_t status;
    if (direction == PARTITA_BACKWARD_DATA)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &op, algorithm, &g->x, &g->w, &g->y, g->stride, g->dilation, g->begin, g->end);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &op, algorithm, &g->x, &g->w, NULL, &g->y, g->stride, g->dilation, g->begin, g->end);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&o->description, &op, NULL, o->engine, hint);
    dnnl_primitive_desc_destroy(hint);
    return status == dnnl_success;
}

static bool onednn_reorder_create(struct onednn *o, struct onednn_operand *operand,
                                  const dnnl_memory_desc_t *plain, const dnnl_memory_desc_t *native)
{
    dnnl_primitive_desc_t description;
    const dnnl_memory_desc_t *from = operand->result ? native : plain,
                             *to = operand->result ? plain : native;
    if (dnnl_reorder_primitive_desc_create(&description, from, o->engine, to, o->engine, NULL) !=
        dnnl_success)
        return false;
    const dnnl_status_t status = dnnl_primitive_create(&operand->reorder, description);
    dnnl_primitive_desc_destroy(description);
    return status == dnnl_success;
}

static bool onednn_operand_create(struct onednn *o, int i, const struct onednn_role *role,
                                  void *samples)
{
    static const dnnl_format_tag_t tags[] = {
        [3] = dnnl_abc, [4] = dnnl_abcd, [5] = dnnl_abcde, [6] = dnnl_abcdef};
    struct onednn_operand *operand = &o->operand[i];
    const dnnl_memory_desc_t *native = dnnl_primitive_desc_query_md(o->description, role->query, 0);
    dnnl_memory_desc_t plain;
    onednn_describe(&plain, native->ndims, native->dims, tags[native->ndims]);
    operand->result = i == Y;
    const bool same = dnnl_memory_desc_equal(native, &plain);
    if (dnnl_memory_create(&operand->plain, &plain, o->engine, samples) != dnnl_success ||
        (!same && (dnnl_memory_create(&operand->native, native, o->engine, DNNL_MEMORY_ALLOCATE) !=
                       dnnl_success ||
                   !onednn_reorder_create(o, operand, &plain, native))))
        return false;
    o->arguments[i] = (dnnl_exec_arg_t){role->argument, same ? operand->plain : operand->native};
    return true;
}

static bool onednn_reorder(struct onednn *o, const struct onednn_operand *operand)
{
    if (operand->reorder == NULL) return true;
    const dnnl_exec_arg_t arguments[2] = {
        {DNNL_ARG_FROM, operand->result ? operand->native : operand->plain},
        {DNNL_ARG_TO, operand->result ? operand->plain : operand->native}};
    return dnnl_primitive_execute(operand->reorder, o->stream, 2, arguments) == dnnl_success;
}

static void onednn_close(void *state)
{
    struct onednn *o = state;
    for (int i = 0; i < OPERANDS; i++) {
        if (o->operand[i].reorder) dnnl_primitive_destroy(o->operand[i].reorder);
        if (o->operand[i].native) dnnl_memory_destroy(o->operand[i].native);
        if (o->operand[i].plain) dnnl_memory_destroy(o->operand[i].plain);
    }
    if (o->convolution) dnnl_primitive_destroy(o->convolution);
    if (o->description) dnnl_primitive_desc_destroy(o->description);
    if (o->stream) dnnl_stream_destroy(o->stream);
    if (o->engine) dnnl_engine_destroy(o->engine);
    free(o);
}

static bool onednn_convolve(struct onednn *o)
{
    return dnnl_primitive_execute(o->convolution, o->stream, OPERANDS, o->arguments) ==
           dnnl_success;
}

// Arrays have oneDNN's formats before and after.
static double onednn_native_pass(void *state, const struct workload *w, double *calls)
{
    struct onednn *o = state;
    (void)w;
    (void)calls;
    omp_set_num_threads(o->threads);
    const double start = bench_now();
    return onednn_convolve(o) && dnnl_stream_wait(o->stream) == dnnl_success ? bench_now() - start
                                                                             : NAN;
}

static bool onednn_native_fetch(void *state, struct workload *w)
{
    struct onednn *o = state;
    (void)w;
    return onednn_reorder(o, &o->operand[Y]) && dnnl_stream_wait(o->stream) == dnnl_success;
}

// From plain arrays to a plain array; the weights of forward and backward data were reordered
// beforehand.
static double onednn_plain_pass(void *state, const struct workload *w, double *calls)
{
    struct onednn *o = state;
    (void)calls;
    omp_set_num_threads(o->threads);
    const double start = bench_now();
    const bool ok =
        onednn_reorder(o, &o->operand[X]) &&
        (w->layer->direction != PARTITA_BACKWARD_WEIGHT || onednn_reorder(o, &o->operand[H])) &&
        onednn_convolve(o) && onednn_reorder(o, &o->operand[Y]) &&
        dnnl_stream_wait(o->stream) == dnnl_success;
    return ok ? bench_now() - start : NAN;
}

// Does everything up to the timed pass.
static bool onednn_create(struct onednn *o, const struct workload *w, dnnl_alg_kind_t algorithm)
{
    const struct onednn_role *role = onednn_roles(w->layer->direction);
    char *const samples[OPERANDS] = {w->x, w->h, w->y};
    struct onednn_geometry geometry;
    omp_set_num_threads(o->threads); // the primitive splits its work for them
    if (!onednn_geometry_init(w, &geometry) ||
        dnnl_engine_create(&o->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags) != dnnl_success ||
        !onednn_describe_direction(o, &geometry, w->layer->direction, algorithm) ||
        dnnl_primitive_create(&o->convolution, o->description) != dnnl_success)
        return false;
    for (int i = 0; i < OPERANDS; i++)
        if (!onednn_operand_create(o, i, &role[i], samples[i]) ||
            (i != Y && !onednn_reorder(o, &o->operand[i])))
            return false;
    return dnnl_stream_wait(o->stream) == dnnl_success;
}

// Its reference loops have a few hundredths of the speed of the others.
static bool onednn_is_slow(const struct onednn *o, const struct workload *w)
{
    const char *name = "";
    return dnnl_primitive_desc_query(o->description, dnnl_query_impl_info_str, 0, &name) ==
               dnnl_success &&
           strncmp(name, "ref", 3) == 0 && (double)w->timed > MAX_REFERENCE_TERMS;
}

static bool onednn_open(struct contender *contender, const struct workload *w,
                        dnnl_alg_kind_t algorithm)
{
    struct onednn *o = bench_allocate(sizeof *o);
    o->threads = contender->threads;
    if (!onednn_create(o, w, algorithm)) {
        onednn_close(o);
        return false;
    }
    if (onednn_is_slow(o, w)) {
        snprintf(contender->reason, sizeof contender->reason,
                 "it has only its reference loops for this");
        onednn_close(o);
        return false;
    }
    contender->state = o;
    contender->pass = onednn_native_pass;
    contender->fetch = onednn_native_fetch;
    contender->close = onednn_close;
    contender->gate = gate_peer(w);
    return true;
}

bool peer_onednn(struct contender *contender, const struct workload *w)
{
    return onednn_open(contender, w, dnnl_convolution_direct);
}

bool peer_onednn_reorder(struct contender *contender, const struct workload *w)
{
    if (!onednn_open(contender, w, dnnl_convolution_direct)) return false;
    contender->pass = onednn_plain_pass;
    contender->fetch = NULL;
    return true;
}

bool peer_onednn_winograd(struct contender *contender, const struct workload *w)
{
    return onednn_open(contender, w, dnnl_convolution_winograd);
}
