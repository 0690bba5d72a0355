// SPDX-License-Identifier: MIT
// Streams, their captures, and pinned memory of the host. Operations of a destroyed stream stay
// queued.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct CUstream_st {
    cudaGraphExec_t recording; // NULL: not recording
    bool failed;               // an operation to record failed
    enum cudaStreamCaptureMode mode;
    pthread_t capturer; // the thread that records
    int device;
    struct CUstream_st *next;
};

struct pinned {
    void *memory;
    size_t bytes;
    struct pinned *next;
};

static struct CUstream_st *streams;
static struct pinned *pins;
static _Thread_local enum cudaStreamCaptureMode thread_mode;

static void *allocate(size_t bytes)
{
    void *made = calloc(1, bytes);
    if (!made) hostdev_abort("out of memory");
    return made;
}

static struct CUstream_st **find(cudaStream_t stream)
{
    struct CUstream_st **at = &streams;
    while (*at && *at != stream) at = &(*at)->next;
    if (!*at) hostdev_abort("a stream that does not exist");
    return at;
}

int stream_device(cudaStream_t stream)
{
    return !stream || stream == cudaStreamPerThread ? device_current() : (*find(stream))->device;
}

bool stream_records(cudaStream_t stream, struct operation *operation)
{
    if (stream == cudaStreamPerThread) return false;
    cudaGraphExec_t graph = (*find(stream))->recording;
    if (!graph) return false;
    if (operation->kind == ALLOCATE || operation->kind == RELEASE)
        hostdev_abort("recorded an allocation");
    graph_append(graph, operation);
    return true;
}

bool stream_is_recording(cudaStream_t stream)
{
    return stream != cudaStreamPerThread && (*find(stream))->recording;
}

// The rules of cudaStreamBeginCapture; stricter for work on other streams, which is never forked.
bool stream_capture_forbids(void)
{
    bool forbidden = false;
    for (struct CUstream_st *s = streams; s && thread_mode != cudaStreamCaptureModeRelaxed;
         s = s->next) {
        const bool by_capturer = pthread_equal(s->capturer, pthread_self());
        if (!s->recording || s->mode == cudaStreamCaptureModeRelaxed ||
            !(by_capturer || s->mode == cudaStreamCaptureModeGlobal))
            continue;
        s->failed = forbidden = true;
    }
    return forbidden;
}

// Whether the calling thread records another stream.
bool stream_capture_forbids_work(cudaStream_t stream)
{
    bool forbidden = false;
    for (struct CUstream_st *s = streams; s && thread_mode != cudaStreamCaptureModeRelaxed;
         s = s->next)
        if (s->recording && s != stream && pthread_equal(s->capturer, pthread_self()))
            s->failed = forbidden = true;
    return forbidden;
}

void stream_recording_failed(cudaStream_t stream)
{
    if (stream == cudaStreamPerThread) return;
    struct CUstream_st *at = *find(stream);
    if (at->recording) at->failed = true;
}

size_t stream_count(void)
{
    size_t n = graph_count();
    for (struct CUstream_st *s = streams; s; s = s->next) n++;
    for (struct pinned *p = pins; p; p = p->next) n++;
    return n;
}

bool pinned_contains(const void *pointer)
{
    const char *byte = pointer;
    for (const struct pinned *p = pins; p; p = p->next)
        if (byte >= (char *)p->memory && byte < (char *)p->memory + p->bytes) return true;
    return false;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return call_end(call_begin());
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    const cudaError_t error = call_begin();
    if (flags != cudaStreamNonBlocking || priority < -5 || priority > 0)
        return call_end(cudaErrorInvalidValue);
    if (error != cudaSuccess) return call_end(error);
    struct CUstream_st *made = allocate(sizeof *made);
    made->device = device_current();
    made->next = streams;
    *stream = streams = made;
    return call_end(cudaSuccess);
}

// Releases even when it returns an error of an earlier call, as the run-time does; so do the
// functions below.
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const cudaError_t error = call_begin();
    struct CUstream_st **at = find(stream);
    if ((*at)->recording) hostdev_abort("destroyed a recording stream");
    *at = stream->next;
    free(stream);
    return call_end(error);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    const cudaError_t error = call_begin();
    if (error != cudaSuccess) return call_end(error);
    if ((*find(stream))->recording) return call_end(cudaErrorInvalidValue);
    stream->mode = mode;
    stream->capturer = pthread_self();
    stream->recording = graph_new();
    return call_end(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    const cudaError_t error = call_begin();
    *status = !stream_is_recording(stream) ? cudaStreamCaptureStatusNone
              : stream->failed             ? cudaStreamCaptureStatusInvalidated
                                           : cudaStreamCaptureStatusActive;
    return call_end(error);
}

// Concerns only the thread: it does not fail, and is not counted.
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    const enum cudaStreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaError_t error = call_begin();
    cudaGraphExec_t recorded = (*find(stream))->recording;
    if (error == cudaSuccess && stream->failed) error = cudaErrorStreamCaptureInvalidated;
    stream->recording = NULL;
    stream->failed = false;
    *graph = NULL;
    if (error != cudaSuccess) {
        if (recorded) graph_release(recorded);
        return call_end(error);
    }
    if (!recorded) return call_end(cudaErrorInvalidValue);
    *graph = graph_of(recorded);
    return call_end(cudaSuccess);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    const cudaError_t error = call_begin();
    (void)flags;
    if (error != cudaSuccess) return call_end(error);
    if (stream_capture_forbids()) return call_end(cudaErrorStreamCaptureUnsupported);
    count_allocation();
    struct pinned *pin = allocate(sizeof *pin);
    *pin = (struct pinned){aligned_alloc(256, (bytes + 255) / 256 * 256), bytes, pins};
    if (!pin->memory) hostdev_abort("out of memory");
    memset(pin->memory, 0xff, bytes);
    pins = pin;
    *memory = pin->memory;
    return call_end(cudaSuccess);
}

cudaError_t cudaFreeHost(void *memory)
{
    const cudaError_t error = call_begin();
    if (stream_capture_forbids()) return call_end(cudaErrorStreamCaptureUnsupported);
    count_allocation();
    queue_drain(NULL); // as the run-time does
    struct pinned **at = &pins;
    while (*at && (*at)->memory != memory) at = &(*at)->next;
    if (!*at) hostdev_abort("released %p, which is not pinned", memory);
    struct pinned *pin = *at;
    *at = pin->next;
    free(pin->memory);
    free(pin);
    return call_end(error);
}
