// SPDX-License-Identifier: MIT
// What the configuration of another convolver describes: stages, one after the other, each a sparse
// matrix of impulse responses from its inputs to its outputs. jconvolver and Convolver have one
// stage; the pipeline of CamillaDSP has one for each step. Only the configuration itself is read
// here; matrix.h reads the files that it names.
#ifndef PARTITA_APPS_NETWORK_H
#define PARTITA_APPS_NETWORK_H

#include <stdint.h>

#include "base/fault.h"
#include "io/samples/encoding.h"

#include <partita/equalizer.h>

enum {
    NETWORK_MAX_CHANNELS = 256,
    NETWORK_MAX_TERMS = 1 << 16,  // of all stages; also of impulses and of stages
    NETWORK_MAX_VALUES = 1 << 24, // of all impulses that are numbers of the configuration
    NETWORK_MAX_DELAY = 1 << 27,  // frames, as long as the longest filter
};

enum impulse_source {
    IMPULSE_FILE = 0, // an audio file
    IMPULSE_TEXT,     // a file of one number a line
    IMPULSE_RAW,      // a file of samples without a header
    IMPULSE_VALUES,   // numbers of the configuration
    IMPULSE_SECTIONS, // recursive filters
};

struct impulse {
    enum impulse_source source;
    const char *path;    // of a file, allocated
    size_t channel;      // of the file, counted from 0
    size_t skip_lines;   // of a text file, before its first number
    size_t offset;       // frames left out at the start of the file
    size_t length;       // frames used; 0: all
    struct encoding raw; // of a file without a header
    double *values;      // numbers of the configuration
    size_t n_values;
    struct partita_section *sections; // in series
    size_t n_sections;
    const char *note; // a warning for the user; NULL: none
    int line;         // of the configuration
};

// The index of a term without an impulse response, which is a unit impulse.
#define IMPULSE_UNIT SIZE_MAX

// One response from an input to an output; those of the same two are added.
struct network_term {
    size_t out, in;
    size_t impulse; // index in network.impulses or IMPULSE_UNIT
    double gain;    // a factor
    double delay;   // frames at the rate of the network
    int line;       // of the configuration
};

struct network_stage {
    size_t out_channels, in_channels;
    struct network_term *terms;
    size_t n_terms, capacity;
};

// A port of JACK and the port that it is connected to; NULL: not stated.
struct network_port {
    char *name, *connect_to;
};

enum network_direction { NETWORK_INPUTS = 0, NETWORK_OUTPUTS };

struct network {
    const char *path; // of the configuration, for messages
    double rate;      // Hz, of delays and of impulses whose file has no rate; 0: that of the signal
    size_t max_length; // frames after which responses end; 0: unlimited
    size_t in_channels, out_channels;
    struct network_stage *stages; // none: outputs are inputs
    size_t n_stages, stage_capacity, n_terms;
    struct impulse *impulses;
    size_t n_impulses, impulse_capacity, n_values;
    size_t first_channel; // the number that the configuration gives the first channel of a file
    struct network_port *ports[2]; // by direction, one for each channel; NULL: none are named
    // Of one in a list of configurations:
    const char *list; // the path of the list; NULL: it is in none
    char *owned_path; // the same as `path`
    struct network *next;
};

// Whether the name of a file is that of a configuration: .conf, .cfg, .yml or .yaml.
bool network_is_named(const char *path);

// Reads a configuration: of jconvolver (.conf), Convolver (.cfg) or CamillaDSP (.yml, .yaml), as
// its suffix says. `path` must outlive the network. Of a list of Convolver's configurations, if it
// may be one, this reads all and returns the first. False, with a fault that names file, line and
// value.
bool network_read(struct network *ret, const char *path, bool may_be_list, struct fault *fault);

// Of a list: makes the network the first configuration for this rate, if there is one.
void network_select(struct network *network, double rate);

// The same as network_read for a text in memory, which is changed, under such a name.
bool network_parse(struct network *ret, const char *path, char *text, struct fault *fault);

// Writes the paths of the configuration, of its list, and of all files that these name, which the
// network keeps, unless ret_paths is NULL. Returns their number.
int network_list_files(const struct network *network, const char **ret_paths);

void network_release(struct network *network);

// What follows is for the parsers. All return false with a fault.

// "path:line: " and the message; without a line, which is 0 where there is none. Then a message
// that begins with the path is complete.
__attribute__((format(printf, 4, 5))) bool network_fault(const struct network *network, int line,
                                                         struct fault *fault, const char *format,
                                                         ...);

// Appends a stage without terms.
bool network_add_stage(struct network *network, size_t out_channels, size_t in_channels,
                       struct fault *fault);

// Appends a term to the last stage.
bool network_add_term(struct network *network, const struct network_term *term,
                      struct fault *fault);

// Appends an impulse, whose path and values the network takes over, also if it fails.
bool network_add_impulse(struct network *network, const struct impulse *impulse, size_t *ret_index,
                         struct fault *fault);

// Makes room for the n values of an impulse whose line is known; on failure they are NULL. The
// caller frees them if the network does not take the impulse over.
bool network_allocate_values(struct network *network, struct impulse *impulse, size_t n,
                             struct fault *fault);

// A number from low to high, as the word of a line; `what` names it. It is stored as `real`, or if
// that is NULL and it is a whole number, as `whole`.
struct network_number {
    const char *what;
    int line;
    double low, high;
};
bool network_parse_number(const struct network *network, const struct network_number *number,
                          const char *word, double *real, size_t *whole, struct fault *fault);

// The path of a file that a configuration names: relative ones begin at `folder`, and without one
// at that of the configuration. NULL: no memory.
char *network_file(const struct network *network, const char *folder, const char *name);
char *network_file_of_windows(const struct network *network, char *name); // may have backslashes

// Whether a text is a list: its first line that is not empty names a .cfg.
bool network_is_list(const char *text);

// Parses a list, whose text is changed.
bool network_read_list(struct network *ret, const char *path, char *text, struct fault *fault);

// The parsers.
bool jconvolver_parse(struct network *network, char *text, struct fault *fault);
bool convolver_parse(struct network *network, char *text, struct fault *fault);
bool camilladsp_parse(struct network *network, char *text, struct fault *fault);

#endif
