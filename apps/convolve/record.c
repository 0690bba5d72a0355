// SPDX-License-Identifier: MIT
// See record.h. Numbers are kept as text: JSON's own are doubles to some readers, and keys use all
// 64 bits.
#include "record.h"

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

static void put(json_t *object, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_object_set_new(object, name, json_string(text));
}

static char *compose(const struct record *r)
{
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string(KIND));
    put(object, "key", r->key);
    put(object, "first", r->first);
    put(object, "end", r->end);
    put(object, "total", r->total);
    put(object, "done", r->done);
    put(object, "input_time", (uint64_t)r->input_time);
    put(object, "clipped", r->clipped);
    put(object, "invalid", r->invalid);
    json_object_set_new(object, "format", json_string(r->format));
    char *text = json_dumps(object, JSON_INDENT(1));
    json_decref(object);
    return text;
}

static bool store(const char *path, const char *text, struct fault *fault)
{
    struct sink sink;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return fault_set(fault, "%s: cannot create: %s", path, strerror(errno));
    sink_from_fd(&sink, fd, path);
    if (sink_write(&sink, text, strlen(text)) && fsync(fd)) sink.error = errno;
    return sink_close(&sink) || sink_fault(&sink, fault);
}

bool record_write(const char *path, const struct record *record, struct fault *fault)
{
    char *text = compose(record), *temporary = NULL;
    if (!text || asprintf(&temporary, "%s~", path) < 0) {
        free(text);
        return fault_set(fault, "out of memory");
    }
    bool good = store(temporary, text, fault);
    if (good && rename(temporary, path))
        good = fault_set(fault, "%s: cannot write: %s", path, strerror(errno));
    if (!good) unlink(temporary);
    free(temporary);
    free(text);
    return good;
}

static bool take(const json_t *object, const char *name, uint64_t *ret)
{
    const char *text = json_string_value(json_object_get(object, name));
    char *end;
    if (!text || !*text) return false;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return !*end && !errno;
}

static bool parse(const json_t *object, struct record *r)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const char *format = json_string_value(json_object_get(object, "format"));
    uint64_t time;
    if (!kind || strcmp(kind, KIND) != 0 || !format || strlen(format) >= sizeof r->format)
        return false;
    strcpy(r->format, format);
    bool good = take(object, "key", &r->key) && take(object, "first", &r->first) &&
                take(object, "end", &r->end) && take(object, "total", &r->total) &&
                take(object, "done", &r->done) && take(object, "input_time", &time) &&
                take(object, "clipped", &r->clipped) && take(object, "invalid", &r->invalid);
    if (!good) return false;
    r->input_time = (int64_t)time;
    return r->first <= r->end && r->end <= r->total && r->done <= r->end - r->first;
}

bool record_read(const char *path, struct record *ret_record, bool *ret_exists, struct fault *fault)
{
    json_error_t error;
    *ret_exists = false;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT || fault_set(fault, "%s: cannot open: %s", path, strerror(errno));
    json_t *object = json_loadf(file, 0, &error);
    fclose(file);
    *ret_exists = object && parse(object, ret_record);
    json_decref(object);
    return *ret_exists || fault_set(fault, "%s: is no record of a part", path);
}

bool record_remove(const char *path, struct fault *fault)
{
    struct record record;
    struct fault ignored;
    bool exists;
    if (!record_read(path, &record, &exists, &ignored) || !exists) return true;
    return unlink(path) == 0 || errno == ENOENT ||
           fault_set(fault, "%s: cannot remove: %s", path, strerror(errno));
}

char *record_path(const char *of, struct fault *fault)
{
    char *path;
    if (asprintf(&path, "%s.range", of) >= 0) return path;
    fault_set(fault, "out of memory");
    return NULL;
}

static bool forget(const char *output, struct fault *fault)
{
    char *path = record_path(output, fault);
    bool good = path && record_remove(path, fault);
    free(path);
    return good;
}

bool record_forget(const char *output, struct fault *fault)
{
    char *behind = realpath(output, NULL); // NULL: there is no such file yet
    bool good = forget(output, fault) && (!behind || forget(behind, fault));
    free(behind);
    return good;
}
