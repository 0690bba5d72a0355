// SPDX-License-Identifier: MIT
#include "fault.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 0))) static bool set(struct fault *fault, const char *format,
                                                      va_list arguments)
{
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    for (unsigned char *c = (unsigned char *)fault->text; *c; c++)
        if (*c < 0x20 || *c == 0x7f) *c = '?';
    return false;
}

bool fault_set(struct fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fault->usage = set(fault, format, arguments);
    va_end(arguments);
    return false;
}

bool fault_usage(struct fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fault->usage = !set(fault, format, arguments);
    va_end(arguments);
    return false;
}
