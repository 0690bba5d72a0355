// SPDX-License-Identifier: MIT
// See shard_record.h. Numbers are stored as strings: many JSON readers use doubles, and keys have
// 64 bits.
#include "shard_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/bytes/bytes.h"

static const char KIND[] = "partita part 1";

static void set_number(json_t *object, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_object_set_new(object, name, json_string(text));
}

static char *shard_record_compose(const struct shard_record *r)
{
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string(KIND));
    set_number(object, "key", r->key);
    set_number(object, "first", r->first);
    set_number(object, "end", r->end);
    set_number(object, "total", r->total);
    set_number(object, "done", r->done);
    set_number(object, "input_time", (uint64_t)r->input_time);
    set_number(object, "clipped", r->clipped);
    set_number(object, "invalid", r->invalid);
    json_object_set_new(object, "format", json_string(r->format));
    char *text = json_dumps(object, JSON_INDENT(1));
    json_decref(object);
    return text;
}

static bool write_synced(const char *path, const char *text, struct fault *fault)
{
    struct sink sink;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return fault_set(fault, "%s: cannot create: %s", path, strerror(errno));
    sink_from_fd(&sink, fd, path);
    if (sink_write(&sink, text, strlen(text)) && fsync(fd)) sink.error = errno;
    return sink_close(&sink) || sink_fault(&sink, fault);
}

bool shard_record_write(const char *path, const struct shard_record *record, struct fault *fault)
{
    char *text = shard_record_compose(record), *temporary = NULL;
    if (!text || asprintf(&temporary, "%s~", path) < 0) {
        free(text);
        return fault_set(fault, "out of memory");
    }
    bool good = write_synced(temporary, text, fault);
    if (good && rename(temporary, path))
        good = fault_set(fault, "%s: cannot write: %s", path, strerror(errno));
    if (!good) unlink(temporary);
    free(temporary);
    free(text);
    return good;
}

static bool get_number(const json_t *object, const char *name, uint64_t *ret)
{
    const char *text = json_string_value(json_object_get(object, name));
    char *end;
    if (!text || !*text) return false;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return !*end && !errno;
}

static bool shard_record_parse(const json_t *object, struct shard_record *r)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const char *format = json_string_value(json_object_get(object, "format"));
    uint64_t time;
    if (!kind || strcmp(kind, KIND) != 0 || !format || strlen(format) >= sizeof r->format)
        return false;
    strcpy(r->format, format);
    bool good = get_number(object, "key", &r->key) && get_number(object, "first", &r->first) &&
                get_number(object, "end", &r->end) && get_number(object, "total", &r->total) &&
                get_number(object, "done", &r->done) && get_number(object, "input_time", &time) &&
                get_number(object, "clipped", &r->clipped) &&
                get_number(object, "invalid", &r->invalid);
    if (!good) return false;
    r->input_time = (int64_t)time;
    return r->first <= r->end && r->end <= r->total && r->done <= r->end - r->first;
}

bool shard_record_read(const char *path, struct shard_record *ret_record, bool *ret_exists,
                       struct fault *fault)
{
    json_error_t error;
    *ret_exists = false;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT || fault_set(fault, "%s: cannot open: %s", path, strerror(errno));
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

char *shard_record_path(const char *of, struct fault *fault)
{
    char *path;
    if (asprintf(&path, "%s.range", of) >= 0) return path;
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
