// SPDX-License-Identifier: MIT
// The file of --annotate: the metadata of IN, or new ones if it has none, with an annotation for
// each peak. The values of a peak are in fields of the extension "partita", which readers may
// ignore, and in the comment.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_values.h"
#include "io/formats/sigmf_carry.h"
#include "search.h"

#include <partita/partita.h>

static const char EXTENSION[] = "partita";
enum { MAX_LABEL = 20 }; // bytes, as SigMF recommends

// The name of the file of samples `data` if it is in the folder of `path`, or NULL.
static const char *name_beside(const char *path, const char *data)
{
    struct fault ignored;
    char beside[PATH_MAX];
    const int folder = (int)(path_base(path) - path);
    const int n = snprintf(beside, sizeof beside, "%.*s%s", folder, path, path_base(data));
    const bool found =
        strcmp(data, "-") != 0 && n < PATH_MAX && !temp_differs(beside, &data, 1, &ignored);
    return found ? path_base(data) : NULL;
}

// The name of the template, without folder and suffix.
static json_t *label_of(const char *template)
{
    char label[MAX_LABEL + 1];
    const char *name = strcmp(template, "-") == 0 ? "template" : path_base(template);
    const char *dot = strrchr(name, '.');
    size_t n = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    if (n > MAX_LABEL)
        for (n = MAX_LABEL; n && (name[n] & 0xC0) == 0x80;) n--; // not within a character
    memcpy(label, name, n);
    label[n] = 0;
    return json_text(label);
}

// Samples of the signal under the template.
static json_t *annotation_of(const struct match *m, const struct search *q, int64_t offset,
                             uint64_t frames)
{
    const int64_t start = m->sample > 0 ? m->sample : 0;
    int64_t end = m->sample + (int64_t)q->length, number;
    if (end > 0 && frames < (uint64_t)end) end = (int64_t)frames;
    char text[128];
    if (__builtin_add_overflow(offset, start, &number)) number = INT64_MAX;
    snprintf(text, sizeof text, "sample %.3f, magnitude %.6g, phase %.4f rad", m->position,
             m->magnitude, m->phase);
    return json_pack(
        "{s:I, s:I, s:o, s:s, s:s+, s:f, s:f, s:f, s:I}", "core:sample_start", (json_int_t)number,
        "core:sample_count", (json_int_t)(end > start ? end - start : 0), "core:label",
        label_of(q->settings->operands[0]), "core:comment", text, "core:generator", "partita ",
        partita_version(), "partita:position", m->position, "partita:magnitude", m->magnitude,
        "partita:phase", m->phase, "partita:channel", (json_int_t)m->channel);
}

// Declares the extension, once.
static void declare_extension(json_t *global)
{
    json_t *list = json_object_get(global, "core:extensions");
    if (!json_is_array(list)) {
        list = json_array();
        json_object_set_new(global, "core:extensions", list);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *name = json_object_get(json_array_get(list, i), "name");
        if (json_is_string(name) && strcmp(json_string_value(name), EXTENSION) == 0) return;
    }
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:b}", "name", EXTENSION, "version", "0.1.0", "optional", 1));
}

// Raw samples of a SigMF type, whatever is before them in the file.
static bool is_flat(const struct audio_reader *in)
{
    const struct audio_info *info = audio_reader_info(in);
    const bool raw = info->container == CONTAINER_RAW || info->container == CONTAINER_WAV ||
                     info->container == CONTAINER_NPY;
    char name[ENCODING_NAME_SIZE];
    struct encoding known;
    return raw && !info->planar && info->encoding.bytes != 3 &&
           encoding_parse(encoding_name(info->encoding, name), &known) && !audio_reader_is_pipe(in);
}

// Metadata of a signal that has none. Samples that SigMF cannot describe are left out, and those
// that are not beside the metadata, whose name is then NULL.
static json_t *new_metadata(const struct audio_reader *in, const char *name)
{
    const struct audio_info *info = audio_reader_info(in);
    char type[ENCODING_NAME_SIZE];
    json_t *global = json_object(), *capture = json_object();
    json_object_set_new(global, "core:datatype", json_string(encoding_name(info->encoding, type)));
    json_object_set_new(global, "core:version", json_string("1.0.0"));
    json_object_set_new(global, "core:num_channels", json_integer((json_int_t)info->channels));
    if (info->rate > 0) json_object_set_new(global, "core:sample_rate", json_rate(info->rate));
    json_object_set_new(capture, "core:sample_start", json_integer(0));
    if (!name || !is_flat(in)) {
        json_object_set_new(global, "core:metadata_only", json_true());
    } else {
        uint64_t bytes;
        int64_t ignored;
        const uint64_t end =
            info->offset + info->frames * info->channels * encoding_size(info->encoding);
        json_object_set_new(global, "core:dataset", json_text(name));
        if (info->offset)
            json_object_set_new(capture, "core:header_bytes",
                                json_integer((json_int_t)info->offset));
        if (info->frames != SIZE_UNKNOWN && audio_reader_state(in, &bytes, &ignored) && bytes > end)
            json_object_set_new(global, "core:trailing_bytes",
                                json_integer((json_int_t)(bytes - end)));
    }
    return json_pack("{s:o, s:[o], s:[]}", "global", global, "captures", capture, "annotations");
}

// A copy of the metadata of a recording, which may get another name or folder than its samples.
static json_t *copy_metadata(const struct sigmf *sigmf, const char *to)
{
    json_t *root = json_deep_copy(sigmf->root), *global = json_object_get(root, "global");
    char data[PATH_MAX];
    const size_t stem = strlen(to) - strlen(".sigmf-meta");
    const char *name = name_beside(to, sigmf->data);
    snprintf(data, sizeof data, "%.*s.sigmf-data", (int)stem, to);
    if (sigmf->part.size != SIZE_UNKNOWN || !name) { // in an archive or in another folder
        json_object_del(global, "core:dataset");
        json_object_set_new(global, "core:metadata_only", json_true());
    } else if (strcmp(path_base(data), name) != 0) {
        json_object_set_new(global, "core:dataset", json_text(name));
    }
    if (!json_is_array(json_object_get(root, "annotations")))
        json_object_set_new(root, "annotations", json_array());
    return root;
}

bool search_check_annotate(const struct search *search, struct fault *fault)
{
    const struct settings *s = search->settings;
    const struct sigmf *sigmf = audio_reader_recording(search->in);
    const char *path = s->annotate, *suffix = ".sigmf-meta", *in = s->operands[1];
    char meta[4][PATH_MAX];
    if (!path) return true;
    if (!path_ends_with(path, suffix))
        return fault_set(fault, "--annotate %s: the name must end in %s", path, suffix);
    const char *const inputs[] = {s->operands[0], in, sigmf_metadata(s->operands[0], meta[0]),
                                  sigmf_metadata(in, meta[1]), sigmf_samples(in, meta[2])};
    if (!temp_differs(path, inputs, 5, fault)) return false;
    const char *out = s->operands[2];
    const size_t stem = strlen(path) - strlen(suffix);
    if (out && strncmp(out, path, stem) == 0 && strcmp(out + stem, ".sigmf-data") == 0)
        return fault_set(fault, "%s: is written beside OUT; name another file for --annotate",
                         path);
    const char *data = sigmf ? sigmf->data : in;
    if (!sigmf_may_replace(path, data) || (access(path, F_OK) == 0 && !name_beside(path, data)))
        return fault_set(fault, "%s: exists and is no description of %s; name another file", path,
                         data);
    return !sigmf || sigmf_check_positions(sigmf, fault);
}

bool search_annotate(const struct search *search, uint64_t frames, struct fault *fault)
{
    const struct settings *s = search->settings;
    const struct sigmf *sigmf = audio_reader_recording(search->in);
    if (!s->annotate || search->processes->rank) return true;
    json_t *root = sigmf ? copy_metadata(sigmf, s->annotate)
                         : new_metadata(search->in, name_beside(s->annotate, s->operands[1]));
    json_t *global = json_object_get(root, "global"),
           *annotations = json_object_get(root, "annotations");
    int64_t offset = json_integer_value(json_object_get(global, "core:offset"));
    if (offset < 0) offset = 0;
    declare_extension(global);
    for (uint64_t i = 0; i < search->n; i++)
        json_array_append_new(annotations,
                              annotation_of(&search->matches[i], search, offset, frames));
    const bool good = sigmf_sort_annotations(annotations)
                          ? temp_write_text(s->annotate, sigmf_text(root), false, fault)
                          : fault_set(fault, "out of memory");
    json_decref(root);
    return good;
}
