// SPDX-License-Identifier: MIT
// `partita devices`: lists the compute devices and the audio devices.
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_values.h"
#include "cli/commands.h"
#include "cli/compute_devices.h"
#include "cli/report.h"
#include "live/device/device.h"
#include "live/device/timed_call.h"

static const double CLOSE_SECONDS = 2;

static void print_device_table(void)
{
    int name = 4, api = 3;
    for (size_t i = 0; i < device_count(); i++) {
        struct audio_device d = device_at(i);
        if ((int)strlen(d.name) > name) name = (int)strlen(d.name);
        if ((int)strlen(d.api) > api) api = (int)strlen(d.api);
    }
    printf("\nindex  %-*s  %-*s  %4s %4s %7s  %s\n", name, "name", api, "API", "in", "out", "rate",
           "latency in / out, ms");
    for (size_t i = 0; i < device_count(); i++) {
        struct audio_device d = device_at(i);
        const char *mark = d.is_default_in || d.is_default_out ? "*" : " ";
        printf("%s%4d  %-*s  %-*s  %4zu %4zu %7g  ", mark, d.index, name, d.name, api, d.api,
               d.in_channels, d.out_channels, d.rate);
        if (d.in_channels) printf("%.1f-%.1f", d.low_in * 1e3, d.high_in * 1e3);
        else printf("-");
        if (d.out_channels) printf(" / %.1f-%.1f\n", d.low_out * 1e3, d.high_out * 1e3);
        else printf(" / -\n");
    }
    printf("* default of its API; without --device the default of the first API is used\n");
}

static json_t *latency_range(size_t channels, double low, double high)
{
    return channels ? json_pack("{s:f, s:f}", "low", low, "high", high) : json_null();
}

static bool print_devices_json(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < device_count(); i++) {
        struct audio_device d = device_at(i);
        json_t *j =
            json_pack("{s:s, s:i, s:o, s:s, s:I, s:I, s:f, s:o, s:o, s:b, s:b}", "kind", "audio",
                      "index", d.index, "name", json_text(d.name), "api", d.api, "in_channels",
                      (json_int_t)d.in_channels, "out_channels", (json_int_t)d.out_channels, "rate",
                      d.rate, "in_latency", latency_range(d.in_channels, d.low_in, d.high_in),
                      "out_latency", latency_range(d.out_channels, d.low_out, d.high_out),
                      "default_in", d.is_default_in, "default_out", d.is_default_out);
        json_array_append_new(list, j);
    }
    return compute_devices_print(list);
}

static int list_devices(const struct settings *s, struct fault *fault)
{
    bool good = true;
    if (!device_initialize(s, fault)) return EXIT_FAILED;
    if (s->json) good = print_devices_json();
    else if (device_count()) print_device_table();
    else report_warning(s, "no audio device: ALSA has none, and JACK needs a running server");
    device_close(NULL, true, CLOSE_SECONDS);
    return good ? EXIT_DONE : EXIT_FAILED;
}

int devices_main(const struct settings *settings, struct fault *fault)
{
    if (!settings->json) compute_devices_print(NULL);
    const int status = list_devices(settings, fault);
    if (timed_call_hangs()) _exit(report_end(COMMAND_DEVICES, fault, status));
    return status;
}
