// SPDX-License-Identifier: MIT
#include "bounded.h"

enum partita_status bounded_check(const struct partita_plan *plan, const struct partita_plan *of,
                                  const void *to, const void *from, const void *workspace)
{
    const size_t alignment = shape_alignment(&plan->shape);
    if (plan->shape.stream) return PARTITA_ERR_STATE;
    if (!of) return PARTITA_ERR_UNSUPPORTED;
    if ((uintptr_t)to % alignment || (uintptr_t)from % alignment ||
        (uintptr_t)workspace % MEM_ALIGN)
        return PARTITA_ERR_ARG;
    return PARTITA_OK;
}

void *bounded_workspace(const struct partita_plan *of, void *workspace, void **ret_own)
{
    *ret_own = workspace ? NULL : mem_reserve(&of->allocator, plan_workspace(of));
    return workspace ? workspace : *ret_own;
}
