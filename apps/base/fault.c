// SPDX-License-Identifier: MIT
#include "fault.h"

#include <stdarg.h>
#include <stdio.h>

bool fault_set(struct fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    for (unsigned char *c = (unsigned char *)fault->text; *c; c++)
        if (*c < 0x20 || *c == 0x7f) *c = '?';
    return fault->usage = false;
}
