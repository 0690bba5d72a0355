// SPDX-License-Identifier: MIT
// Which tasks run in a quantum, and on which threads: on the stream's thread alone, or on several.
// Those are threads of the stream's own, which run tasks before they are due, or the caller's,
// which its executor calls for due tasks. The stream's thread takes over whatever is due and not
// begun, so a late helper costs time, never samples. Chains are claimed one by one and their tasks
// run in order, so results do not depend on threads.
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "morph.h"

enum {
    TASKS_AT_ONCE = 2, // that a helper runs of a chain before it looks for more urgent ones
    IDLE_LOOKS = 2000, // in vain before a helper sleeps for a moment
    NAP_NANOSECONDS = 50000,
};

// Without a step of the stream for so long a helper blocks until the next one (stream.h says so).
static const double IDLE_SECONDS = 0.1;

// A chain of a stage, on a cache line of its own.
struct chain {
    _Alignas(64) atomic_bool claimed;
    atomic_size_t left; // tasks
    enum stage stage;
    size_t number;         // in its stage
    size_t before, length; // tasks of the segment that come before it; its own
};

// The remaining work on a segment's current block.
struct queue {
    struct chain *chain; // of all stages in order
    size_t n_chains;
    atomic_size_t stage_left[N_STAGES]; // chains that are not done
};

struct workers {
    struct partita_stream *stream;
    struct queue queue[PARTITION_MAX_SEGMENTS];
    size_t due[PARTITION_MAX_SEGMENTS]; // in the current quantum
    pthread_t *threads;
    int n_threads;
    unsigned forks; // thread_forks() when these were started
    atomic_bool stop;
    atomic_uint steps;   // of the stream, each counted after its work was made known
    atomic_uint blocked; // helpers that wait for the semaphore, or are about to, and that
                         // no step has begun to wake
    atomic_uint waking;  // helpers that those that wake up must wake
    sem_t semaphore;
};

static struct workers *workers_of(const struct partita_stream *stream)
{
    return partitioned_stream_of(stream)->workers;
}

static size_t segment_count(const struct partita_stream *stream)
{
    return partitioned_of(stream->plan)->layout.n_segments;
}

static bool chain_claim(struct chain *chain)
{
    return !atomic_load_explicit(&chain->claimed, memory_order_relaxed) &&
           !atomic_exchange_explicit(&chain->claimed, true, memory_order_acquire);
}

static void chain_release(struct chain *chain)
{
    atomic_store_explicit(&chain->claimed, false, memory_order_release);
}

static size_t chain_left(const struct chain *chain)
{
    return atomic_load_explicit(&chain->left, memory_order_acquire);
}

static void cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// A stage waits for the one before. To be asked after the chain's own progress, which is reset
// later.
static bool stage_ready(const struct queue *queue, enum stage stage)
{
    return stage == STAGE_FORWARD ||
           atomic_load_explicit(&queue->stage_left[stage - 1], memory_order_acquire) == 0;
}

// Runs at most `max` tasks of a chain, as long as more than `keep` are left. Returns whether there
// was one to run.
static bool chain_run(const struct partita_stream *stream, size_t i, struct chain *chain,
                      size_t keep, size_t max)
{
    struct queue *queue = &workers_of(stream)->queue[i];
    struct task at = task_first(stream, i);
    at.stage = chain->stage, at.chain = chain->number;
    if (chain_left(chain) <= keep || !stage_ready(queue, at.stage) || !chain_claim(chain))
        return false;
    bool ran = false;
    for (size_t left; max > 0 && (left = chain_left(chain)) > keep && stage_ready(queue, at.stage);
         max--) {
        at.number = chain->length - left;
        task_run(&at);
        // The stage's count first: when the chain shows nothing left, a new block may begin.
        if (left == 1)
            atomic_fetch_sub_explicit(&queue->stage_left[at.stage], 1, memory_order_acq_rel);
        atomic_store_explicit(&chain->left, left - 1, memory_order_release);
        ran = true;
    }
    chain_release(chain);
    return ran;
}

// How many tasks of a chain come after the first `due` of the segment.
static size_t left_after(const struct chain *chain, size_t due)
{
    const size_t done = due > chain->before ? due - chain->before : 0;
    return done < chain->length ? chain->length - done : 0;
}

// One look at everything that is due: runs all that no other thread runs. Returns whether all of it
// is done.
static bool run_due(const struct partita_stream *stream, const size_t *due)
{
    bool complete = true;
    for (size_t i = 0; i < segment_count(stream); i++) {
        const struct queue *queue = &workers_of(stream)->queue[i];
        for (size_t c = 0; due[i] > 0 && c < queue->n_chains; c++) {
            struct chain *chain = &queue->chain[c];
            const size_t keep = left_after(chain, due[i]);
            if (chain_left(chain) <= keep) continue;
            chain_run(stream, i, chain, keep, SIZE_MAX);
            complete &= chain_left(chain) <= keep;
        }
    }
    return complete;
}

// Returns when of each segment the tasks are done that are due.
static void finish_due(void *context)
{
    const struct workers *workers = context;
    while (!run_due(workers->stream, workers->due)) cpu_pause();
}

// Looks for work from the shortest period to the longest: that is by deadline. Returns whether
// there was any.
static bool run_ahead(const struct partita_stream *stream)
{
    for (size_t i = 0; i < segment_count(stream); i++) {
        const struct queue *queue = &workers_of(stream)->queue[i];
        for (size_t c = 0; c < queue->n_chains; c++)
            if (chain_run(stream, i, &queue->chain[c], 0, TASKS_AT_ONCE)) return true;
    }
    return false;
}

// Takes one from a count, unless it is 0.
static bool count_take(atomic_uint *count)
{
    unsigned n = atomic_load(count);
    while (n > 0)
        if (atomic_compare_exchange_weak(count, &n, n - 1)) return true;
    return false;
}

// Blocks a helper until the step after the `steps`-th. Either that step sees that the helper is
// blocked, or the helper sees that step: both write before they read.
static void block_helper(struct workers *workers, unsigned steps)
{
    atomic_fetch_add(&workers->blocked, 1);
    if (atomic_load(&workers->steps) != steps && count_take(&workers->blocked)) return;
    while (sem_wait(&workers->semaphore)) continue; // interrupted
    if (count_take(&workers->waking)) sem_post(&workers->semaphore);
}

// A system call only if helpers are blocked: it wakes one of them, which wakes the next.
void workers_step(const struct partita_stream *stream)
{
    struct workers *workers = workers_of(stream);
    if (!workers || !workers->n_threads) return;
    atomic_fetch_add(&workers->steps, 1);
    if (!atomic_load(&workers->blocked)) return;
    const unsigned blocked = atomic_exchange(&workers->blocked, 0);
    if (!blocked) return;
    atomic_fetch_add(&workers->waking, blocked - 1);
    sem_post(&workers->semaphore);
}

static void *helper_thread(void *context)
{
    struct workers *workers = context;
    static const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    double active = clock_seconds();
    unsigned seen = atomic_load(&workers->steps);
    for (int looks = 0;;) {
        const unsigned steps = atomic_load(&workers->steps);
        if (atomic_load_explicit(&workers->stop, memory_order_acquire)) return NULL;
        if (run_ahead(workers->stream)) looks = 0;
        else if (looks < IDLE_LOOKS) looks++, cpu_pause();
        else if (steps != seen) active = clock_seconds(), seen = steps;
        else if (clock_seconds() - active < IDLE_SECONDS) nanosleep(&nap, NULL);
        else block_helper(workers, steps), looks = 0;
    }
}

// Sets the chains of a segment to where they are when `done` tasks are done. The stages' counts
// come first, so that whoever sees a chain of a later stage begin sees them too.
static void set_progress(const struct partita_stream *stream, size_t i, size_t done)
{
    struct queue *queue = &workers_of(stream)->queue[i];
    size_t stage_left[N_STAGES] = {0};
    for (size_t c = 0; c < queue->n_chains; c++)
        stage_left[queue->chain[c].stage] += left_after(&queue->chain[c], done) > 0;
    for (int stage = 0; stage < N_STAGES; stage++)
        atomic_store_explicit(&queue->stage_left[stage], stage_left[stage], memory_order_release);
    for (size_t c = queue->n_chains; c-- > 0;)
        atomic_store_explicit(&queue->chain[c].left, left_after(&queue->chain[c], done),
                              memory_order_release);
}

// Runs the tasks of a segment in the table's order until `due` are done.
static void run_until(const struct partita_stream *stream, size_t i, size_t due)
{
    struct task at = task_first(stream, i);
    assert(due <= block_tasks(at.work));
    size_t *done = &at.state->progress->done, task = *done;
    if (task >= due) return;
    for (size_t all; task >= (all = stage_tasks(at.work, at.stage)); task -= all) at.stage++;
    // Divided once and then counted: a task may take less time than some divisions.
    at.chain = task / at.work->stage[at.stage].length;
    at.number = task % at.work->stage[at.stage].length;
    for (; *done < due; ++*done, at.number++) {
        if (at.number == at.work->stage[at.stage].length) at.number = 0, at.chain++;
        if (at.chain == at.work->stage[at.stage].chains) at.chain = 0, at.stage++;
        task_run(&at);
    }
}

// Finds the inputs whose window is silent in a block, the one after that of the progress. Returns
// whether the inputs changed that have any spectrum but zeros.
static bool update_silence(const struct partita_stream *stream,
                           const struct partition_segment *segment, struct segment_state *state,
                           uint64_t block)
{
    const uint64_t *nonzero_until = partitioned_stream_of(stream)->history.nonzero_until;
    const size_t slots = partition_slots(segment);
    bool changed = false;
    for (size_t c = 0; c < stream->plan->shape.in_channels; c++) {
        const bool active = silent_blocks(state, c, state->progress->block) < slots;
        if (nonzero_until[c] && nonzero_until[c] + segment->n > (block + 1) * segment->hop)
            state->active_until[c] = block + 1;
        changed |= active != (silent_blocks(state, c, block) < slots);
    }
    return changed;
}

// Which filters a new block needs during a swap. Its products also serve later blocks of its batch:
// sums of a filter are complete from the batch-th block on that is computed with it, so the
// incoming one is used from batch - 1 blocks before the fade on.
static void swap_filters(const struct partitioned_stream *state,
                         const struct partition_segment *segment, struct progress *progress)
{
    const uint64_t output = state->position->quantum + segment->window; // the block's first quantum
    const bool incoming = output + segment->batch * segment->quanta > state->fade_begin;
    const bool current = output < state->fade_end;
    assert(current || incoming);
    progress->two_filters = current && incoming;
    progress->sums_only = output + segment->quanta <= state->fade_begin;
    if (!current) progress->set = 1 - state->position->set;
}

// A segment's next block is complete: its filters are settled now.
static void begin_block(struct partita_stream *stream, size_t i, uint64_t block)
{
    struct partitioned_stream *state = partitioned_stream_of(stream);
    const struct partition_segment *segment = task_first(stream, i).segment;
    struct segment_state *current = &state->segment[i];
    const bool changed = update_silence(stream, segment, current, block);
    // Field by field: a copy of the struct would wait until its fields are stored.
    struct progress *progress = current->progress;
    progress->done = 0, progress->set = state->position->set, progress->block = block;
    progress->running = true, progress->two_filters = progress->sums_only = false;
    if (stream->swap.state == SWAP_WAITING || stream->swap.state == SWAP_FADING)
        swap_filters(state, segment, progress);
    const struct partita_filter *filters[] = {stream->filter, stream->swap.incoming};
    if (progress->set != state->position->set) filters[0] = stream->swap.incoming;
    for (size_t which = 0; which < (progress->two_filters ? 2 : 1); which++)
        if (changed || current->active[which].filter != filters[which])
            tasks_list_paths(stream, i, which, filters[which]);
    if (state->morph) progress->two_filters = morph_begin_block(stream, i, block);
    tasks_locate(stream, i);
    tasks_prepare(stream, i);
    if (state->workers) set_progress(stream, i, 0);
}

// How many tasks must be done when the current quantum ends.
static size_t due_in_quantum(struct partita_stream *stream, size_t i)
{
    const struct task at = task_first(stream, i);
    const uint64_t now = partitioned_stream_of(stream)->position->quantum;
    if (now < at.segment->start) return 0;
    const uint64_t quanta = now - at.segment->start;
    if (quanta_into_block(at.segment, quanta) == 0)
        begin_block(stream, i, complete_blocks(at.segment, quanta));
    return at.work->due[quanta_into_block(at.segment, quanta)];
}

void workers_run_quantum(struct partita_stream *stream)
{
    const struct partita_executor *executor = &stream->plan->executor;
    struct workers *workers = workers_of(stream);
    for (size_t i = 0; i < segment_count(stream); i++) {
        const size_t due = due_in_quantum(stream, i);
        if (workers) workers->due[i] = due;
        else run_until(stream, i, due);
    }
    workers_step(stream);
    if (workers && executor->run)
        executor->run(executor->user, finish_due, workers, (size_t)stream->plan->stream_threads);
    if (workers) finish_due(workers);
}

void workers_abandon(struct partita_stream *stream)
{
    struct workers *workers = workers_of(stream);
    // A helper gives a chain back after a few tasks.
    for (size_t i = 0; workers && i < segment_count(stream); i++)
        for (size_t c = 0; c < workers->queue[i].n_chains; c++)
            while (!chain_claim(&workers->queue[i].chain[c])) cpu_pause();
}

void workers_pause(struct partita_stream *stream)
{
    const struct partitioned_stream *state = partitioned_stream_of(stream);
    size_t due[PARTITION_MAX_SEGMENTS] = {0};
    if (!state->workers && !state->morph) return;
    for (size_t i = 0; i < segment_count(stream); i++) {
        if (state->segment[i].progress->running)
            due[i] = block_tasks(&partitioned_of(stream->plan)->work[i]);
        // A state does not have the former spectra of a slice that is about to change.
        if (!state->workers) run_until(stream, i, due[i]);
    }
    if (!state->workers) return;
    while (!run_due(stream, due)) cpu_pause();
    for (size_t i = 0; i < segment_count(stream); i++) state->segment[i].progress->done = due[i];
    workers_abandon(stream);
}

void workers_resume(struct partita_stream *stream)
{
    struct partitioned_stream *state = partitioned_stream_of(stream);
    for (size_t i = 0; i < segment_count(stream); i++) {
        state->segment[i].active[0].filter = state->segment[i].active[1].filter = NULL;
        tasks_locate(stream, i);
        if (state->segment[i].progress->running) tasks_list_paths(stream, i, 0, stream->filter);
    }
    for (size_t i = 0; state->workers && i < segment_count(stream); i++) {
        const struct progress *progress = state->segment[i].progress;
        struct queue *queue = &state->workers->queue[i];
        set_progress(stream, i, progress->running ? progress->done : SIZE_MAX);
        for (size_t c = 0; c < queue->n_chains; c++) chain_release(&queue->chain[c]);
    }
}

static void fill_queue(struct queue *queue, const struct segment_work *work)
{
    size_t before = 0;
    for (int stage = 0; stage < N_STAGES; stage++)
        for (size_t i = 0; i < work->stage[stage].chains; i++) {
            const size_t length = work->stage[stage].length;
            struct chain *chain = &queue->chain[queue->n_chains++];
            chain->stage = (enum stage)stage, chain->number = i;
            chain->before = before, chain->length = length;
            before += length;
        }
}

// Threads of a stream's own.
static int helper_count(const struct partita_plan *plan)
{
    return plan->executor.run ? 0 : plan->stream_threads - 1;
}

struct workers *workers_layout(const struct partita_stream *stream, struct arena *arena)
{
    const int n_threads = helper_count(stream->plan);
    if (!stream->plan->executor.run && n_threads < 1) return NULL;
    struct workers *workers = arena_take(arena, sizeof *workers);
    pthread_t *threads = arena_take(arena, (size_t)n_threads * sizeof *threads);
    if (workers) workers->threads = threads;
    for (size_t i = 0; i < segment_count(stream); i++) {
        const struct segment_work *work = &partitioned_of(stream->plan)->work[i];
        size_t chains = 0;
        for (int stage = 0; stage < N_STAGES; stage++) chains += work->stage[stage].chains;
        struct chain *chain = arena_take(arena, size_mul(chains, sizeof *chain));
        if (!workers) continue;
        workers->queue[i].chain = chain;
        fill_queue(&workers->queue[i], work);
    }
    return workers;
}

// Signals are for the application's threads, but for those of a thread's own faults.
static enum partita_status start_helpers(struct workers *workers, int n_threads)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    sigset_t blocked, callers;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &callers);
    while (workers->n_threads < n_threads &&
           !pthread_create(&workers->threads[workers->n_threads], NULL, helper_thread, workers))
        workers->n_threads++;
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    // If some are missing workers_close ends those that have begun.
    return workers->n_threads == n_threads ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

enum partita_status workers_open(struct partita_stream *stream)
{
    struct workers *workers = workers_of(stream);
    if (!workers) return PARTITA_OK;
    workers->stream = stream;
    workers->forks = thread_forks();
    sem_init(&workers->semaphore, 0, 0);
    workers_resume(stream);
    return start_helpers(workers, helper_count(stream->plan));
}

void workers_close(struct partita_stream *stream)
{
    struct workers *workers = workers_of(stream);
    if (!workers) return;
    atomic_store_explicit(&workers->stop, true, memory_order_release);
    workers_step(stream);                               // ends those that are blocked
    const bool here = workers->forks == thread_forks(); // not in a child of fork()
    for (int i = 0; i < workers->n_threads && here; i++) pthread_join(workers->threads[i], NULL);
    sem_destroy(&workers->semaphore);
}
