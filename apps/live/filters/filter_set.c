// SPDX-License-Identifier: MIT
// See bank.h. One plan serves all filters: as long as the longest, with as many channels as all of
// them agree on; each filter is made of the cells it has, and cells it has not cost nothing.
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

enum { MAX_RETIRED = 8, NONE = -1 };

struct slot {
    struct filter_set_filter told;
    struct partita_filter *filter;
};

struct filter_set {
    const struct settings *settings;
    struct response_shape shape; // what the filters must fit
    size_t kernel;
    bool diagonal;
    struct partita_wisdom *wisdom;
    struct partita_plan *plan;
    struct partita_stream *stream;
    struct slot slots[MAX_WORDS];
    int n, current;
    size_t fade;
    struct fault detail; // the library's last line
    // Filters that the stream may still use.
    struct partita_filter *retired[MAX_RETIRED];
    int n_retired;
    // The thread that reads a file again; what it made is valid once `done` is set.
    pthread_t loader;
    bool loading;
    atomic_bool done;
    int loading_slot;
    int wanted; // slot to be read again next; NONE without
    bool loaded;
    struct slot fresh;
    struct fault fault;
};

static void keep_line(void *user, const char *text)
{
    fault_set(user, "%s", text);
}

static bool failed(const struct filter_set *b, enum partita_status status, struct fault *fault)
{
    fault_set(fault, "%s%s%s", partita_status_string(status), *b->detail.text ? ": " : "",
              b->detail.text);
    return option_words(COMMAND_LIVE, fault);
}

static bool make_plan(struct filter_set *b, struct fault *fault)
{
    const struct settings *s = b->settings;
    char engine[ENGINE_NAME_SIZE];
    struct partita_problem problem = {
        .in_channels = b->shape.in_channels,
        .out_channels = b->shape.out_channels,
        .groups = b->diagonal ? b->shape.in_channels : 1,
        .kernel = {b->kernel},
        .size = {PARTITA_UNBOUNDED},
        .block = s->block ? (size_t)s->block : 256,
        .latency = 0,
    };
    struct partita_options options = {
        .engine = engine_name(s->engine, engine),
        .threads = (int)s->threads,
        .wisdom = b->wisdom,
        .log = {keep_line, &b->detail},
    };
    enum partita_status status = partita_plan_create(&problem, &options, &b->plan);
    return !status || failed(b, status, fault);
}

static bool make_filter(struct filter_set *b, struct slot *ret, const struct response *response,
                        struct fault *fault)
{
    const struct response *r = response;
    size_t most = b->shape.in_channels * b->shape.out_channels, n = 0;
    if (r->length > b->kernel)
        return fault_set(fault, "%s: %zu taps; there is room for %zu (--max-taps)", r->path,
                         r->length, b->kernel);
    if (b->diagonal && !r->diagonal)
        return fault_set(
            fault, "%s: %zu channels; the run began with filters from each input to its own output",
            r->path, r->channels);
    struct partita_cell *cells = calloc(most, sizeof *cells);
    if (!cells) return fault_set(fault, "%s: out of memory", r->path);
    for (size_t out = 0; out < b->shape.out_channels; out++) {
        for (size_t in = 0; in < b->shape.in_channels; in++) {
            const float *taps = response_taps(r, out, in);
            if (taps)
                cells[n++] =
                    (struct partita_cell){.out = out, .in = in, .length = r->length, .taps = taps};
        }
    }
    enum partita_status status = partita_filter_create_cells(b->plan, cells, n, &ret->filter);
    free(cells);
    ret->told = (struct filter_set_filter){.path = r->path, .taps = r->length, .onset = r->onset};
    return !status || fault_set(fault, "%s: %s", r->path, partita_status_string(status));
}

// All files first: the plan has to fit them all.
static bool load_all(struct filter_set *b, struct response *responses,
                     const struct filter_set_request *request, struct fault *fault)
{
    const struct word_list *irs = &b->settings->irs;
    if (!response_choose_shape(&b->shape, b->settings, irs->words[0], request, fault)) return false;
    b->diagonal = true;
    b->kernel = b->settings->max_taps > 0 ? (size_t)b->settings->max_taps : 1;
    for (int i = 0; i < irs->n; i++) {
        if (!response_load(&responses[i], b->settings, irs->words[i], &b->shape, fault))
            return false;
        if (*responses[i].shortfall) report_warning(b->settings, "%s", responses[i].shortfall);
        if (responses[i].length > b->kernel) b->kernel = responses[i].length;
        b->diagonal = b->diagonal && responses[i].diagonal;
    }
    if (!make_plan(b, fault)) return false;
    for (b->n = 0; b->n < irs->n; b->n++)
        if (!make_filter(b, &b->slots[b->n], &responses[b->n], fault)) return false;
    return true;
}

bool filter_set_open(struct filter_set **ret_bank, const struct settings *settings,
                     const struct filter_set_request *request, struct fault *fault)
{
    struct filter_set *b = calloc(1, sizeof *b);
    struct response *responses = calloc((size_t)settings->irs.n, sizeof *responses);
    bool good = (b && responses) || fault_set(fault, "out of memory");
    if (good) {
        b->settings = settings;
        b->wanted = NONE;
        b->fade = (size_t)lrint(settings->fade * 1e-3 * request->rate);
        b->wisdom = wisdom_file_load();
        good = load_all(b, responses, request, fault);
    }
    if (good) {
        uint64_t mode = denormals_off(); // threads that help the audio thread are started here and
                                         // inherit its mode
        enum partita_status status = partita_stream_open(b->plan, b->slots[0].filter, &b->stream);
        denormals_restore(mode);
        good = !status || failed(b, status, fault);
    }
    for (int i = 0; responses && i < settings->irs.n; i++) response_release(&responses[i]);
    free(responses);
    if (good) *ret_bank = b;
    else filter_set_close(b);
    return good;
}

void filter_set_close(struct filter_set *bank)
{
    if (!bank) return;
    if (bank->loading) {
        pthread_join(bank->loader, NULL);
        partita_filter_destroy(bank->fresh.filter);
    }
    partita_stream_close(bank->stream);
    for (int i = 0; i < bank->n_retired; i++) partita_filter_destroy(bank->retired[i]);
    for (int i = 0; i < MAX_WORDS; i++) partita_filter_destroy(bank->slots[i].filter);
    partita_plan_destroy(bank->plan);
    partita_wisdom_destroy(bank->wisdom);
    free(bank);
}

struct partita_stream *filter_set_stream(struct filter_set *bank)
{
    return bank->stream;
}

const struct partita_plan *filter_set_plan(const struct filter_set *bank)
{
    return bank->plan;
}

size_t filter_set_in_channels(const struct filter_set *bank)
{
    return bank->shape.in_channels;
}

size_t filter_set_out_channels(const struct filter_set *bank)
{
    return bank->shape.out_channels;
}

int filter_set_size(const struct filter_set *bank)
{
    return bank->n;
}

int filter_set_current(const struct filter_set *bank)
{
    return bank->current;
}

struct filter_set_filter filter_set_filter(const struct filter_set *bank, int i)
{
    return bank->slots[i].told;
}

void filter_set_select(struct filter_set *bank, int i)
{
    bank->current = i;
    partita_stream_swap(bank->stream, bank->slots[i].filter, bank->fade);
}

// A file that is cut short is still being written: at the start it may be what there is, here there
// is a better one.
static void *load(void *argument)
{
    struct filter_set *b = argument;
    struct response response = {0};
    b->fresh = (struct slot){0};
    b->loaded = response_load(&response, b->settings, b->slots[b->loading_slot].told.path,
                              &b->shape, &b->fault) &&
                (!*response.shortfall || fault_set(&b->fault, "%s", response.shortfall)) &&
                make_filter(b, &b->fresh, &response, &b->fault);
    response_release(&response);
    atomic_store_explicit(&b->done, true, memory_order_release);
    return NULL;
}

// As soon as the file before is read.
static void load_wanted(struct filter_set *b)
{
    if (b->wanted == NONE || b->loading || b->n_retired == MAX_RETIRED) return;
    atomic_store(&b->done, false);
    b->loading_slot = b->wanted;
    b->loading = pthread_create(&b->loader, NULL, load, b) == 0;
    if (b->loading) b->wanted = NONE;
}

void filter_set_reload(struct filter_set *bank)
{
    bank->wanted = bank->current;
    load_wanted(bank);
}

static void release_retired(struct filter_set *b)
{
    if (b->n_retired == 0 || partita_stream_swapping(b->stream)) return;
    for (int i = 0; i < b->n_retired; i++) partita_filter_destroy(b->retired[i]);
    b->n_retired = 0;
}

static enum filter_set_news take_loaded(struct filter_set *b, struct fault *told)
{
    if (!b->loading || !atomic_load_explicit(&b->done, memory_order_acquire))
        return FILTER_SET_UNCHANGED;
    pthread_join(b->loader, NULL);
    b->loading = false;
    if (!b->loaded) {
        fault_set(told, "%.500s; the old filter stays", b->fault.text);
        return FILTER_SET_KEPT;
    }
    b->retired[b->n_retired++] = b->slots[b->loading_slot].filter;
    b->slots[b->loading_slot] = b->fresh;
    if (b->loading_slot == b->current) filter_set_select(b, b->current);
    fault_set(told, "%s: read again", b->fresh.told.path);
    return FILTER_SET_RELOADED;
}

enum filter_set_news filter_set_poll(struct filter_set *bank, struct fault *told)
{
    release_retired(bank);
    enum filter_set_news news = take_loaded(bank, told);
    load_wanted(bank);
    return news;
}
