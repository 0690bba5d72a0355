// SPDX-License-Identifier: MIT
// Public functions of the store of measurements.
#include "planner/wisdom.h"

#include "core/arguments.h"

enum partita_status partita_wisdom_create(struct partita_wisdom **ret_wisdom)
{
    if (!arguments_given(log_default(), ret_wisdom)) return PARTITA_ERR_ARG;
    return wisdom_create(ret_wisdom);
}

void partita_wisdom_destroy(struct partita_wisdom *wisdom)
{
    wisdom_destroy(wisdom);
}

enum partita_status partita_wisdom_calibrate(struct partita_wisdom *wisdom)
{
    if (!arguments_given(log_default(), wisdom)) return PARTITA_ERR_ARG;
    return wisdom_calibrate(wisdom);
}

enum partita_status partita_wisdom_save(const struct partita_wisdom *wisdom, const char *path)
{
    if (!arguments_given(log_default(), wisdom, path)) return PARTITA_ERR_ARG;
    return wisdom_save(wisdom, path);
}

enum partita_status partita_wisdom_load(struct partita_wisdom *wisdom, const char *path)
{
    if (!arguments_given(log_default(), wisdom, path)) return PARTITA_ERR_ARG;
    return wisdom_load(wisdom, path);
}
