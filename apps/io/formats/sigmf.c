// SPDX-License-Identifier: MIT
// See sigmf.h.
#include "sigmf.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <partita/partita.h>

static const char DATA[] = ".sigmf-data", META[] = ".sigmf-meta";

static bool ends_with(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

// Replaces the suffix of `path`, which is .sigmf-data or .sigmf-meta, both of one length.
static bool with_suffix(char ret[PATH_MAX], const char *path, const char *suffix)
{
    size_t n = strlen(path) - strlen(suffix);
    return snprintf(ret, PATH_MAX, "%.*s%s", (int)n, path, suffix) < PATH_MAX;
}

bool sigmf_is_recording(const char *path)
{
    char meta[PATH_MAX];
    if (ends_with(path, META)) return true;
    return ends_with(path, DATA) && with_suffix(meta, path, META) && access(meta, F_OK) == 0;
}

const char *sigmf_samples(const char *path, char buffer[PATH_MAX])
{
    return ends_with(path, META) && with_suffix(buffer, path, DATA) ? buffer : path;
}

bool sigmf_check_output(const char *path, struct fault *fault)
{
    char data[PATH_MAX];
    if (sigmf_samples(path, data) == path) return true;
    return fault_set(fault, "%s: is written beside the samples; name %s", path, data);
}

static bool sigmf_parse_global(const json_t *global, const char *meta, struct sigmf *ret,
                               struct fault *fault)
{
    const char *type = json_string_value(json_object_get(global, "core:datatype"));
    const json_t *rate = json_object_get(global, "core:sample_rate");
    const json_t *channels = json_object_get(global, "core:num_channels");
    if (!type) return fault_set(fault, "%s: has no core:datatype", meta);
    if (!encoding_parse(type, &ret->encoding))
        return fault_set(fault, "%s: core:datatype %s is not supported", meta, type);
    double hertz = json_is_number(rate) ? json_number_value(rate) : 0;
    if (hertz < 0 || hertz > UINT32_MAX || hertz != (double)(uint32_t)hertz)
        return fault_set(fault, "%s: core:sample_rate %g is not a whole number of Hz below 2^32",
                         meta, hertz);
    ret->rate = (uint32_t)hertz;
    ret->channels = channels ? (size_t)json_integer_value(channels) : 1;
    if (ret->channels < 1)
        return fault_set(fault, "%s: core:num_channels is not a number above 0", meta);
    if (json_is_true(json_object_get(global, "core:metadata_only")))
        return fault_set(fault, "%s: is a recording of metadata only, without samples", meta);
    if (json_integer_value(json_object_get(global, "core:trailing_bytes")))
        return fault_set(fault, "%s: has core:trailing_bytes, which are not supported", meta);
    return true;
}

static bool sigmf_parse(const json_t *root, const char *meta, struct sigmf *ret,
                        struct fault *fault)
{
    const json_t *global = json_object_get(root, "global"),
                 *captures = json_object_get(root, "captures");
    if (!json_is_object(global) || !json_is_array(captures))
        return fault_set(fault, "%s: has no global object or no captures", meta);
    for (size_t i = 0; i < json_array_size(captures); i++)
        if (json_integer_value(json_object_get(json_array_get(captures, i), "core:header_bytes")))
            return fault_set(fault, "%s: has core:header_bytes, which are not supported", meta);
    const char *dataset = json_string_value(json_object_get(global, "core:dataset"));
    if (dataset && strchr(dataset, '/'))
        return fault_set(fault, "%s: core:dataset %s is not a file name", meta, dataset);
    const char *slash = strrchr(meta, '/');
    int n_folder = slash ? (int)(slash - meta + 1) : 0;
    bool fits = dataset
                    ? snprintf(ret->data, PATH_MAX, "%.*s%s", n_folder, meta, dataset) < PATH_MAX
                    : with_suffix(ret->data, meta, DATA);
    return (fits || fault_set(fault, "%s: name too long", meta)) &&
           sigmf_parse_global(global, meta, ret, fault);
}

bool sigmf_read(const char *path, struct sigmf *ret, struct fault *fault)
{
    char meta[PATH_MAX];
    json_error_t error;
    *ret = (struct sigmf){0};
    if (!with_suffix(meta, path, META)) return fault_set(fault, "%s: name too long", path);
    FILE *file = fopen(meta, "re");
    if (!file) return fault_set(fault, "%s: cannot open: %s", meta, strerror(errno));
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    bool good = root ? sigmf_parse(root, meta, ret, fault)
                     : fault_set(fault, "%s: is not JSON: %s", meta, error.text);
    json_decref(root);
    return good;
}

static json_t *sigmf_compose(const struct audio_info *info)
{
    char type[ENCODING_NAME_SIZE], recorder[32];
    snprintf(recorder, sizeof recorder, "partita %s", partita_version());
    json_t *global =
        json_pack("{s:s, s:s, s:s, s:I}", "core:datatype", encoding_name(info->encoding, type),
                  "core:version", "1.0.0", "core:recorder", recorder, "core:num_channels",
                  (json_int_t)info->channels);
    if (info->rate) json_object_set_new(global, "core:sample_rate", json_integer(info->rate));
    return json_pack("{s:o, s:[{s:i}], s:[]}", "global", global, "captures", "core:sample_start", 0,
                     "annotations");
}

bool sigmf_write(const char *path, const struct audio_info *info, struct fault *fault)
{
    char meta[PATH_MAX];
    if (!ends_with(path, DATA)) return true;
    if (!with_suffix(meta, path, META)) return fault_set(fault, "%s: name too long", path);
    json_t *root = sigmf_compose(info);
    FILE *file = root ? fopen(meta, "we") : NULL;
    bool good = file && json_dumpf(root, file, JSON_INDENT(2)) == 0 && fputc('\n', file) != EOF;
    if (file && fclose(file)) good = false;
    json_decref(root);
    return good || fault_set(fault, "%s: cannot write: %s", meta, strerror(errno));
}
