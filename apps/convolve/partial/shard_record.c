// SPDX-License-Identifier: MIT
// See shard_record.h. Numbers are stored as strings: many JSON readers use doubles, and keys have
// 64 bits.
#include "shard_record.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/bytes/bytes.h"
#include "io/bytes/temp.h"

static const char KIND[] = "partita part 2";

// NULL: out of memory. Written without jansson, which without memory returns damaged text.
static char *shard_record_compose(const struct shard_record *r)
{
    char *text;
    const int n = asprintf(
        &text,
        "{\n \"kind\": \"%s\",\n \"key\": \"%" PRIu64 "\",\n \"first\": \"%" PRIu64
        "\",\n \"end\": \"%" PRIu64 "\",\n \"total\": \"%" PRIu64 "\",\n \"done\": \"%" PRIu64
        "\",\n \"input_time\": \"%" PRIu64 "\",\n \"input\": \"%" PRIu64
        "\",\n \"digest\": \"%" PRIu64 "\",\n \"clipped\": \"%" PRIu64
        "\",\n \"invalid\": \"%" PRIu64 "\",\n \"format\": \"%s\"\n}",
        KIND, r->key, r->first, r->end, r->total, r->done, (uint64_t)r->input_time, r->input,
        r->digest, r->clipped, r->invalid, r->format);
    return n >= 0 ? text : NULL;
}

bool shard_record_write(const char *path, const struct shard_record *record, struct fault *fault)
{
    return temp_write_text(path, shard_record_compose(record), true, fault);
}

const char *shard_record_digits(const char *text, uint64_t *ret)
{
    char *end;
    if (*text < '0' || *text > '9') return NULL;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno ? NULL : end;
}

static bool get_number(const json_t *object, const char *name, uint64_t *ret)
{
    const char *text = json_string_value(json_object_get(object, name));
    const char *end = text ? shard_record_digits(text, ret) : NULL;
    return end && !*end;
}

static bool shard_record_parse(const json_t *object, struct shard_record *r)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const char *format = json_string_value(json_object_get(object, "format"));
    uint64_t time;
    if (!kind || strcmp(kind, KIND) != 0 || !format || strlen(format) >= sizeof r->format)
        return false;
    strcpy(r->format, format);
    bool good =
        get_number(object, "key", &r->key) && get_number(object, "first", &r->first) &&
        get_number(object, "end", &r->end) && get_number(object, "total", &r->total) &&
        get_number(object, "done", &r->done) && get_number(object, "input_time", &time) &&
        get_number(object, "input", &r->input) && get_number(object, "digest", &r->digest) &&
        get_number(object, "clipped", &r->clipped) && get_number(object, "invalid", &r->invalid);
    if (!good) return false;
    r->input_time = (int64_t)time;
    return r->first <= r->end && r->end <= r->total && r->done <= r->end - r->first;
}

bool shard_record_read(const char *path, struct shard_record *ret_record, bool *ret_exists,
                       struct fault *fault)
{
    json_error_t error;
    *ret_exists = false;
    FILE *file = regular_open(path, fault);
    if (!file) return errno == ENOENT;
    json_t *object = json_loadf(file, 0, &error);
    fclose(file);
    *ret_exists = object && shard_record_parse(object, ret_record);
    json_decref(object);
    return *ret_exists || fault_set(fault, "%s: is not the record of a shard", path);
}

bool shard_record_remove(const char *path, struct fault *fault)
{
    struct shard_record record;
    struct fault ignored;
    bool exists;
    if (!shard_record_read(path, &record, &exists, &ignored) || !exists) return true;
    return unlink(path) == 0 || errno == ENOENT ||
           fault_set(fault, "%s: cannot remove: %s", path, strerror(errno));
}

char *shard_record_path(const char *output, struct fault *fault)
{
    char *path;
    if (asprintf(&path, "%s.range", output) >= 0) return path;
    fault_set(fault, "out of memory");
    return NULL;
}

static bool discard_beside(const char *output, struct fault *fault)
{
    char *path = shard_record_path(output, fault);
    bool good = path && shard_record_remove(path, fault);
    free(path);
    return good;
}

bool shard_record_discard(const char *output, struct fault *fault)
{
    char *target = realpath(output, NULL); // NULL: there is no such file yet
    bool good = discard_beside(output, fault) && (!target || discard_beside(target, fault));
    free(target);
    return good;
}
