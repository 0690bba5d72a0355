// SPDX-License-Identifier: MIT
#include "workers.h"
#include "stream/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "work.h"

enum {
    RUN_SLICES = 2,    // that a helper runs of a chain before it looks for more urgent ones
    IDLE_LOOKS = 2000, // in vain before a helper sleeps for a moment
    NAP_NANOSECONDS = 50000,
};

// A chain of a stage, on a cache line of its own. Its length changes only while nothing is left.
struct chain {
    _Alignas(64) atomic_bool claimed;
    atomic_size_t left; // slices
    size_t length;
};

struct crew {
    struct chain *chain;                // of all stages in order
    atomic_size_t stage_left[N_STAGES]; // chains that are not done
};

struct team {
    struct partita_stream *stream;
    struct crew crew[MAX_LEVELS];
    size_t due[MAX_LEVELS]; // of the current tick, for the host's threads
    pthread_t *threads;
    int n_threads;
    atomic_bool stop;
};

static struct team *team_of(const struct partita_stream *stream)
{
    return ((const struct partitioned_stream *)stream->state)->team;
}

static size_t levels_of(const struct partita_stream *stream)
{
    return ((const struct partitioned *)stream->plan->state)->layout.n_levels;
}

// Chains that a stage may have; a block may have fewer, and leave the others empty.
static size_t most_chains(const struct partita_stream *stream, enum stage stage)
{
    const struct shape *shape = &stream->plan->shape;
    const size_t most[] = {shape->in_channels, MAX_PRODUCT_CHAINS, shape->out_channels};
    return most[stage];
}

static size_t chains_of(const struct partita_stream *stream)
{
    size_t n = 0;
    for (int stage = 0; stage < N_STAGES; stage++) n += most_chains(stream, (enum stage)stage);
    return n;
}

// The stage that a chain belongs to; *ret_chain is its number within it.
static enum stage stage_of(const struct partita_stream *stream, size_t chain, size_t *ret_chain)
{
    int stage = STAGE_FORWARD;
    for (size_t most; chain >= (most = most_chains(stream, (enum stage)stage)); chain -= most)
        stage++;
    *ret_chain = chain;
    return (enum stage)stage;
}

static bool claim(struct chain *chain)
{
    return !atomic_load_explicit(&chain->claimed, memory_order_relaxed) &&
           !atomic_exchange_explicit(&chain->claimed, true, memory_order_acquire);
}

static void release(struct chain *chain)
{
    atomic_store_explicit(&chain->claimed, false, memory_order_release);
}

static size_t left_of(const struct chain *chain)
{
    return atomic_load_explicit(&chain->left, memory_order_acquire);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// A stage waits for the one before. To be asked after the chain's own progress, which is reset
// later.
static bool ready(const struct crew *crew, enum stage stage)
{
    return stage == STAGE_FORWARD ||
           atomic_load_explicit(&crew->stage_left[stage - 1], memory_order_acquire) == 0;
}

// Runs at most `most` slices of a chain, as long as more than `keep` are left. Returns whether
// there was one to run.
static bool run_chain(const struct partita_stream *stream, size_t i, size_t chain, size_t keep,
                      size_t most)
{
    struct crew *crew = &team_of(stream)->crew[i];
    struct chain *own = &crew->chain[chain];
    struct slice at = {.stream = stream, .i = i};
    at.stage = stage_of(stream, chain, &at.chain);
    if (left_of(own) <= keep || !ready(crew, at.stage) || !claim(own)) return false;
    bool ran = false;
    for (size_t left; most > 0 && (left = left_of(own)) > keep && ready(crew, at.stage); most--) {
        at.number = own->length - left;
        work_slice(&at);
        // The stage's count first: when the chain shows nothing left, a new block may begin.
        if (left == 1)
            atomic_fetch_sub_explicit(&crew->stage_left[at.stage], 1, memory_order_acq_rel);
        atomic_store_explicit(&own->left, left - 1, memory_order_release);
        ran = true;
    }
    release(own);
    return ran;
}

// How many slices of a chain come after the first `due` of the level.
static size_t left_after(const struct partita_stream *stream, size_t i, size_t chain, size_t due)
{
    const struct work *work = &((const struct partitioned *)stream->plan->state)->work[i];
    size_t number, before = 0;
    const enum stage stage = stage_of(stream, chain, &number);
    for (int s = 0; s < (int)stage; s++) before += stage_slices(work, (enum stage)s);
    const size_t length = number < work->stage[stage].chains ? work->stage[stage].length : 0;
    before += number * length;
    return due <= before ? length : due - before < length ? length - (due - before) : 0;
}

// One look at everything that is due: runs what nobody else is at. Returns whether all of it is
// done.
static bool run_due(const struct partita_stream *stream, const size_t *due)
{
    const struct team *team = team_of(stream);
    bool complete = true;
    for (size_t i = 0; i < levels_of(stream); i++)
        for (size_t chain = 0; due[i] > 0 && chain < chains_of(stream); chain++) {
            const size_t keep = left_after(stream, i, chain, due[i]);
            if (left_of(&team->crew[i].chain[chain]) <= keep) continue;
            run_chain(stream, i, chain, keep, SIZE_MAX);
            complete &= left_of(&team->crew[i].chain[chain]) <= keep;
        }
    return complete;
}

static void help_host(void *context)
{
    const struct team *team = context;
    while (!run_due(team->stream, team->due)) relax();
}

void team_run(struct partita_stream *stream, const size_t *due)
{
    const struct partita_executor *executor = &stream->plan->executor;
    struct team *team = team_of(stream);
    if (executor->run) {
        for (size_t i = 0; i < levels_of(stream); i++) team->due[i] = due[i];
        executor->run(executor->user, help_host, team, (size_t)stream->plan->stream_threads);
    }
    while (!run_due(stream, due)) relax();
}

// Looks for work from the shortest period to the longest: that is by deadline. Returns whether
// there was any.
static bool run_ahead(const struct partita_stream *stream)
{
    for (size_t i = 0; i < levels_of(stream); i++)
        for (size_t chain = 0; chain < chains_of(stream); chain++)
            if (run_chain(stream, i, chain, 0, RUN_SLICES)) return true;
    return false;
}

static void *helper(void *context)
{
    const struct team *team = context;
    static const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    for (int looks = 0; !atomic_load_explicit(&team->stop, memory_order_acquire);) {
        if (run_ahead(team->stream)) looks = 0;
        else if (++looks < IDLE_LOOKS) relax();
        else nanosleep(&nap, NULL);
    }
    return NULL;
}

// Sets the chains of a level to where they are when `done` slices are done. The stages' counts come
// first, so that whoever sees a chain of a later stage begin sees them too.
static void set_progress(const struct partita_stream *stream, size_t i, size_t done)
{
    struct crew *crew = &team_of(stream)->crew[i];
    size_t stage_left[N_STAGES] = {0}, number;
    for (size_t chain = 0; chain < chains_of(stream); chain++) {
        crew->chain[chain].length = left_after(stream, i, chain, 0);
        stage_left[stage_of(stream, chain, &number)] += left_after(stream, i, chain, done) > 0;
    }
    for (int stage = 0; stage < N_STAGES; stage++)
        atomic_store_explicit(&crew->stage_left[stage], stage_left[stage], memory_order_release);
    for (size_t chain = chains_of(stream); chain-- > 0;)
        atomic_store_explicit(&crew->chain[chain].left, left_after(stream, i, chain, done),
                              memory_order_release);
}

void team_begin(struct partita_stream *stream, size_t i)
{
    set_progress(stream, i, 0);
}

static size_t all_slices(const struct partita_stream *stream, size_t i)
{
    return block_slices(&((const struct partitioned *)stream->plan->state)->work[i]);
}

// A helper gives a chain back after a few slices.
void team_drop(struct partita_stream *stream)
{
    for (size_t i = 0; i < levels_of(stream); i++)
        for (size_t chain = 0; chain < chains_of(stream); chain++)
            while (!claim(&team_of(stream)->crew[i].chain[chain])) relax();
}

void team_pause(struct partita_stream *stream)
{
    const struct partitioned_stream *state = stream->state;
    size_t due[MAX_LEVELS] = {0};
    for (size_t i = 0; i < levels_of(stream); i++)
        if (state->level[i].progress->running) due[i] = all_slices(stream, i);
    while (!run_due(stream, due)) relax();
    for (size_t i = 0; i < levels_of(stream); i++) state->level[i].progress->done = due[i];
    team_drop(stream);
}

void team_resume(struct partita_stream *stream)
{
    const struct partitioned_stream *state = stream->state;
    for (size_t i = 0; i < levels_of(stream); i++) {
        const struct progress *progress = state->level[i].progress;
        set_progress(stream, i, progress->running ? progress->done : all_slices(stream, i));
        for (size_t chain = 0; chain < chains_of(stream); chain++)
            release(&team_of(stream)->crew[i].chain[chain]);
    }
}

static struct team *cut_team(struct partita_stream *stream, int n_threads, struct arena *arena)
{
    struct team *team = arena_take(arena, sizeof *team);
    pthread_t *threads = arena_take(arena, (size_t)n_threads * sizeof *threads);
    if (team) *team = (struct team){.stream = stream, .threads = threads};
    for (size_t i = 0; i < levels_of(stream); i++) {
        struct chain *chain = arena_take(arena, size_mul(chains_of(stream), sizeof *chain));
        if (team) team->crew[i].chain = chain;
    }
    return team;
}

enum partita_status team_open(struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    struct partitioned_stream *state = stream->state;
    const int n_threads = plan->executor.run ? 0 : plan->stream_threads - 1;
    if (!plan->executor.run && n_threads < 1) return PARTITA_OK;
    struct arena arena = {0};
    cut_team(stream, n_threads, &arena);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    state->team = cut_team(stream, n_threads, &arena);
    team_resume(stream);
    for (; state->team->n_threads < n_threads; state->team->n_threads++)
        if (pthread_create(&state->team->threads[state->team->n_threads], NULL, helper,
                           state->team))
            return PARTITA_ERR_NOMEM; // team_close ends those that have begun
    return PARTITA_OK;
}

void team_close(struct partita_stream *stream)
{
    struct team *team = team_of(stream);
    if (!team) return;
    atomic_store_explicit(&team->stop, true, memory_order_release);
    for (int i = 0; i < team->n_threads; i++) pthread_join(team->threads[i], NULL);
    mem_release(&stream->plan->allocator, team);
}
