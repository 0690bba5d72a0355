// SPDX-License-Identifier: MIT
#include "compute_devices.h"

#include <partita/plan.h>
#include <stdio.h>

#include "base/json_values.h"
#include "options.h"

static void add(json_t *list, const char *name, const char *text, bool available)
{
    if (!list) printf("%-8s %s\n", name, text);
    else
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s}", "kind", "compute", "name",
                                              name, "available", available, "description", text));
}

bool compute_devices_print(json_t *list)
{
    char name[32] = "cpu", text[256];
    int n = 0;
    for (; partita_device_describe(name, text, sizeof text) == PARTITA_OK; n++) {
        add(list, name, text, true);
        snprintf(name, sizeof name, "cuda:%d", n);
    }
    if (n == 1) add(list, "cuda", text, false); // why there is none
    if (!list) return true;
    json_t *j = json_report("partita-devices/1", command_rows[COMMAND_DEVICES].name);
    json_object_set_new(j, "devices", list);
    return json_print(j, stdout);
}
