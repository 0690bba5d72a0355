// SPDX-License-Identifier: MIT
// A handler for custom calls of XLA, by which JAX calls the library. XLA's interface for foreign
// functions (xla/ffi/api/c_api.h) is a stable C ABI of structs that state their size and grow at
// the end. The structs below have the fields up to the last one that is read here.
#include <pthread.h>
#include <sys/mman.h>

enum { XLA_METADATA = 1, XLA_ARRAY = 1, XLA_INTERNAL = 13 };

struct xla_version {
    size_t bytes;
    void *extension;
    int major, minor;
};

struct xla_extension {
    size_t bytes;
    int type;
    void *next;
    struct {
        size_t bytes;
        struct xla_version version;
    } * metadata; // if the type is XLA_METADATA
};

struct xla_error {
    size_t bytes;
    void *extension;
    const char *message;
    int code;
};

struct xla_api {
    size_t bytes;
    void *extension;
    struct xla_version version;
    const void *internal;
    void *(*create_error)(struct xla_error *error);
};

struct xla_buffer {
    size_t bytes;
    void *extension;
    int type;
    void *data;
};

struct xla_array {
    int type;
    size_t n;
    const void *data;
};

struct xla_list {
    size_t bytes;
    void *extension;
    int64_t n;
    const int *types;  // [n]
    void *const *item; // [n]
};

struct xla_frame {
    size_t bytes;
    const struct xla_extension *extension;
    const struct xla_api *api;
    void *context;
    int stage;
    struct xla_list from, to, attributes; // items: buffers, buffers, names
    struct xla_array *const *attribute;
};

// Large memory that a call has released is kept for the next one: new pages would be cleared.
enum { XLA_PAGE = 1 << 21, XLA_KEPT = 1 << 28 };

struct xla_block {
    _Alignas(64) struct xla_block *next;
    size_t bytes; // with this struct
};

static struct xla_block *xla_blocks; // the one released last is first
static pthread_mutex_t xla_lock = PTHREAD_MUTEX_INITIALIZER;

static void *xla_allocate(void *user, size_t bytes)
{
    const size_t unit = bytes < XLA_PAGE / 2 ? sizeof(struct xla_block) : XLA_PAGE;
    const size_t whole = (bytes + sizeof(struct xla_block) + unit - 1) / unit * unit;
    (void)user;
    pthread_mutex_lock(&xla_lock);
    struct xla_block **at = &xla_blocks;
    while (*at && ((*at)->bytes < whole || (*at)->bytes / 2 > whole)) at = &(*at)->next;
    struct xla_block *block = *at;
    if (block) *at = block->next;
    pthread_mutex_unlock(&xla_lock);
    if (block) return block + 1;
    block = aligned_alloc(unit, whole);
    if (block && unit == XLA_PAGE) madvise(block, whole, MADV_HUGEPAGE);
    if (block) block->bytes = whole;
    return block ? block + 1 : NULL;
}

static void xla_release(void *user, void *memory)
{
    struct xla_block *dropped = (struct xla_block *)memory - 1;
    (void)user;
    dropped->next = NULL;
    if (dropped->bytes >= XLA_PAGE) {
        pthread_mutex_lock(&xla_lock);
        dropped->next = xla_blocks;
        xla_blocks = dropped;
        struct xla_block **at = &xla_blocks;
        for (size_t kept = 0; *at && (kept += (*at)->bytes) <= XLA_KEPT;) at = &(*at)->next;
        dropped = *at;
        *at = NULL;
        pthread_mutex_unlock(&xla_lock);
    }
    for (struct xla_block *next; dropped; dropped = next) {
        next = dropped->next;
        free(dropped);
    }
}

// The only attribute of a call holds the bytes of this struct.
struct py_xla_layer {
    struct partita_problem problem;
    enum partita_direction direction;
    int threads;
};

// A plan. It is kept as long as the process, as compiled programs of JAX are.
struct xla_plan {
    struct xla_plan *next;
    struct py_xla_layer layer;
    struct partita_plan *plan;
};

static _Atomic(struct xla_plan *) xla_plans;

// The plan of a call; two threads may well make the same.
static enum partita_status xla_find(const void *layer, const struct xla_plan **ret_plan)
{
    struct xla_plan *first = atomic_load(&xla_plans), *found = first;
    while (found && memcmp(&found->layer, layer, sizeof found->layer)) found = found->next;
    if (!found) {
        found = calloc(1, sizeof *found);
        if (!found) return PARTITA_ERR_NOMEM;
        memcpy(&found->layer, layer, sizeof found->layer);
        struct partita_options options = {.threads = found->layer.threads, .filter_uses = 1};
        options.directions = found->layer.direction;
        options.allocator = (struct partita_allocator){xla_allocate, xla_release, NULL};
        options.log.line = py_log_line;
        const enum partita_status status =
            partita_plan_create(&found->layer.problem, &options, &found->plan);
        if (status != PARTITA_OK) {
            free(found);
            return status;
        }
        found->next = first;
        while (!atomic_compare_exchange_weak(&xla_plans, &found->next, found)) continue;
    }
    *ret_plan = found;
    return PARTITA_OK;
}

static enum partita_status xla_run(const struct xla_frame *frame)
{
    if (frame->from.n != 2 || frame->to.n != 1 || frame->attributes.n != 1 ||
        *frame->attributes.types != XLA_ARRAY ||
        (*frame->attribute)->n != sizeof(struct py_xla_layer))
        return PARTITA_ERR_STATE;
    const struct xla_plan *made;
    const enum partita_status status = xla_find((*frame->attribute)->data, &made);
    if (status != PARTITA_OK) return status;
    const struct xla_buffer *operand = *frame->from.item, *second = frame->from.item[1];
    const void *from = operand->data, *other = second->data;
    void *to = ((struct xla_buffer *)*frame->to.item)->data;
    const struct partita_call call = {.taps = other};
    switch (made->layer.direction) {
    case PARTITA_FORWARD:
        return partita_forward(made->plan, NULL, to, from, &call);
    case PARTITA_BACKWARD_DATA:
        return partita_backward_data(made->plan, NULL, to, from, &call);
    default:
        return partita_backward_weight(made->plan, to, from, other, NULL);
    }
}

// The handler. When it is registered, XLA asks which version it is made for: all versions 0.x have
// these structs.
static void *py_xla_call(void *xla_frame)
{
    const struct xla_frame *frame = xla_frame;
    const struct xla_extension *extension = frame->extension;
    if (extension && extension->type == XLA_METADATA) {
        extension->metadata->version = frame->api->version;
        return NULL;
    }
    const char *text = "this version of XLA has another interface for foreign functions";
    if (frame->api->version.major == 0 && frame->bytes >= sizeof *frame &&
        frame->from.bytes == sizeof frame->from && frame->to.bytes == sizeof frame->to) {
        py_log_forget();
        const enum partita_status status = xla_run(frame);
        if (status == PARTITA_OK) return NULL;
        text = *py_log_lines() ? py_log_lines() : partita_status_string(status);
    }
    return frame->api->create_error(
        &(struct xla_error){sizeof(struct xla_error), NULL, text, XLA_INTERNAL});
}
