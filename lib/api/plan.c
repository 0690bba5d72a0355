// SPDX-License-Identifier: MIT
// Public functions of plans. As in every file of api/, arguments are checked here, one internal
// call follows, and below they are trusted.
#include "plan.h"

#include <string.h>

#include "base/thread.h"
#include "core/arguments.h"
#include "kernels/kernels.h"
#include "layer/bounded.h"
#include "planner/planner.h"
#include "sized.h"

enum { ALL_DIRECTIONS = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT };

enum partita_status partita_problem_output_size_sized(const struct partita_problem *problem,
                                                      size_t problem_bytes,
                                                      size_t ret_size[PARTITA_MAX_RANK])
{
    const struct partita_log log = log_default();
    struct partita_problem known;
    struct shape shape;
    if (!arguments_given(log, problem, ret_size)) return PARTITA_ERR_ARG;
    if (!sized_read(&known, sizeof known, problem, problem_bytes, &log, "problem"))
        return PARTITA_ERR_UNSUPPORTED;
    if (problem_canonical(&known, &log, &shape) != PARTITA_OK) return PARTITA_ERR_ARG;
    if (shape.stream)
        return log_error(&log, PARTITA_ERR_ARG, "problem.size[0]: a stream has no output size");
    for (int i = 0; i < PARTITA_MAX_RANK; i++) ret_size[i] = shape.axis[i].out;
    ret_size[0] = shape_own_axis(&shape)->out;
    return PARTITA_OK;
}

static const size_t MAX_PART = (size_t)1 << 40;

static enum partita_status check_options(const struct partita_options *options)
{
    const struct partita_log *log = &options->log;
    const struct partita_parts *parts = &options->parts;
    if (options->effort != PARTITA_ESTIMATE && options->effort != PARTITA_MEASURE)
        log_line(log, "options.effort = %d: neither PARTITA_ESTIMATE nor PARTITA_MEASURE",
                 (int)options->effort);
    else if (options->threads < 0 || options->threads > MAX_THREADS)
        log_line(log, "options.threads = %d: 0 to %d", options->threads, (int)MAX_THREADS);
    else if (!(options->error_budget >= 0))
        log_line(log, "options.error_budget = %g: not negative", options->error_budget);
    else if (!parts->taps != !parts->signal || (parts->in_time && !parts->taps) ||
             parts->taps > MAX_PART || parts->signal > MAX_PART)
        log_line(log, "options.parts = %zu, %zu: both or none, at most %zu", parts->taps,
                 parts->signal, MAX_PART);
    else if (!(options->sample_rate >= 0) || options->sample_rate > 1e12)
        log_line(log, "options.sample_rate = %g: frames a second, or 0", options->sample_rate);
    else if (options->directions & ~(unsigned)ALL_DIRECTIONS)
        log_line(log, "options.directions = %u: bits of enum partita_direction",
                 options->directions);
    else if (options->zero_mean)
        log_line(log, "options.zero_mean = true: of partita_correlate_normalised only");
    else if (!options->allocator.allocate != !options->allocator.release)
        log_line(log, "options.allocator: set both functions or none");
    else return PARTITA_OK;
    return PARTITA_ERR_ARG;
}

// Options that belong to the other kind of problem.
static enum partita_status check_kind(const struct partita_options *options, bool stream)
{
    const struct partita_log *log = &options->log;
    if (!stream && options->executor.run) log_line(log, "options.executor: of streams only");
    else if (!stream && options->sample_rate > 0)
        log_line(log, "options.sample_rate = %g: of streams only", options->sample_rate);
    else if (stream && options->workspace_limit)
        log_line(log, "options.workspace_limit = %zu: of bounded problems only",
                 options->workspace_limit);
    else if (stream && options->filter_uses)
        log_line(log, "options.filter_uses = %u: of bounded problems only", options->filter_uses);
    else if (stream && options->saved_limit)
        log_line(log, "options.saved_limit = %zu: of bounded problems only", options->saved_limit);
    else if (stream && options->parts.taps)
        log_line(log, "options.parts: of bounded problems only");
    else if (stream && options->directions & ~(unsigned)PARTITA_FORWARD)
        log_line(log, "options.directions = %u: streams run forward only", options->directions);
    else return PARTITA_OK;
    return PARTITA_ERR_ARG;
}

// Threads of the CPU for each call of a bounded problem: as many as asked for, or those from which
// the planner keeps as many as the work pays for.
static int bounded_threads(const struct device *device, const struct partita_options *options)
{
    if (options->threads) return thread_bound(options->threads);
    const int threads = thread_default();
    return device->max_threads && device->max_threads < threads ? device->max_threads : threads;
}

// One direction of a bounded problem. Gradients that were not asked for by name may be impossible:
// they stay NULL.
static enum partita_status plan_gradient(const struct partita_plan *plan,
                                         enum partita_direction direction,
                                         const struct partita_options *options,
                                         struct partita_plan **ret_gradient)
{
    struct partita_plan *gradient = mem_allocate(&plan->allocator, sizeof *gradient);
    if (!gradient) return PARTITA_ERR_NOMEM;
    *gradient = *plan;
    gradient->direction = direction;
    gradient->engine = NULL;
    gradient->estimates = NULL;
    gradient->state = NULL;
    gradient->micro_batch = NULL;
    gradient->threads =
        bounded_threads(plan->device, options); // not what forward's workspace left of them
    gradient->backward_data = gradient->backward_weight = NULL;
    if (!options->directions) gradient->log = (struct partita_log){0};
    const enum partita_status status = planner_choose(gradient, options);
    if (status == PARTITA_OK) *ret_gradient = gradient;
    else partita_plan_destroy(gradient);
    return status == PARTITA_ERR_UNSUPPORTED && !options->directions ? PARTITA_OK : status;
}

static enum partita_status plan_directions(struct partita_plan *plan,
                                           const struct partita_options *options)
{
    const struct shape *shape = &plan->shape;
    const unsigned possible = shape->stream || shape->complex_signal || shape->up.branches
                                  ? PARTITA_FORWARD
                                  : ALL_DIRECTIONS;
    // Training is what layers are for; a lone signal is convolved.
    unsigned wanted = options->directions ? options->directions : possible;
    if (shape->stream || (!options->directions && shape_lone(shape))) wanted = PARTITA_FORWARD;
    enum partita_status status = PARTITA_OK;
    if (wanted & ~possible)
        return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED,
                         "options.directions = %u: %s problems have no gradients", wanted,
                         shape->up.branches ? "resampling" : partita_type_name(shape->signal));
    if (wanted & PARTITA_FORWARD) status = planner_choose(plan, options);
    if (status == PARTITA_OK && wanted & PARTITA_BACKWARD_DATA)
        status = plan_gradient(plan, PARTITA_BACKWARD_DATA, options, &plan->backward_data);
    if (status == PARTITA_OK && wanted & PARTITA_BACKWARD_WEIGHT)
        status = plan_gradient(plan, PARTITA_BACKWARD_WEIGHT, options, &plan->backward_weight);
    plan->alone = options->saved_limit;
    const bool excluded = !plan->engine || !plan->backward_data || !plan->backward_weight ||
                          shape->half || options->workspace_limit || !plan->device->host;
    return status != PARTITA_OK || !plan->alone || excluded ? status : planner_share(plan, options);
}

// Its rates are measured if the options say so.
static enum partita_status open_device(const struct partita_options *options,
                                       const struct shape *shape, struct device **ret_device)
{
    *ret_device = &cpu_device;
    enum partita_status status = device_of_options(options, ret_device);
    if (status != PARTITA_OK) return status;
    const bool up = shape->up.branches;
    if ((up || shape->ghosts.boundary) && !(*ret_device)->host) {
        log_line(&options->log, "problem.%s: on the CPU only", up ? "up" : "boundary");
        status = PARTITA_ERR_UNSUPPORTED;
    } else if (options->effort == PARTITA_MEASURE && (*ret_device)->measure) {
        status = (*ret_device)->measure(*ret_device, &options->log);
    }
    if (status != PARTITA_OK) device_close(*ret_device);
    return status;
}

enum partita_status plan_create(const struct partita_problem *problem,
                                const struct partita_options *options, size_t streams,
                                struct partita_plan **ret_plan)
{
    struct shape shape;
    enum partita_status status = check_options(options);
    if (status == PARTITA_OK) status = problem_canonical(problem, &options->log, &shape);
    if (status == PARTITA_OK) status = check_kind(options, shape.stream);
    if (status != PARTITA_OK) return status;
    if (shape.complex_signal && shape.rank > 1)
        return log_error(&options->log, PARTITA_ERR_UNSUPPORTED,
                         "problem.signal = %s: complex problems have one axis, this has %d",
                         partita_type_name(shape.signal), shape.rank);
    struct device *device;
    status = open_device(options, &shape, &device);
    if (status != PARTITA_OK) return status;
    struct partita_plan *plan = mem_allocate(&options->allocator, sizeof *plan);
    if (!plan) {
        device_close(device);
        return PARTITA_ERR_NOMEM;
    }
    plan->device = device;
    plan->engines = device->engines;
    plan->shape = shape;
    plan->shape.streams = streams;
    plan->direction = PARTITA_FORWARD;
    plan->isa = cpu_detect();
    plan->kernels = kernels_select(plan->isa, shape.f64);
    plan->threads = shape.stream ? 1 : bounded_threads(device, options);
    plan->stream_threads = options->threads ? options->threads : 1;
    if (!options->executor.run) plan->stream_threads = thread_bound(plan->stream_threads);
    plan->executor = options->executor;
    plan->sample_rate = options->sample_rate;
    plan->measure = options->effort == PARTITA_MEASURE;
    plan->error_reach = options->error_reach;
    plan->allocator = options->allocator;
    plan->log = options->log;
    status = plan_directions(plan, options);
    if (status == PARTITA_OK) *ret_plan = plan;
    else partita_plan_destroy(plan);
    return status;
}

enum partita_status partita_plan_create_sized(const struct partita_problem *problem,
                                              size_t problem_bytes,
                                              const struct partita_options *options,
                                              size_t options_bytes, struct partita_plan **ret_plan)
{
    struct partita_options known;
    struct partita_problem known_problem;
    if (!options_read(&known, options, options_bytes)) return PARTITA_ERR_UNSUPPORTED;
    if (!arguments_given(known.log, problem, ret_plan)) return PARTITA_ERR_ARG;
    if (!sized_read(&known_problem, sizeof known_problem, problem, problem_bytes, &known.log,
                    "problem"))
        return PARTITA_ERR_UNSUPPORTED;
    return plan_create(&known_problem, &known, 0, ret_plan);
}

void partita_plan_destroy(struct partita_plan *plan)
{
    if (!plan) return;
    const struct partita_allocator allocator = plan->allocator;
    partita_plan_destroy(plan->backward_data);
    partita_plan_destroy(plan->backward_weight);
    if (plan->device->plan_end) plan->device->plan_end(plan);
    if (plan->engine) plan_destroy_state(plan);
    if (plan->direction == PARTITA_FORWARD) device_close(plan->device);
    mem_release(&allocator, plan->estimates);
    mem_release(&allocator, plan);
}

size_t partita_plan_explain(const struct partita_plan *plan, char *text, size_t size)
{
    struct text out = {text, size, 0};
    if (size) text[0] = 0;
    if (plan) explain_plan(plan, &out);
    return out.length;
}

size_t partita_plan_workspace(const struct partita_plan *plan, enum partita_direction direction)
{
    const struct partita_plan *planned = bounded_direction(plan, direction);
    return planned && !planned->shape.stream ? bounded_workspace(planned) : 0;
}

const char *partita_plan_engine(const struct partita_plan *plan, enum partita_direction direction)
{
    const struct partita_plan *planned = bounded_direction(plan, direction);
    return planned ? planned->engine->name : "";
}

size_t partita_plan_taps_count(const struct partita_plan *plan)
{
    return plan ? plan_taps_count(plan) : 0;
}

size_t partita_plan_latency(const struct partita_plan *plan)
{
    return plan ? plan->choice.latency : 0;
}

enum partita_status partita_plan_load_sized(const struct partita_plan *plan,
                                            struct partita_load *ret_load, size_t load_bytes)
{
    struct partita_load load;
    if (!arguments_given(log_of(plan), plan, ret_load)) return PARTITA_ERR_ARG;
    if (!plan->shape.stream)
        return log_error(&plan->log, PARTITA_ERR_STATE,
                         "plan: of a bounded problem, not of streams");
    plan->engine->stream.plan_load(plan, &load);
    sized_write(ret_load, load_bytes, &load, sizeof load);
    return PARTITA_OK;
}
