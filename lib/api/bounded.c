// SPDX-License-Identifier: MIT
#include "bounded.h"

const struct partita_plan *bounded_direction(const struct partita_plan *plan,
                                             enum partita_direction direction)
{
    if (!plan) return NULL;
    if (direction == PARTITA_BACKWARD_DATA) return plan->backward_data;
    if (direction == PARTITA_BACKWARD_WEIGHT) return plan->backward_weight;
    return plan->engine && direction == PARTITA_FORWARD ? plan : NULL;
}

enum partita_status bounded_check(const struct partita_plan *plan, const struct partita_plan *of,
                                  const struct operands *operands, const void *workspace)
{
    const size_t alignment = shape_alignment(&plan->shape);
    const void *second = operands->from_taps ? NULL : operands->from[1];
    if (plan->shape.stream) return PARTITA_ERR_STATE;
    if (!of) return PARTITA_ERR_UNSUPPORTED;
    if ((uintptr_t)operands->to % alignment || (uintptr_t)operands->from[0] % alignment ||
        (uintptr_t)second % alignment || (uintptr_t)workspace % MEM_ALIGN)
        return PARTITA_ERR_ARG;
    return PARTITA_OK;
}

enum partita_status bounded_run(const struct partita_plan *plan, const struct partita_plan *of,
                                const struct partita_filter *filter,
                                const struct operands *operands, void *workspace)
{
    enum partita_status status = bounded_check(plan, of, operands, workspace);
    if (status != PARTITA_OK) return status;
    if (of->device) return of->device->run(of, filter, operands, workspace);
    void *own = workspace ? NULL : mem_reserve(&of->allocator, plan_workspace(of));
    if (!workspace && !own) return PARTITA_ERR_NOMEM;
    status = of->engine->run(of, filter, operands, workspace ? workspace : own);
    mem_release(&of->allocator, own);
    return status;
}
