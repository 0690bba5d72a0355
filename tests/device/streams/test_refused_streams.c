// SPDX-License-Identifier: MIT
// Streams on the stand-in of which any one call of CUDA is refused: a stream goes on with the right
// bits as if the call had not been made, or it has failed and says so from then on.
#include "device/arrays.h"
#include "support/problems.h"

enum { BLOCK = 32, TAPS = 300, FRAMES = 320, FIRST = 100, FADE = 20 };

static const cudaError_t errors[] = {cudaErrorInvalidValue, cudaErrorInvalidConfiguration,
                                     cudaErrorMemoryAllocation, cudaErrorStreamCaptureUnsupported};
enum { N_ERRORS = sizeof errors / sizeof *errors };

struct refused {
    struct partita_plan *plan;
    struct partita_filter *filter;
    float x[FRAMES], expected[FRAMES];
    float *device_x, *device_y;
    cudaStream_t queue;
};

static void open_refused(struct refused *r)
{
    static const struct partita_problem problem = {STREAM(BLOCK), KERNEL(TAPS)};
    const struct partita_options options = {.engine = "cuda/partitioned", .device = "cuda:0"};
    struct random random = random_start("refused");
    struct partita_stream *stream;
    float taps[TAPS];
    random_samples(&random, PARTITA_F32, taps, TAPS);
    random_samples(&random, PARTITA_F32, r->x, FRAMES);
    assert_ok(partita_plan_create(&problem, &options, &r->plan));
    assert_ok(partita_filter_create(r->plan, taps, &r->filter));
    assert_ok(partita_stream_open(r->plan, r->filter, &stream));
    partita_stream_process(stream, (void *[]){r->expected}, (const void *[]){r->x}, FRAMES);
    assert_ok(partita_stream_status(stream));
    partita_stream_close(stream);
    r->device_x = device_copy(r->x, sizeof r->x, 0);
    r->device_y = array_allocate(DEVICE, sizeof r->x);
    assert_int_equal(cudaStreamCreateWithFlags(&r->queue, cudaStreamNonBlocking), cudaSuccess);
}

static void close_refused(struct refused *r)
{
    partita_filter_destroy(r->filter);
    partita_plan_destroy(r->plan);
    array_release(DEVICE, r->device_x);
    array_release(DEVICE, r->device_y);
    cudaStreamDestroy(r->queue);
    assert_int_equal(hostdev_allocations(), 0);
}

static enum partita_status queue_frames(const struct refused *r, struct partita_stream *stream,
                                        size_t first, size_t end)
{
    return partita_stream_process_queued(stream, (void *[]){r->device_y + first},
                                         (const void *[]){r->device_x + first}, end - first,
                                         r->queue);
}

static void check_outputs(const struct refused *r)
{
    float y[FRAMES];
    assert_int_equal(cudaStreamSynchronize(r->queue), cudaSuccess);
    assert_int_equal(cudaMemcpy(y, r->device_y, sizeof y, cudaMemcpyDefault), cudaSuccess);
    assert_memory_equal(y, r->expected, sizeof y);
}

// The k-th call of CUDA in a call of several quanta is refused; false: it has fewer. `swap` makes
// the handover of a filter, the stream's own, the first work of the call.
static bool refuse_queued(const struct refused *r, size_t k, cudaError_t error, bool swap,
                          size_t *failed)
{
    struct partita_stream *stream;
    assert_ok(partita_stream_open(r->plan, r->filter, &stream));
    assert_ok(queue_frames(r, stream, 0, FIRST));
    if (swap) assert_ok(partita_stream_swap(stream, r->filter, FADE));
    assert_int_equal(cudaStreamSynchronize(r->queue), cudaSuccess);
    hostdev_fail(k, error);
    const enum partita_status status = queue_frames(r, stream, FIRST, FRAMES);
    const bool reached = hostdev_calls() >= k;
    hostdev_fail(0, cudaSuccess);
    assert_int_equal(partita_stream_status(stream),
                     status == PARTITA_ERR_DEVICE ? PARTITA_ERR_DEVICE : PARTITA_OK);
    if (status == PARTITA_ERR_DEVICE) {
        assert_int_equal(queue_frames(r, stream, FIRST, FRAMES), PARTITA_ERR_DEVICE);
        assert_false(partita_stream_swapping(stream));
        cudaStreamSynchronize(r->queue);
        ++*failed;
    } else {
        if (status != PARTITA_OK) assert_ok(queue_frames(r, stream, FIRST, FRAMES));
        check_outputs(r);
    }
    partita_stream_close(stream);
    return reached;
}

static void queued(void **state)
{
    static struct refused r;
    (void)state;
    open_refused(&r);
    for (size_t e = 0; e < N_ERRORS; e++)
        for (int swap = 0; swap < 2; swap++) {
            size_t k = 1, failed = 0;
            while (refuse_queued(&r, k, errors[e], swap, &failed)) k++;
            assert_true(failed > 0 && failed + 1 < k);
        }
    close_refused(&r);
}

static void host_arrays(void **state)
{
    static struct refused r;
    float y[FRAMES];
    (void)state;
    open_refused(&r);
    for (size_t e = 0; e < N_ERRORS; e++) {
        const enum partita_status lasting =
            errors[e] == cudaErrorMemoryAllocation ? PARTITA_ERR_NOMEM : PARTITA_ERR_DEVICE;
        bool reached = true;
        size_t failed = 0;
        for (size_t k = 1; reached; k++) {
            struct partita_stream *stream;
            assert_ok(partita_stream_open(r.plan, r.filter, &stream));
            hostdev_fail(k, errors[e]);
            partita_stream_process(stream, (void *[]){y}, (const void *[]){r.x}, FRAMES);
            reached = hostdev_calls() >= k;
            hostdev_fail(0, cudaSuccess);
            const enum partita_status status = partita_stream_status(stream);
            if (status == PARTITA_OK) assert_memory_equal(y, r.expected, sizeof y);
            else assert_int_equal(status, lasting);
            failed += status != PARTITA_OK;
            partita_stream_close(stream);
        }
        assert_true(failed > 0);
    }
    close_refused(&r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(queued),
        cmocka_unit_test(host_arrays),
    };
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    return run_test_list(tests, sizeof tests / sizeof *tests);
}
