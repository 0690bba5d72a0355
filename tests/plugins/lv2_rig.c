// SPDX-License-Identifier: MIT
// See lv2_rig.h.
#include "lv2_rig.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/audio.h"

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static char folder[] = "/tmp/partita-test-lv2-XXXXXX";

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *rig_path(const char *name, char path[HOST_PATH])
{
    static bool made;
    if (!made) {
        assert_non_null(mkdtemp(folder));
        atexit(remove_folder);
        made = true;
    }
    snprintf(path, HOST_PATH, "%s/%s", folder, name);
    return path;
}

void rig_write_taps(const char *name, const float *taps, size_t channels, size_t n, uint32_t rate)
{
    const struct audio_info info = {.container = CONTAINER_WAV,
                                    .encoding = {.kind = ENCODING_FLOAT, .bytes = 4},
                                    .channels = channels,
                                    .rate = rate,
                                    .frames = n};
    struct audio_writer *writer;
    struct sample_counts counts;
    struct fault fault;
    char path[HOST_PATH];
    float *frames = malloc(n * channels * sizeof *frames);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < channels; c++) frames[i * channels + c] = taps[c * n + i];
    assert_true(audio_create(&writer, rig_path(name, path), &info, &fault));
    assert_true(audio_write(writer, PARTITA_F32, frames, n, &fault));
    assert_true(audio_finish(writer, false, &counts, &fault));
    free(frames);
}

void rig_write_random(const char *name, size_t n, struct random *random)
{
    float *taps = malloc(n * sizeof *taps);
    random_samples(random, PARTITA_F32, taps, n);
    for (size_t i = 0; i < n; i++) taps[i] *= sqrtf(3 / (float)n);
    rig_write_taps(name, taps, 1, n, RIG_RATE);
    free(taps);
}

void rig_write_state(const char *name, const char *uri, const char *file)
{
    char path[HOST_PATH], at[HOST_PATH + 16], of_file[HOST_PATH];
    mkdir(rig_path(name, path), 0777);
    snprintf(at, sizeof at, "%s/state.ttl", path);
    FILE *state = fopen(at, "w");
    assert_non_null(state);
    fprintf(state,
            "@prefix atom: <http://lv2plug.in/ns/ext/atom#> .\n"
            "@prefix lv2: <http://lv2plug.in/ns/lv2core#> .\n"
            "@prefix pset: <http://lv2plug.in/ns/ext/presets#> .\n"
            "@prefix state: <http://lv2plug.in/ns/ext/state#> .\n"
            "<> a pset:Preset ; lv2:appliesTo <%s> ;\n"
            "   state:state [ <urn:partita:lv2:impulse-response> \"%s\"^^atom:Path ] .\n",
            uri, rig_path(file, of_file));
    fclose(state);
}

void rig_signal_open(struct rig_signal *signal, struct random *random)
{
    for (size_t c = 0; c < MAX_PORTS; c++) {
        signal->x[c] = malloc(RIG_FRAMES * sizeof(float));
        signal->y[c] = calloc(RIG_FRAMES, sizeof(float));
        random_samples(random, PARTITA_F32, signal->x[c], RIG_FRAMES);
    }
}

void rig_signal_close(struct rig_signal *signal)
{
    for (size_t c = 0; c < MAX_PORTS; c++) {
        free(signal->x[c]);
        free(signal->y[c]);
    }
}

void rig_run(struct host *host, struct rig_signal *signal, size_t first, size_t end, bool work,
             struct random *random)
{
    float *x[MAX_PORTS], *y[MAX_PORTS];
    for (size_t at = first, n; at < end; at += n) {
        n = random_below(random, 8) ? random_below(random, 700) : random_below(random, 3);
        if (n > end - at) n = end - at;
        for (size_t c = 0; c < MAX_PORTS; c++) {
            x[c] = signal->x[c] + at;
            y[c] = signal->y[c] + at;
        }
        host_run(host, y, x, (uint32_t)n);
        if (work) host_work(host);
    }
}

void rig_run_alone(struct rig_signal *signal, const char *file, size_t first, struct random *random)
{
    const struct host_request request = {.uri = "urn:partita:lv2:mono"};
    struct host *host = host_open(&request);
    char path[HOST_PATH];
    rig_write_state("alone", request.uri, file);
    host_restore(host, rig_path("alone", path));
    host_activate(host);
    memset(signal->x[0], 0, first * sizeof(float));
    rig_run(host, signal, 0, RIG_FRAMES, false, random);
    host_close(host);
}
