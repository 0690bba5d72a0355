// SPDX-License-Identifier: MIT
#include "compute_devices.h"

#include <partita/plan.h>
#include <stdio.h>

#include "base/json_values.h"
#include "options.h"

typedef void visit_fn(json_t *list, const char *name, const char *text, bool available);

static void visit_devices(visit_fn *visit, json_t *list)
{
    char name[32] = "cpu", text[256];
    int n = 0;
    for (; partita_device_describe(name, text, sizeof text) == PARTITA_OK; n++) {
        visit(list, name, text, true);
        snprintf(name, sizeof name, "cuda:%d", n);
    }
    if (n == 1) visit(list, "cuda", text, false); // why there is none
}

static void print_device(json_t *list, const char *name, const char *text, bool available)
{
    (void)list, (void)available;
    printf("%-8s %s\n", name, text);
}

static void append_device(json_t *list, const char *name, const char *text, bool available)
{
    json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s}", "kind", "compute", "name", name,
                                          "available", available, "description", text));
}

void compute_devices_print(void)
{
    visit_devices(print_device, NULL);
}

bool compute_devices_print_json(json_t *list)
{
    visit_devices(append_device, list);
    json_t *j = json_report("partita-devices/1", command_rows[COMMAND_DEVICES].name);
    json_object_set_new(j, "devices", list);
    return json_print(j, stdout);
}
