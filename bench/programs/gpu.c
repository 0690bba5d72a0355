// SPDX-License-Identifier: MIT
// Layers, signals and streams on a CUDA device. Arrays of layers and signals are resident there;
// the peers are cuFFT, a separable filter in two passes and stencils on the same device, and for
// streams the CPU. An item is a multiply-add of a layer's direct sums, or a sample.
//   --tiny       sizes for a stand-in for a device; times mean nothing
//   --describe   prints the cases as CSV and runs nothing
//   --device     prints the device, or says what is missing, in one line and runs nothing
//   --engines    prints our engines, and whether they are there, as CSV and runs nothing
//   --rates      measures the device's rates and prints them in one line, as plans show them
#include "gpu/cases.h"
#include "gpu/resident.h"
#include "ours/ours.h"
#include "peers/peers.h"

#include <stdlib.h>
#include <string.h>

#define DEVICE "cuda:0"

static bool ours_device(struct contender *contender, const struct workload *w)
{
    return w->block > 0 ? ours_stream_whole(contender, w) : ours_resident(contender, w);
}

// The row of a stream with spectra of 16 bits stands beside the one without a budget.
static bool ours_device_i16(struct contender *contender, const struct workload *w)
{
    return w->block > 0 && ours_stream_whole_i16(contender, w);
}

// The cost model of the CPU is measured only for cases that run on the CPU.
static bool ours_cpu(struct contender *contender, const struct workload *w)
{
    static bool calibrated;
    if (w->block == 0) return false;
    if (!calibrated) ours_calibrate();
    calibrated = true;
    return ours_stream_whole(contender, w);
}

// Each of these engines has rows or is reported as missing. Other engines of the device's module
// follow.
static const char *const expected[] = {
    "cuda/direct:plain", "cuda/direct:halo", "cuda/separable",     "cuda/winograd",
    "cuda/tiles:gauss",  "cuda/tiles:fused", "cuda/tiles:complex", "cuda/overlap-save",
    "cuda/overlap-add",  "cuda/blocks",      "cuda/partitioned",
};

static const struct contender peers[] = {
    {.name = "auto", .device = DEVICE, .threads = 1, .open = ours_device},
    {.name = "cuda/partitioned-16-bit",
     .engine = "cuda/partitioned",
     .device = DEVICE,
     .threads = 1,
     .error_budget = 1e-4,
     .open = ours_device_i16},
    {.name = "cpu/partitioned", .engine = "cpu/partitioned", .threads = 1, .open = ours_cpu},
    {.name = "cufft-complex", .threads = 1, .open = peer_cufft_complex},
    {.name = "cufft-real", .threads = 1, .open = peer_cufft_real},
    {.name = "cufft-blocks", .threads = 1, .open = peer_cufft_blocks},
    {.name = "two-passes", .threads = 1, .open = peer_two_passes},
    {.name = "ladder-memory", .threads = 1, .open = peer_two_passes},
    {.name = "ladder-cache", .threads = 1, .open = peer_two_passes},
    {.name = "ladder-input-tile", .threads = 1, .open = peer_two_passes},
    {.name = "ladder-output-tile", .threads = 1, .open = peer_two_passes},
};

enum {
    N_EXPECTED = sizeof expected / sizeof *expected,
    N_PEERS = sizeof peers / sizeof *peers,
    MAX_ENGINES = 32
};

struct engine_name {
    char name[40];
    const char *state; // "there", "not there" or "no device"
};

// The explanation of a plan of the device; NULL without a device.
static const char *explain_small(enum partita_effort effort)
{
    static char text[1 << 14];
    const struct partita_problem problem = {.kernel = {3}, .size = {50}};
    const struct partita_options options = {.device = DEVICE, .effort = effort};
    struct partita_plan *plan;
    if (partita_plan_create(&problem, &options, &plan) != PARTITA_OK) return NULL;
    partita_plan_explain(plan, text, sizeof text);
    partita_plan_destroy(plan);
    return text;
}

// The device's engines, which a plan lists as "  cuda/NAME ..." each. Returns how many; 0 without a
// device.
static size_t find_engines(struct engine_name ret[MAX_ENGINES])
{
    const char *text = explain_small(PARTITA_ESTIMATE);
    size_t n = 0;
    for (const char *line = text; line != NULL && n < MAX_ENGINES; line = strchr(line + 1, '\n'))
        // A plan names the variant that it would choose: NAME:VARIANT.
        if (sscanf(line, " %39[^: ]", ret[n].name) == 1 && strncmp(ret[n].name, "cuda/", 5) == 0)
            ret[n++].state = "there";
    return n;
}

// The expected engines, then the rest of those that are there.
static size_t list_engines(struct engine_name ret[N_EXPECTED + MAX_ENGINES])
{
    struct engine_name found[MAX_ENGINES];
    const size_t n_found = find_engines(found);
    size_t n = 0;
    for (; n < N_EXPECTED; n++) {
        snprintf(ret[n].name, sizeof ret[n].name, "%s", expected[n]);
        ret[n].state = n_found > 0 ? "not there" : "no device";
    }
    for (size_t i = 0; i < n_found; i++) {
        const size_t length = strlen(found[i].name);
        bool is_expected = false;
        for (size_t k = 0; k < N_EXPECTED; k++) {
            if (strncmp(ret[k].name, found[i].name, length) != 0) continue;
            if (ret[k].name[length] != '\0' && ret[k].name[length] != ':') continue;
            ret[k].state = found[i].state;
            is_expected = true;
        }
        if (!is_expected) ret[n++] = found[i];
    }
    return n;
}

static void print_engines(const struct engine_name *engines, size_t n)
{
    printf("engine,state\n");
    for (size_t i = 0; i < n; i++) printf("%s,%s\n", engines[i].name, engines[i].state);
}

static int print_rates(void)
{
    const char *text = explain_small(PARTITA_MEASURE);
    const char *line = text ? strstr(text, "\nrates: ") : NULL;
    if (line) printf("%.*s\n", (int)strcspn(line + 1, "\n"), line + 1);
    return line ? 0 : 1;
}

// The line of `partita devices`, for machines without the libraries of that program.
static int print_device(void)
{
    char text[256];
    const enum partita_status status = partita_device_describe(DEVICE, text, sizeof text);
    printf("%-8s %s\n", status == PARTITA_OK ? DEVICE : "cuda", text);
    return status == PARTITA_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--device") == 0) return print_device();
    if (argc == 2 && strcmp(argv[1], "--rates") == 0) return print_rates();
    static struct engine_name engines[N_EXPECTED + MAX_ENGINES];
    static struct contender contenders[N_EXPECTED + MAX_ENGINES + N_PEERS];
    const size_t n_engines = list_engines(engines);
    for (size_t i = 0; i < n_engines; i++)
        contenders[i] = (struct contender){.name = engines[i].name,
                                           .engine = engines[i].name,
                                           .device = DEVICE,
                                           .threads = 1,
                                           .open = ours_device};
    memcpy(contenders + n_engines, peers, sizeof peers);
    const bool tiny = argc > 1 && strcmp(argv[1], "--tiny") == 0;
    const char *first = argc > 1 + tiny ? argv[1 + tiny] : "";
    struct suite suite = {.program = "bench_gpu",
                          .contenders = contenders,
                          .n_contenders = n_engines + N_PEERS,
                          .per_call = true,
                          .raw = true,
                          .repetitions = 7,
                          .max_pass = 1,
                          .warm_up = tiny ? 0 : 0.5,
                          .thread_counts = {1, 0}};
    suite.cases = gpu_cases(tiny, &suite.n_cases);
    if (strcmp(first, "--describe") == 0) gpu_cases_print(suite.cases, suite.n_cases);
    else if (strcmp(first, "--engines") == 0) print_engines(engines, n_engines);
    else return bench_main(argc - tiny, argv + tiny, &suite);
    return 0;
}
