// SPDX-License-Identifier: MIT
// Archives, read with libarchive. Those of SigMF are tar files that hold the metadata and the
// samples of a recording, in any order. The samples are not extracted: tar stores a file as it is,
// so they are read where they are, like those of any file. An .npz is a ZIP of .npy files, which
// may be compressed.
#include "npy.h"
#include "sigmf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifdef HAVE_LIBARCHIVE

#include <archive.h>
#include <archive_entry.h>

static const char META[] = ".sigmf-meta";

enum { TAR_BLOCK = 512, MAX_BYTES = 1 << 30 }; // of an entry that is read at once

struct archive_reader {
    struct archive *archive;
    struct archive_entry *entry;
    const char *path, *name; // of the archive, of the entry
    bool packed;             // a ZIP, not a tar
};

static bool archive_fault(const struct archive_reader *w, struct fault *fault)
{
    const char *said = archive_error_string(w->archive);
    return fault_set(fault,
                     w->packed ? "%s: is no readable .npz: %s; save it by numpy.savez"
                               : "%s: is no readable tar archive: %s; if it is compressed, "
                                 "decompress it",
                     w->path, said ? said : "out of memory");
}

static bool reader_begin(struct archive_reader *w, const char *path, bool packed,
                         struct fault *fault)
{
    *w = (struct archive_reader){.archive = archive_read_new(), .path = path, .packed = packed};
    if (!w->archive) return fault_set(fault, "out of memory");
    if (packed) archive_read_support_format_zip(w->archive);
    else archive_read_support_format_tar(w->archive);
    if (archive_read_open_filename(w->archive, path, 1 << 16) == ARCHIVE_OK) return true;
    archive_fault(w, fault);
    archive_read_free(w->archive);
    return false;
}

// Moves to the next entry. *ret_end: there is none.
static bool reader_next(struct archive_reader *w, bool *ret_end, struct fault *fault)
{
    const int status = archive_read_next_header(w->archive, &w->entry);
    *ret_end = status == ARCHIVE_EOF;
    if (*ret_end) return true;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return archive_fault(w, fault);
    w->name = archive_entry_pathname(w->entry);
    if (!w->name) w->name = "";
    return true;
}

// Files with holes and links have fewer bytes in the archive than their size.
static bool check_stored(const struct archive_reader *w, struct fault *fault)
{
    return (archive_entry_sparse_count(w->entry) == 0 && !archive_entry_hardlink(w->entry)) ||
           fault_set(fault, "%s: %s is stored with holes or as a link; extract it (tar -xf)",
                     w->path, w->name);
}

// Of tar, memory is not reserved for more than the archive has.
static bool read_entry(const struct archive_reader *w, char **ret_text, size_t *ret_length,
                       struct fault *fault)
{
    const int64_t size = archive_entry_size(w->entry);
    struct stat st;
    if (!check_stored(w, fault)) return false;
    if (size < 0 || size > MAX_BYTES)
        return fault_set(fault, "%s: %s has %lld bytes, too many to be read at once", w->path,
                         w->name, (long long)size);
    if (!w->packed && (stat(w->path, &st) || size > st.st_size))
        return fault_set(fault, "%s: ends before the %lld bytes of %s", w->path, (long long)size,
                         w->name);
    *ret_length = (size_t)size;
    *ret_text = malloc((size_t)size + 1);
    if (!*ret_text) return fault_set(fault, "out of memory");
    return archive_read_data(w->archive, *ret_text, (size_t)size) == size ||
           archive_fault(w, fault);
}

bool sigmf_archive_metadata(const char *path, char **ret_text, size_t *ret_length,
                            char ret_meta[PATH_MAX], struct fault *fault)
{
    struct archive_reader w;
    bool end, good = true;
    *ret_text = NULL;
    if (!reader_begin(&w, path, false, fault)) return false;
    while ((good = good && reader_next(&w, &end, fault)) && !end) {
        if (!path_ends_with(w.name, META) || archive_entry_filetype(w.entry) != AE_IFREG) continue;
        if (*ret_text) {
            good =
                fault_set(fault, "%s: holds several recordings, %s and %s; extract one (tar -xf)",
                          path, ret_meta, w.name);
        } else if (strlen(w.name) >= PATH_MAX) {
            good = fault_set(fault, "%s: holds a name that is too long", path);
        } else {
            strcpy(ret_meta, w.name);
            good = read_entry(&w, ret_text, ret_length, fault);
        }
    }
    if (good && !*ret_text) good = fault_set(fault, "%s: holds no .sigmf-meta", path);
    archive_read_free(w.archive);
    if (good) return true;
    free(*ret_text);
    *ret_text = NULL;
    return false;
}

bool npz_visit(const char *path, npz_visit_fn *visit, void *user, struct fault *fault)
{
    struct archive_reader w;
    bool end, good = true;
    if (!reader_begin(&w, path, true, fault)) return false;
    while ((good = good && reader_next(&w, &end, fault)) && !end) {
        char *bytes = NULL;
        size_t n = 0;
        good = read_entry(&w, &bytes, &n, fault) && visit(user, w.name, bytes, n, fault);
        free(bytes);
    }
    archive_read_free(w.archive);
    return good;
}

bool sigmf_archive_samples(const char *path, const char *name, struct source_part *ret,
                           struct fault *fault)
{
    struct archive_reader w;
    bool end = false, found = false, is_last = false, good = true;
    if (!reader_begin(&w, path, false, fault)) return false;
    while (good && !end && (good = reader_next(&w, &end, fault))) {
        if (is_last) // the header follows its bytes, padded to whole blocks
            ret->offset = (uint64_t)archive_read_header_position(w.archive) -
                          (ret->size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
        is_last = !end && strcmp(w.name, name) == 0 && archive_entry_filetype(w.entry) == AE_IFREG;
        if (!is_last) continue;
        good = !found || fault_set(fault, "%s: holds %s twice; extract the one to read (tar -xf)",
                                   path, name);
        good = good && check_stored(&w, fault);
        ret->size = (uint64_t)archive_entry_size(w.entry);
        found = true;
    }
    if (good && !found) good = fault_set(fault, "%s: holds no %s", path, name);
    archive_read_free(w.archive);
    return good;
}

#else

bool sigmf_archive_metadata(const char *path, char **ret_text, size_t *ret_length,
                            char ret_meta[PATH_MAX], struct fault *fault)
{
    (void)ret_text, (void)ret_length, (void)ret_meta;
    return fault_set(fault,
                     "%s: this program was built without libarchive, which reads archives; extract "
                     "it (tar -xf) and name its .sigmf-meta",
                     path);
}

bool npz_visit(const char *path, npz_visit_fn *visit, void *user, struct fault *fault)
{
    (void)visit, (void)user;
    return fault_set(fault,
                     "%s: this program was built without libarchive, which reads .npz; save each "
                     "array by numpy.save into a folder",
                     path);
}

// Not called without metadata.
bool sigmf_archive_samples(const char *path, const char *name, struct source_part *ret,
                           struct fault *fault)
{
    (void)name, (void)ret;
    return fault_set(fault, "%s: is not read", path);
}

#endif
