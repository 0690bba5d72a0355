// SPDX-License-Identifier: MIT
#include "rows.h"

#include <math.h>

static const float LEAD_THRESHOLD = 0.01f;

float rows_peak(const struct rows *rows)
{
    float peak = 0;
    for (size_t i = 0; i < rows->n * rows->length; i++) peak = fmaxf(peak, fabsf(rows->samples[i]));
    return peak;
}

size_t rows_first_above(const struct rows *rows, float level, size_t end)
{
    for (size_t r = 0; r < rows->n; r++)
        for (size_t i = 0; i < end; i++)
            if (fabsf(rows->samples[r * rows->length + i]) >= level) end = i;
    return end;
}

size_t rows_omitted_lead(const struct rows *rows, size_t lead)
{
    return rows_first_above(rows, LEAD_THRESHOLD * rows_peak(rows), lead);
}
