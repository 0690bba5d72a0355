// SPDX-License-Identifier: MIT
#include "base/scalar.h"
#include "base/thread.h"
#include "bounded.h"
#include "core/storage.h"

// A call. Axes of x and of the extended x are those of shape_axis. Step i is the bytes from one
// position of axis i - 1 to the next, that of the first axis a plane; behind the last is a unit:
// all samples of a position that are adjacent.
struct extension {
    const struct partita_plan *plan;
    struct axis given[PARTITA_MAX_RANK], axis[PARTITA_MAX_RANK];
    size_t given_step[PARTITA_MAX_RANK + 1], step[PARTITA_MAX_RANK + 1];
    char *extended, *x;
    char value[sizeof(double)]; // of constant ghost cells
};

// The sample of an axis of x that sample `at` copies, both counted from the first one of x; -1:
// none, it is constant.
static ptrdiff_t ghost_source(enum partita_boundary boundary, ptrdiff_t size, ptrdiff_t at)
{
    const ptrdiff_t repeated = boundary == PARTITA_BOUNDARY_SYMMETRIC;
    if (at >= 0 && at < size) return at;
    if (boundary == PARTITA_BOUNDARY_CONSTANT) return -1;
    if (boundary == PARTITA_BOUNDARY_EDGE) return at < 0 ? 0 : size - 1;
    if (boundary == PARTITA_BOUNDARY_WRAP) return at < 0 ? at + size : at - size;
    return at < 0 ? -at - repeated : 2 * (size - 1) - at + repeated;
}

// Adjacent samples; x is NULL if they are constant.
static void move_adjacent(const struct extension *extension, char *extended, char *x, size_t bytes)
{
    const struct partita_plan *plan = extension->plan;
    const size_t sample = plan->shape.sample_bytes;
    const bool data = plan->direction == PARTITA_BACKWARD_DATA;
    if (x && data) storage_add(plan, x, extended, bytes / sample);
    else if (x && bytes == sizeof(float)) memcpy(extended, x, sizeof(float)); // without a call
    else if (x) memcpy(extended, x, bytes);
    for (size_t i = 0; !x && !data && i < bytes; i += sample)
        memcpy(extended + i, extension->value, sample);
}

static void move_axis(const struct extension *extension, int i, char *extended, char *x)
{
    const struct axis *axis = &extension->given[i];
    const size_t n = extension->axis[i].size, step = extension->step[i + 1];
    for (size_t k = 0, moved; k < n; k += moved) {
        const ptrdiff_t size = (ptrdiff_t)axis->size, at = axis->begin + (ptrdiff_t)k;
        const ptrdiff_t source = ghost_source(extension->plan->shape.ghosts.boundary, size, at);
        char *from = source < 0 ? NULL : x + (size_t)source * extension->given_step[i + 1];
        assert(source < size);
        moved = 1;
        if (from && i + 1 < PARTITA_MAX_RANK) {
            move_axis(extension, i + 1, extended + k * step, from);
            continue;
        }
        if (from && source == at) moved = size_min((size_t)(size - at), n - k);
        move_adjacent(extension, extended + k * step, from, moved * step);
    }
}

static void move_plane(void *context, size_t task, int worker)
{
    const struct extension *extension = context;
    char *x = extension->x + task * extension->given_step[0];
    (void)worker;
    if (extension->plan->direction == PARTITA_BACKWARD_DATA) memset(x, 0, extension->given_step[0]);
    move_axis(extension, 0, extension->extended + task * extension->step[0], x);
}

void boundary_move(const struct partita_plan *plan, void *extended, void *x)
{
    const struct shape *shape = &plan->shape;
    const size_t channels = shape->channels_last ? shape->in_channels : 1;
    const size_t unit = channels * shape->sample_bytes;
    struct extension extension = {.plan = plan,
                                  .given_step[PARTITA_MAX_RANK] = unit,
                                  .step[PARTITA_MAX_RANK] = unit,
                                  .extended = extended,
                                  .x = x};
    assert(shape->ghosts.boundary && !shape->stream);
    for (int i = PARTITA_MAX_RANK - 1; i >= 0; i--) {
        const int k = (i + shape->rank) % PARTITA_MAX_RANK;
        extension.given[i] = shape->ghosts.axis[k], extension.axis[i] = shape->axis[k];
        extension.given_step[i] = extension.given_step[i + 1] * extension.given[i].size;
        extension.step[i] = extension.step[i + 1] * extension.axis[i].size;
    }
    scalar_put(shape->f64, extension.value, 0, shape->ghosts.value);
    if (shape->half) plan_narrow(plan)(extension.value, &(float){(float)shape->ghosts.value}, 1);
    thread_loop(plan->threads, shape->batch * (shape->in_channels / channels), move_plane,
                &extension);
}
