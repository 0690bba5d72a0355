// SPDX-License-Identifier: MIT
// Stands in for ../interpose.c where a sanitizer has definitions of those functions itself.
#include "support/interpose.h"

void watch_this_thread(bool watched)
{
    (void)watched;
}
