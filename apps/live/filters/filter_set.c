// SPDX-License-Identifier: MIT
// See filter_set.h. All filters have one plan: as long as the longest, with common channels. A
// filter is created from the paths that it has; absent paths cost nothing.
#include "filter_set.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/ir_name.h"
#include "base/thread_start.h"
#include "cli/engine_name.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "cli/wisdom_file.h"
#include "io/audio.h"
#include "live/chain/denormals.h"
#include "response.h"
#include "route/route.h"

enum { MAX_RETIRED = 8 };

struct filter_slot {
    char *ir; // as the user names it; info.path is a part of it
    struct filter_info info;
    struct partita_filter *filter;
    struct sofa *sofa; // of a SOFA file; NULL: none
    int pair;          // of it, which the filter plays
};

// A file to read for a slot.
struct file_request {
    char *ir; // NULL: none
    int slot;
    bool is_load; // not a reload
    uint64_t number;
    struct sofa_direction direction;
};

struct filter_set {
    const struct settings *settings;
    struct response_shape shape; // which the filters must match
    double rate;
    size_t kernel;
    bool diagonal;
    struct partita_wisdom *wisdom;
    struct partita_plan *plan;
    struct partita_stream *stream;
    struct filter_slot slots[MAX_WORDS];
    int n, current;
    size_t fade;
    struct sofa_direction direction; // of SOFA files
    struct fault log;                // the library's last line
    // Replaced filters that the stream may still use.
    struct partita_filter *retired[MAX_RETIRED];
    int n_retired;
    // The thread that reads a file again; its results are valid when `done` is set.
    pthread_t loader;
    bool loading;
    atomic_bool done;
    struct file_request present, next; // next: to be read after the present one
    uint64_t n_requests;
    bool loaded;
    struct filter_slot incoming;
    struct fault load_fault;
    char load_note[NOTE_SIZE]; // impulse_notes.note
};

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
    const enum partita_status status = partita_plan_create(&problem, &options, &set->plan);
    return option_words_of_status(fault, COMMAND_LIVE, status, &set->log);
}

double filter_set_frequency(const struct filter_set *set, int point)
{
    const double low = 20, high = fmin(20e3, set->rate / 2);
    return low * pow(high / low, point / (FILTER_POINTS - 1.0));
}

// Without memory there is no response, which nothing but a picture needs.
static void find_response(struct filter_set *set, struct filter_slot *slot,
                          const struct response *r)
{
    double *row = calloc(r->taps.length, sizeof *row);
    if (row) slot->info.response = calloc(set->shape.out_channels, sizeof *slot->info.response);
    for (size_t out = 0; slot->info.response && out < set->shape.out_channels; out++) {
        const size_t last = set->shape.in_channels - 1;
        const float *taps = response_taps(r, out, out < last ? out : last);
        for (size_t i = 0; taps && i < r->taps.length; i++) row[i] = (double)taps[i];
        for (int k = 0; taps && k < FILTER_POINTS; k++)
            partita_design_response(row, r->taps.length, filter_set_frequency(set, k) / set->rate,
                                    slot->info.response[out][k]);
    }
    free(row);
}

static bool create_filter(struct filter_set *set, struct filter_slot *ret, const struct response *r,
                          struct fault *fault)
{
    size_t max_paths = set->shape.in_channels * set->shape.out_channels, n = 0;
    if (r->taps.length > set->kernel)
        return fault_set(fault, "%s: %zu taps, more than the %zu that are reserved (--max-taps)",
                         r->path, r->taps.length, set->kernel);
    if (set->diagonal && !r->diagonal)
        return fault_set(
            fault,
            "%s: leads from inputs to other outputs; this run was started with filters "
            "from each input to the output of the same number: start it with this one",
            r->path);
    struct partita_path *paths = calloc(max_paths, sizeof *paths);
    if (!paths) return fault_set(fault, "%s: out of memory", r->path);
    for (size_t out = 0; out < set->shape.out_channels; out++) {
        for (size_t in = 0; in < set->shape.in_channels; in++) {
            const float *taps = response_taps(r, out, in);
            if (taps)
                paths[n++] = (struct partita_path){
                    .out = out, .in = in, .length = r->taps.length, .taps = taps};
        }
    }
    enum partita_status status = partita_filter_create_from(
        set->plan, &(struct partita_taps){.paths = paths, .path_count = n}, &ret->filter);
    free(paths);
    ret->pair = r->pair;
    ret->info.taps = r->taps.length;
    ret->info.onset = r->onset;
    if (!status && set->settings->web) find_response(set, ret, r);
    return !status || fault_set(fault, "%s: %s", r->path, partita_status_string(status));
}

// Also takes the SOFA file of the response.
static bool fill_slot(struct filter_set *set, struct filter_slot *slot, const char *ir,
                      struct response *response, struct fault *fault)
{
    slot->sofa = response->sofa;
    response->sofa = NULL;
    slot->ir = strdup(ir);
    if (!slot->ir) return fault_set(fault, "%s: out of memory", ir);
    slot->info.path = ir_name_path(slot->ir, NULL);
    return create_filter(set, slot, response, fault);
}

static void release_slot(struct filter_slot *slot)
{
    partita_filter_destroy(slot->filter);
    sofa_close(slot->sofa);
    free(slot->info.response);
    free(slot->ir);
    *slot = (struct filter_slot){0};
}

// Loads all files before planning, since the plan depends on all of them.
static bool load_responses(struct filter_set *set, struct response *responses,
                           const struct filter_set_request *request, struct fault *fault)
{
    const struct word_list *irs = &set->settings->irs;
    *request->ret_ir = irs->words[0];
    if (!response_choose_shape(&set->shape, set->settings, irs->words[0], request, fault))
        return false;
    // A run may start without paths between channels, and `load` then name a filter with such. The
    // plan then has all paths; those that a filter lacks are not computed. With two channels that
    // costs up to a tenth more time; with many the plan would be made for far more products than
    // there are.
    set->diagonal = !options_are_steered(set->settings) || set->shape.in_channels != 2 ||
                    set->shape.out_channels != 2;
    set->kernel = set->settings->max_taps > 0 ? (size_t)set->settings->max_taps : 1;
    for (int i = 0; i < irs->n; i++) {
        *request->ret_ir = irs->words[i];
        if (!response_load(&responses[i], set->settings, irs->words[i], &set->shape,
                           &set->direction, fault))
            return false;
        const struct impulse_notes *notes = &responses[i].taps.notes;
        if (*notes->shortfall) report_warning(set->settings, "%s", notes->shortfall);
        if (*notes->note) report_warning(set->settings, "%s", notes->note);
        if (responses[i].taps.length > set->kernel) set->kernel = responses[i].taps.length;
        set->diagonal = set->diagonal && responses[i].diagonal;
    }
    *request->ret_ir = NULL;
    if (!create_plan(set, fault)) return false;
    for (set->n = 0; set->n < irs->n; set->n++) {
        *request->ret_ir = irs->words[set->n];
        if (!fill_slot(set, &set->slots[set->n], irs->words[set->n], &responses[set->n], fault))
            return false;
    }
    *request->ret_ir = NULL;
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
        set->rate = request->rate;
        set->direction = request->direction;
        set->wisdom = wisdom_file_load();
        good = load_responses(set, responses, request, fault);
    }
    if (good) {
        uint64_t mode = denormals_off(); // worker threads are started here and inherit this mode
        enum partita_status status =
            partita_stream_open(set->plan, set->slots[0].filter, &set->stream);
        denormals_restore(mode);
        good = option_words_of_status(fault, COMMAND_LIVE, status, &set->log);
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
        release_slot(&set->incoming);
    }
    free(set->present.ir);
    free(set->next.ir);
    partita_stream_close(set->stream);
    for (int i = 0; i < set->n_retired; i++) partita_filter_destroy(set->retired[i]);
    for (int i = 0; i < MAX_WORDS; i++) release_slot(&set->slots[i]);
    partita_plan_destroy(set->plan);
    partita_wisdom_destroy(set->wisdom);
    free(set);
}

struct filter_set_view filter_set_view(const struct filter_set *set)
{
    return (struct filter_set_view){
        .stream = set->stream,
        .plan = set->plan,
        .in_channels = set->shape.in_channels,
        .out_channels = set->shape.out_channels,
        .n = set->n,
        .current = set->current,
        .info = set->slots[set->current].info,
    };
}

const char *filter_set_path(const struct filter_set *set, int i)
{
    return set->slots[i].info.path;
}

void filter_set_select(struct filter_set *set, int i)
{
    set->current = i;
    partita_stream_swap(set->stream, set->slots[i].filter, set->fade);
}

void filter_set_fade(struct filter_set *set, double milliseconds)
{
    set->fade = (size_t)lrint(milliseconds * 1e-3 * set->rate);
}

// A truncated file is probably still being written. At the start it is accepted with a warning;
// here the old filter is better.
static void *load_thread(void *argument)
{
    struct filter_set *set = argument;
    struct response response = {0};
    struct fault *fault = &set->load_fault;
    set->incoming = (struct filter_slot){0};
    // A pipe could keep the thread waiting for ever.
    set->loaded = audio_check_regular(ir_name_path(set->present.ir, NULL), fault) &&
                  response_load(&response, set->settings, set->present.ir, &set->shape,
                                &set->present.direction, fault) &&
                  (!*response.taps.notes.shortfall ||
                   fault_set(fault, "%s", response.taps.notes.shortfall)) &&
                  fill_slot(set, &set->incoming, set->present.ir, &response, fault);
    memcpy(set->load_note, response.taps.notes.note, sizeof set->load_note);
    response_release(&response);
    atomic_store_explicit(&set->done, true, memory_order_release);
    return NULL;
}

// Starts the thread for the next file, unless it is busy. A reload reads the file that its filter
// has by now, which a load before it may have changed.
static void start_load(struct filter_set *set)
{
    if (!set->next.ir || set->loading || set->n_retired == MAX_RETIRED) return;
    if (!set->next.is_load && strcmp(set->next.ir, set->slots[set->next.slot].ir) != 0) {
        char *ir = strdup(set->slots[set->next.slot].ir);
        if (!ir) return; // the next poll tries again
        free(set->next.ir);
        set->next.ir = ir;
    }
    atomic_store(&set->done, false);
    free(set->present.ir);
    set->present = set->next;
    set->loading = thread_start(&set->loader, load_thread, set);
    if (set->loading) set->next = (struct file_request){0};
    else set->present = (struct file_request){0};
}

static uint64_t request_file(struct filter_set *set, const char *ir, int slot, bool is_load,
                             struct fault *fault)
{
    char *copy = strdup(ir);
    if (!copy) fault_set(fault, "%s: out of memory", ir);
    if (!copy) return 0;
    free(set->next.ir);
    set->next = (struct file_request){.ir = copy,
                                      .slot = slot,
                                      .is_load = is_load,
                                      .number = ++set->n_requests,
                                      .direction = set->direction};
    start_load(set);
    return set->n_requests;
}

uint64_t filter_set_reload(struct filter_set *set, struct fault *fault)
{
    if (!*set->slots[set->current].ir) {
        fault_set(fault, "there is no filter whose file could be read again; use load");
        return 0;
    }
    if (!set->next.ir || (!set->next.is_load && set->next.slot == set->current))
        return request_file(set, set->slots[set->current].ir, set->current, false, fault);
    fault_set(fault, "%s: is not read yet; repeat the command later", set->next.ir);
    return 0;
}

int filter_set_find(const struct filter_set *set, const char *ir)
{
    int i = set->n - 1;
    while (i >= 0 && strcmp(set->slots[i].ir, ir) != 0) i--;
    return i;
}

uint64_t filter_set_load(struct filter_set *set, const char *ir, bool beside, struct fault *fault)
{
    const char *path = ir_name_path(ir, NULL);
    if (set->loading || set->next.ir) {
        fault_set(fault, "%s: another file is being read; repeat the command later", path);
        return 0;
    }
    // A pipe could keep the thread waiting for ever.
    return route_check(set->settings, ir, fault) && audio_check_regular(path, fault)
               ? request_file(set, ir, beside && set->n < MAX_WORDS ? set->n : set->current, true,
                              fault)
               : 0;
}

static void release_retired(struct filter_set *set)
{
    if (set->n_retired == 0 || partita_stream_swapping(set->stream)) return;
    for (int i = 0; i < set->n_retired; i++) partita_filter_destroy(set->retired[i]);
    set->n_retired = 0;
}

static void finish_load(struct filter_set *set, struct filter_set_news *news)
{
    if (!set->loading || !atomic_load_explicit(&set->done, memory_order_acquire)) return;
    struct filter_slot *slot = &set->slots[set->present.slot];
    pthread_join(set->loader, NULL);
    set->loading = false;
    news->request = set->present.number;
    if (!set->loaded) {
        release_slot(&set->incoming);
        news->event = FILTER_SET_FAILED;
        fault_set(&news->message, "%.500s%s; the old filter stays", set->load_fault.text,
                  strstr(set->load_fault.text, "--")
                      ? " (an option of `partita live`, which has to be started with it)"
                      : "");
        return;
    }
    if (set->present.slot == set->n) set->n++;
    else set->retired[set->n_retired++] = slot->filter;
    slot->filter = NULL;
    release_slot(slot);
    *slot = set->incoming;
    if (set->present.slot == set->current) filter_set_select(set, set->current);
    news->event = FILTER_SET_CHANGED;
    fault_set(&news->message, "%s: %s%s%s", slot->info.path,
              set->present.is_load ? "loaded" : "read again", *set->load_note ? "; " : "",
              set->load_note);
}

bool filter_set_has_directions(const struct filter_set *set)
{
    for (int i = 0; i < set->n; i++)
        if (set->slots[i].sofa) return true;
    return false;
}

bool filter_set_is_turning(const struct filter_set *set)
{
    const struct filter_slot *slot = &set->slots[set->current];
    const int nearest = slot->sofa ? sofa_nearest(slot->sofa, &set->direction) : -1;
    return nearest >= 0 && nearest != slot->pair;
}

// Fades to the pair of the present direction, when the previous fade has ended: of the directions
// that come meanwhile only the last counts. Leaves a place in `retired` for finish_load.
static void turn_current(struct filter_set *set)
{
    struct filter_slot *slot = &set->slots[set->current], turned = {0};
    struct response response;
    struct fault fault;
    if (!filter_set_is_turning(set) || set->n_retired >= MAX_RETIRED - 1 ||
        partita_stream_swapping(set->stream))
        return;
    const bool found =
        response_turn(&response, slot->info.path, slot->sofa, &set->direction, &fault);
    if (response.pair >= 0) slot->pair = response.pair; // not again if it fails
    if (!found) return;
    if (create_filter(set, &turned, &response, &fault)) {
        set->retired[set->n_retired++] = slot->filter;
        slot->filter = turned.filter;
        slot->info.onset = turned.info.onset;
        free(slot->info.response);
        slot->info.response = turned.info.response;
        filter_set_select(set, set->current);
    }
    response_release(&response);
}

void filter_set_turn(struct filter_set *set, const struct sofa_direction *direction)
{
    set->direction = *direction;
    turn_current(set);
}

void filter_set_poll(struct filter_set *set, struct filter_set_news *ret_news)
{
    *ret_news = (struct filter_set_news){.event = FILTER_SET_UNCHANGED};
    release_retired(set);
    finish_load(set, ret_news);
    turn_current(set);
    start_load(set);
}
