// SPDX-License-Identifier: MIT
// See filter_set.h. All filters have one plan: as long as the longest, with common channels. A
// filter is created from the paths that it has; absent paths cost nothing.
#include "filter_set.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/engine_name.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "cli/wisdom_file.h"
#include "live/chain/denormals.h"
#include "response.h"

enum { MAX_RETIRED = 8, NO_SLOT = -1 };

struct filter_slot {
    struct filter_info info;
    struct partita_filter *filter;
};

struct filter_set {
    const struct settings *settings;
    struct response_shape shape; // which the filters must match
    size_t kernel;
    bool diagonal;
    struct partita_wisdom *wisdom;
    struct partita_plan *plan;
    struct partita_stream *stream;
    struct filter_slot slots[MAX_WORDS];
    int n, current;
    size_t fade;
    struct fault log; // the library's last line
    // Replaced filters that the stream may still use.
    struct partita_filter *retired[MAX_RETIRED];
    int n_retired;
    // The thread that reads a file again; its results are valid when `done` is set.
    pthread_t loader;
    bool loading;
    atomic_bool done;
    int loading_slot;
    int wanted; // slot to read again next, or NO_SLOT
    bool loaded;
    struct filter_slot fresh;
    struct fault load_fault;
};

static bool filter_set_fail(const struct filter_set *set, enum partita_status status,
                            struct fault *fault)
{
    return option_words_of_status(fault, COMMAND_LIVE, status, &set->log);
}

static bool create_plan(struct filter_set *set, struct fault *fault)
{
    const struct settings *s = set->settings;
    char engine[ENGINE_NAME_SIZE];
    struct partita_problem problem = {
        .in_channels = set->shape.in_channels,
        .out_channels = set->shape.out_channels,
        .groups = set->diagonal ? set->shape.in_channels : 1,
        .kernel = {set->kernel},
        .size = {PARTITA_UNBOUNDED},
        .block = s->block ? (size_t)s->block : 256,
        .latency = 0,
    };
    struct partita_options options = {
        .engine = engine_name(s->engine, engine),
        .threads = (int)s->threads,
        .wisdom = set->wisdom,
        .log = {option_words_log, &set->log},
    };
    enum partita_status status = partita_plan_create(&problem, &options, &set->plan);
    return !status || filter_set_fail(set, status, fault);
}

static bool create_filter(struct filter_set *set, struct filter_slot *ret,
                          const struct response *response, struct fault *fault)
{
    const struct response *r = response;
    size_t max_paths = set->shape.in_channels * set->shape.out_channels, n = 0;
    if (r->length > set->kernel)
        return fault_set(fault, "%s: %zu taps, more than the %zu that are reserved (--max-taps)",
                         r->path, r->length, set->kernel);
    if (set->diagonal && !r->diagonal)
        return fault_set(fault,
                         "%s: %zu channels; the run started with filters from each input to the "
                         "output of the same number",
                         r->path, r->channels);
    struct partita_path *paths = calloc(max_paths, sizeof *paths);
    if (!paths) return fault_set(fault, "%s: out of memory", r->path);
    for (size_t out = 0; out < set->shape.out_channels; out++) {
        for (size_t in = 0; in < set->shape.in_channels; in++) {
            const float *taps = response_taps(r, out, in);
            if (taps)
                paths[n++] =
                    (struct partita_path){.out = out, .in = in, .length = r->length, .taps = taps};
        }
    }
    enum partita_status status = partita_filter_create_from(
        set->plan, &(struct partita_taps){.paths = paths, .path_count = n}, &ret->filter);
    free(paths);
    ret->info = (struct filter_info){.path = r->path, .taps = r->length, .onset = r->onset};
    return !status || fault_set(fault, "%s: %s", r->path, partita_status_string(status));
}

// Loads all files before planning, since the plan depends on all of them.
static bool load_responses(struct filter_set *set, struct response *responses,
                           const struct filter_set_request *request, struct fault *fault)
{
    const struct word_list *irs = &set->settings->irs;
    if (!response_choose_shape(&set->shape, set->settings, irs->words[0], request, fault))
        return false;
    set->diagonal = true;
    set->kernel = set->settings->max_taps > 0 ? (size_t)set->settings->max_taps : 1;
    for (int i = 0; i < irs->n; i++) {
        if (!response_load(&responses[i], set->settings, irs->words[i], &set->shape, fault))
            return false;
        if (*responses[i].shortfall) report_warning(set->settings, "%s", responses[i].shortfall);
        if (responses[i].length > set->kernel) set->kernel = responses[i].length;
        set->diagonal = set->diagonal && responses[i].diagonal;
    }
    if (!create_plan(set, fault)) return false;
    for (set->n = 0; set->n < irs->n; set->n++)
        if (!create_filter(set, &set->slots[set->n], &responses[set->n], fault)) return false;
    return true;
}

bool filter_set_open(struct filter_set **ret_set, const struct settings *settings,
                     const struct filter_set_request *request, struct fault *fault)
{
    struct filter_set *set = calloc(1, sizeof *set);
    struct response *responses = calloc((size_t)settings->irs.n, sizeof *responses);
    bool good = (set && responses) || fault_set(fault, "out of memory");
    if (good) {
        set->settings = settings;
        set->wanted = NO_SLOT;
        set->fade = (size_t)lrint(settings->fade * 1e-3 * request->rate);
        set->wisdom = wisdom_file_load();
        good = load_responses(set, responses, request, fault);
    }
    if (good) {
        uint64_t mode = denormals_off(); // worker threads are started here and inherit this mode
        enum partita_status status =
            partita_stream_open(set->plan, set->slots[0].filter, &set->stream);
        denormals_restore(mode);
        good = !status || filter_set_fail(set, status, fault);
    }
    for (int i = 0; responses && i < settings->irs.n; i++) response_release(&responses[i]);
    free(responses);
    if (good) *ret_set = set;
    else filter_set_close(set);
    return good;
}

void filter_set_close(struct filter_set *set)
{
    if (!set) return;
    if (set->loading) {
        pthread_join(set->loader, NULL);
        partita_filter_destroy(set->fresh.filter);
    }
    partita_stream_close(set->stream);
    for (int i = 0; i < set->n_retired; i++) partita_filter_destroy(set->retired[i]);
    for (int i = 0; i < MAX_WORDS; i++) partita_filter_destroy(set->slots[i].filter);
    partita_plan_destroy(set->plan);
    partita_wisdom_destroy(set->wisdom);
    free(set);
}

struct partita_stream *filter_set_stream(struct filter_set *set)
{
    return set->stream;
}

const struct partita_plan *filter_set_plan(const struct filter_set *set)
{
    return set->plan;
}

size_t filter_set_in_channels(const struct filter_set *set)
{
    return set->shape.in_channels;
}

size_t filter_set_out_channels(const struct filter_set *set)
{
    return set->shape.out_channels;
}

int filter_set_size(const struct filter_set *set)
{
    return set->n;
}

int filter_set_current(const struct filter_set *set)
{
    return set->current;
}

struct filter_info filter_set_info(const struct filter_set *set, int i)
{
    return set->slots[i].info;
}

void filter_set_select(struct filter_set *set, int i)
{
    set->current = i;
    partita_stream_swap(set->stream, set->slots[i].filter, set->fade);
}

// A truncated file is probably still being written. At the start it is accepted with a warning;
// here the old filter is better.
static void *reload_thread(void *argument)
{
    struct filter_set *set = argument;
    struct response response = {0};
    set->fresh = (struct filter_slot){0};
    set->loaded = response_load(&response, set->settings, set->slots[set->loading_slot].info.path,
                                &set->shape, &set->load_fault) &&
                  (!*response.shortfall || fault_set(&set->load_fault, "%s", response.shortfall)) &&
                  create_filter(set, &set->fresh, &response, &set->load_fault);
    response_release(&response);
    atomic_store_explicit(&set->done, true, memory_order_release);
    return NULL;
}

// Starts the thread for the wanted slot, unless it is busy.
static void start_reload(struct filter_set *set)
{
    if (set->wanted == NO_SLOT || set->loading || set->n_retired == MAX_RETIRED) return;
    atomic_store(&set->done, false);
    set->loading_slot = set->wanted;
    set->loading = pthread_create(&set->loader, NULL, reload_thread, set) == 0;
    if (set->loading) set->wanted = NO_SLOT;
}

void filter_set_reload(struct filter_set *set)
{
    set->wanted = set->current;
    start_reload(set);
}

static void release_retired(struct filter_set *set)
{
    if (set->n_retired == 0 || partita_stream_swapping(set->stream)) return;
    for (int i = 0; i < set->n_retired; i++) partita_filter_destroy(set->retired[i]);
    set->n_retired = 0;
}

static enum filter_set_event finish_reload(struct filter_set *set, struct fault *message)
{
    if (!set->loading || !atomic_load_explicit(&set->done, memory_order_acquire))
        return FILTER_SET_UNCHANGED;
    pthread_join(set->loader, NULL);
    set->loading = false;
    if (!set->loaded) {
        fault_set(message, "%.500s; the old filter stays", set->load_fault.text);
        return FILTER_SET_NOT_RELOADED;
    }
    set->retired[set->n_retired++] = set->slots[set->loading_slot].filter;
    set->slots[set->loading_slot] = set->fresh;
    if (set->loading_slot == set->current) filter_set_select(set, set->current);
    fault_set(message, "%s: read again", set->fresh.info.path);
    return FILTER_SET_RELOADED;
}

enum filter_set_event filter_set_poll(struct filter_set *set, struct fault *message)
{
    release_retired(set);
    enum filter_set_event event = finish_reload(set, message);
    start_reload(set);
    return event;
}
