// SPDX-License-Identifier: MIT
#include "storage.h"

#include "base/sizes.h"
#include "base/thread.h"

struct conversion {
    convert_fn *convert;
    char *to;
    const char *from;
    size_t n, bytes[2]; // elements; of one of `to` and of `from`
};

enum { CONVERTED = 1 << 15 }; // elements of a task

static void convert_task(void *context, size_t task, int worker)
{
    const struct conversion *all = context;
    const size_t first = task * CONVERTED;
    (void)worker;
    all->convert(all->to + first * all->bytes[0], all->from + first * all->bytes[1],
                 size_min(all->n - first, CONVERTED));
}

void *storage_convert(const struct partita_plan *plan, void *to, const void *from, size_t n,
                      bool widen)
{
    const size_t half = sizeof(uint16_t), wide = sizeof(float);
    struct conversion all = {plan_narrow(plan), to, from, n, {half, wide}};
    if (widen) all = (struct conversion){plan_widen(plan), to, from, n, {wide, half}};
    assert(plan->shape.half);
    thread_loop(plan->threads, ceil_div(n, CONVERTED), convert_task, &all);
    return to;
}

void storage_add(const struct partita_plan *plan, void *to, const void *from, size_t n)
{
    enum { WIDENED = 1 << 10 };
    float sums[WIDENED], wide[WIDENED];
    if (!plan->shape.half) plan->kernels->add(to, from, n);
    for (size_t i = 0; plan->shape.half && i < n; i += WIDENED) {
        const size_t part = size_min(n - i, WIDENED);
        plan_widen(plan)(sums, (uint16_t *)to + i, part);
        plan_widen(plan)(wide, (const uint16_t *)from + i, part);
        plan->kernels->add(sums, wide, part);
        plan_narrow(plan)((uint16_t *)to + i, sums, part);
    }
}
