// SPDX-License-Identifier: MIT
// The filter of a plug-in: made from a sound file on the worker, played on the audio thread.
#ifndef PARTITA_LV2_CONVOLVER_H
#define PARTITA_LV2_CONVOLVER_H

#include <partita/partita.h>

#include "base/fault.h"

// Which channel of a file holds the response from an input to an output, if the file has one for
// each path. A file with fewer channels has responses from each input to the output of the same
// number only: one for each, or one for all.
enum variant_order {
    ORDER_BY_OUTPUT, // all inputs of the first output, then of the second, as `partita --matrix`
    ORDER_BY_INPUT,  // all outputs of the first input, then of the second: LL LR RL RR
    ORDER_PARALLEL,  // none: there are no other paths
};

struct variant {
    const char *uri, *title;
    size_t inputs, outputs;
    enum variant_order order;
};

// A plan and its stream. Its filter is replaced by another of the same length or up to half as
// long.
struct convolver {
    struct partita_plan *plan;
    struct partita_stream *stream;
    size_t kernel; // taps
    bool parallel; // only from each input to the output of the same number
};

// What plays, and from which file.
struct loaded {
    struct convolver *convolver; // NULL: nothing, silence
    struct partita_filter *filter;
    char *path;
};

struct convolver_request {
    const struct variant *variant;
    const char *path;
    uint32_t rate;             // Hz, to which the file is resampled
    size_t block;              // frames of the largest usual call
    struct convolver *present; // NULL: none
};

// Reads the file and makes its filter: for the present convolver, whose stream may be running, if
// the length suits it, else with a convolver of its own. `note` receives a sentence if the file is
// incomplete, else it is empty.
bool convolver_load(struct loaded *ret, const struct convolver_request *request, struct fault *note,
                    struct fault *fault);

// Releases what nothing uses any more, but not the convolver `kept`.
void convolver_release(struct loaded *loaded, const struct convolver *kept);

// Releases what played last and what it replaced; no thread may use them any more.
void convolver_release_all(struct loaded *now, struct loaded *before);

#endif
