// SPDX-License-Identifier: MIT
// The queue. An operation runs as late as the rules allow: when a caller, or an operation that must
// run, waits for it; operations of other streams do not run then. In random orders some run
// earlier, so that tests find a missing wait in either direction.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct CUevent_st {
    uint64_t ticket; // of the last record, 0: none
    int device;
    struct CUevent_st *next;
};

static struct operation *first, **last = &first;
static struct CUevent_st *events;
static uint64_t n_tickets;

static void copy(const struct operation *o)
{
    memory_check(o->to, o->bytes);
    memory_check(o->from, o->bytes);
    memcpy(o->to, o->from, o->bytes);
}

static void set(const struct operation *o)
{
    memory_check(o->to, o->bytes);
    memset(o->to, o->value, o->bytes);
}

void operation_run(const struct operation *o)
{
    count_work(o);
    if (o->kind == COPY) copy(o);
    if (o->kind == SET || o->kind == ALLOCATE) set(o);
    if (o->kind == KERNEL) launch_run(&o->kernel);
    if (o->kind == CALL) o->kernel.run(o->kernel.call);
    if (o->kind == GRAPH) graph_run(o->graph);
    if (o->kind == RELEASE) memory_unmap(o->to);
}

void operation_free(struct operation *o)
{
    if (o->kind == KERNEL || o->kind == CALL) o->kernel.release(o->kernel.call);
    if (o->kind == GRAPH) graph_release(o->graph);
    free(o);
}

// Whether both are of one stream.
static bool is_with(const struct operation *o, const struct operation *other)
{
    return o->stream == other->stream && o->device == other->device &&
           (o->stream != cudaStreamPerThread || pthread_equal(o->owner, other->owner));
}

static struct operation *find_record(uint64_t ticket)
{
    struct operation *o = first;
    while (o && (o->kind != RECORD || o->ticket != ticket)) o = o->next;
    return o;
}

static void advance(const struct operation *until);

// On a lost device only releases run. Copies may be between devices; all else is of one.
static void perform(struct operation *o)
{
    if (o->done) return;
    o->done = true;
    const struct operation *record = o->kind == WAIT ? find_record(o->ticket) : NULL;
    if (record) advance(record);
    memory_open(o->kind == COPY || o->kind == RELEASE ? ALL_DEVICES : o->device);
    if (!device_lost() || o->kind == RELEASE) operation_run(o);
}

// Runs the operations of a stream up to this one.
static void advance(const struct operation *until)
{
    for (struct operation *o = first;; o = o->next) {
        if (is_with(o, until)) perform(o);
        if (o == until) return;
    }
}

static void sweep(void)
{
    struct operation **at = &first;
    while (*at) {
        struct operation *o = *at;
        if (!o->done) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        operation_free(o);
    }
    last = at;
}

void queue_drain(cudaStream_t stream)
{
    const struct operation direct = {
        .stream = stream, .owner = pthread_self(), .device = stream_device(stream)};
    for (struct operation *o = first; o; o = o->next)
        if (!stream || is_with(o, &direct)) perform(o);
    sweep();
    memory_close();
}

void queue_append(const struct operation *operation)
{
    struct operation *o = malloc(sizeof *o);
    if (!o) hostdev_abort("out of memory");
    *o = *operation;
    o->owner = pthread_self();
    o->device = stream_device(o->stream);
    o->done = false;
    o->next = NULL;
    if (stream_records(o->stream, o)) return;
    *last = o;
    last = &o->next;
}

size_t queue_work(void)
{
    size_t n = 0;
    for (const struct operation *o = first; o; o = o->next)
        n += o->kind != ALLOCATE && o->kind != RELEASE;
    return n;
}

void queue_run_any(void)
{
    size_t n = 0;
    for (const struct operation *o = first; o; o = o->next) n++;
    size_t i = order_draw(2 * n); // half of the time none
    if (i == 0 || i > n) return;
    const struct operation *o = first;
    while (--i) o = o->next;
    advance(o);
    sweep();
    memory_close();
}

size_t event_count(void)
{
    size_t n = 0;
    for (const struct CUevent_st *event = events; event; event = event->next) n++;
    return n;
}

static struct CUevent_st **find_event(cudaEvent_t event)
{
    struct CUevent_st **at = &events;
    while (*at && *at != event) at = &(*at)->next;
    if (!*at) hostdev_abort("an event that does not exist");
    return at;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    const cudaError_t error = call_begin();
    if (error != cudaSuccess) return call_end(error);
    if (flags != cudaEventDisableTiming) return call_end(cudaErrorInvalidValue);
    struct CUevent_st *made = malloc(sizeof *made);
    if (!made) hostdev_abort("out of memory");
    *made = (struct CUevent_st){.device = device_current(), .next = events};
    *event = events = made;
    return call_end(cudaSuccess);
}

// Releases even when it returns an error of an earlier call, as the run-time does.
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    const cudaError_t error = call_begin();
    *find_event(event) = event->next;
    free(event);
    return call_end(error);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const cudaError_t error = call_begin();
    find_event(event);
    if (error == cudaSuccess && stream_capture_forbids_work(stream))
        return call_end(cudaErrorStreamCaptureUnsupported);
    if (error == cudaSuccess && event->device != stream_device(stream))
        return call_end(cudaErrorInvalidResourceHandle);
    if (error == cudaSuccess) {
        event->ticket = ++n_tickets;
        queue_append(
            &(struct operation){.kind = RECORD, .stream = stream, .ticket = event->ticket});
    }
    return call_end(error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    const cudaError_t error = call_begin();
    find_event(event);
    if (flags) return call_end(cudaErrorInvalidValue);
    if (error == cudaSuccess && stream_capture_forbids_work(stream))
        return call_end(cudaErrorStreamCaptureUnsupported);
    if (error == cudaSuccess)
        queue_append(&(struct operation){.kind = WAIT, .stream = stream, .ticket = event->ticket});
    return call_end(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const cudaError_t error = call_begin();
    find_event(event);
    if (stream_capture_forbids()) return call_end(cudaErrorStreamCaptureUnsupported);
    count_wait();
    const struct operation *record = find_record(event->ticket);
    if (record) {
        advance(record);
        sweep();
        memory_close();
    }
    return call_end(error);
}
