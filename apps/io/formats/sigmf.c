// SPDX-License-Identifier: MIT
// See sigmf.h.
#include "sigmf.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
    struct sigmf sigmf;
    struct fault ignored;
    if (!sigmf_is_recording(path)) return path;
    if (!sigmf_read(path, &sigmf, &ignored)) return with_suffix(buffer, path, DATA) ? buffer : path;
    strcpy(buffer, sigmf.data);
    return buffer;
}

// Metadata that may be replaced with the samples they describe: those of `data`, if of any.
static bool describes(const char *meta, const char *data)
{
    FILE *file = regular_open(meta);
    json_t *root = file ? json_loadf(file, 0, NULL) : NULL;
    const json_t *global = json_object_get(root, "global");
    const char *dataset = json_string_value(json_object_get(global, "core:dataset"));
    const char *slash = strrchr(data, '/'), *name = slash ? slash + 1 : data;
    const bool good = json_is_object(global) && (!dataset || strcmp(dataset, name) == 0) &&
                      !json_is_true(json_object_get(global, "core:metadata_only"));
    if (file) fclose(file);
    json_decref(root);
    return good;
}

bool sigmf_check_output(const char *path, struct fault *fault)
{
    char name[PATH_MAX];
    struct stat st;
    if (ends_with(path, META)) {
        const bool fits = with_suffix(name, path, DATA);
        return fault_set(fault, "%s: is written beside the samples; name %s", path,
                         fits ? name : DATA);
    }
    if (!ends_with(path, DATA) || !with_suffix(name, path, META) || lstat(name, &st) != 0)
        return true;
    return (S_ISREG(st.st_mode) && describes(name, path)) ||
           fault_set(fault,
                     "%s: is no description of %s, which would replace it; name another output",
                     name, path);
}

// The number of bytes of a field, of which only 0 is supported.
static bool check_no_bytes(const json_t *object, const char *field, const char *meta,
                           struct fault *fault)
{
    const json_t *n = json_object_get(object, field);
    if (!n || (json_is_integer(n) && json_integer_value(n) == 0)) return true;
    if (!json_is_integer(n) || json_integer_value(n) < 0)
        return fault_set(fault, "%s: %s is not a number of bytes", meta, field);
    return fault_set(fault, "%s: has %s, which are not supported", meta, field);
}

static bool parse_sha512(const json_t *global, const char *meta, char ret[SHA512_TEXT],
                         struct fault *fault)
{
    const json_t *field = json_object_get(global, "core:sha512");
    const char *text = json_string_value(field);
    if (!field) return true;
    if (!text || strlen(text) != SHA512_TEXT - 1 ||
        strspn(text, "0123456789abcdefABCDEF") != SHA512_TEXT - 1)
        return fault_set(fault, "%s: core:sha512 is not a sum of 128 hexadecimal digits", meta);
    for (int i = 0; i < SHA512_TEXT; i++)
        ret[i] = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] - 'A' + 'a') : text[i];
    return true;
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
    return check_no_bytes(global, "core:trailing_bytes", meta, fault) &&
           parse_sha512(global, meta, ret->sha512, fault);
}

static bool sigmf_parse(const json_t *root, const char *meta, struct sigmf *ret,
                        struct fault *fault)
{
    const json_t *global = json_object_get(root, "global"),
                 *captures = json_object_get(root, "captures");
    if (!json_is_object(global) || !json_is_array(captures))
        return fault_set(fault, "%s: has no global object or no captures", meta);
    for (size_t i = 0; i < json_array_size(captures); i++)
        if (!check_no_bytes(json_array_get(captures, i), "core:header_bytes", meta, fault))
            return false;
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
    FILE *file = regular_open(meta);
    if (!file) return fault_set(fault, "%s: cannot open: %s", meta, strerror(errno));
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    bool good = root ? sigmf_parse(root, meta, ret, fault)
                     : fault_set(fault, "%s: is not JSON: %s", meta, error.text);
    json_decref(root);
    return good;
}

// NULL: out of memory. Written without jansson, which without memory returns damaged text.
static char *sigmf_compose(const struct audio_info *info)
{
    char type[ENCODING_NAME_SIZE], rate[64] = "", *text;
    if (info->rate)
        snprintf(rate, sizeof rate, ",\n    \"core:sample_rate\": %u", (unsigned)info->rate);
    const int n =
        asprintf(&text,
                 "{\n  \"global\": {\n    \"core:datatype\": \"%s\",\n"
                 "    \"core:version\": \"1.0.0\",\n"
                 "    \"core:recorder\": \"partita %s\",\n"
                 "    \"core:num_channels\": %zu%s\n  },\n"
                 "  \"captures\": [\n    {\n      \"core:sample_start\": 0\n    }\n  ],\n"
                 "  \"annotations\": []\n}\n",
                 encoding_name(info->encoding, type), partita_version(), info->channels, rate);
    return n >= 0 ? text : NULL;
}

bool sigmf_write(struct temp *meta, const char *path, const struct audio_info *info,
                 struct fault *fault)
{
    char name[PATH_MAX];
    *meta = (struct temp){0};
    if (!ends_with(path, DATA)) return true;
    if (!with_suffix(name, path, META)) return fault_set(fault, "%s: name too long", path);
    char *text = sigmf_compose(info);
    const bool good = text ? temp_write_beside(meta, name, text, false, fault)
                           : fault_set(fault, "out of memory");
    free(text);
    return good;
}
