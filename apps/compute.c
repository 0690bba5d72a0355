// SPDX-License-Identifier: MIT
#include "compute.h"

#include <partita/device.h>
#include <stdio.h>

void devices_to_compute(void)
{
    char name[32] = "cpu", text[256];
    int n = 0;
    for (; partita_device_describe(name, text, sizeof text) == PARTITA_OK; n++) {
        printf("%-8s %s\n", name, text);
        snprintf(name, sizeof name, "cuda:%d", n);
    }
    if (n == 1) printf("%-8s %s\n", "cuda", text); // why there is none
    printf("\n");
}
