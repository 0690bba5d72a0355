// SPDX-License-Identifier: MIT
// The manual page partita(1) in roff, with the man macros.
#include "commands.h"

#include <stdio.h>
#include <string.h>

// Prints text with roff's special characters escaped: backslashes, hyphens, and a dot or quote at
// the start.
static void put_text(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\\') printf("\\e");
        else if (*c == '-') printf("\\-");
        else if ((*c == '.' || *c == '\'') && c == text) printf("\\&%c", *c);
        else putchar(*c);
    }
}

static void put_item(const char *term, const char *text)
{
    printf(".TP\n.B ");
    put_text(term);
    printf("\n");
    put_text(text);
    printf("%s\n", text[strlen(text) - 1] == '.' ? "" : ".");
}

static void put_options_of(enum command command)
{
    const struct command_row *c = &command_rows[command];
    printf(".SS \"partita %s\"\n.B partita %s\n[\\fIoptions\\fR] \\fI", c->name, c->name);
    put_text(c->operands);
    printf("\\fR\n.PP\nThis command ");
    put_text(c->summary);
    printf(".\n");
    if (*c->text) {
        put_text(c->text);
        printf("\n");
    }
    if (command == COMMAND_CONTROL) help_controls(put_item);
    for (size_t i = 0; i < n_option_rows; i++)
        if (option_rows[i].commands & 1u << command)
            help_option(&option_rows[i], command, put_item);
}

static void put_section(const char *title, const char *text)
{
    printf(".SH \"%s\"\n", title);
    put_text(text);
    printf("\n");
}

static void put_exit_status(void)
{
    static const char *const rows[][2] = {
        {"0", "Success."},
        {"1", "Failure: the output file was not written; of channelize, at least one was not."},
        {"2", "Wrong usage."},
        {"3", "Success with losses: the input was truncated or interrupted; with --strict, samples "
              "were clipped; in live, samples are "
              "missing in the recording or, with --strict, were lost by the device."},
        {"4", "The audio device was lost. The recording up to then is complete."},
        {"141", "The reader of standard output closed the pipe (SIGPIPE)."},
    };
    printf(".SH \"EXIT STATUS\"\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) put_item(rows[i][0], rows[i][1]);
}

void manual_print(void)
{
    printf(".TH PARTITA 1 \"\" \"partita %s\" \"User Commands\"\n", partita_version());
    printf(
        ".SH NAME\npartita \\- linear filters for files, pipes and audio devices\n.SH SYNOPSIS\n");
    for (int c = 0; c < N_COMMANDS; c++) {
        printf("%s.B partita %s\n[\\fIoptions\\fR] \\fI", c ? ".br\n" : "", command_rows[c].name);
        put_text(command_rows[c].operands);
        printf("\\fR\n");
    }
    put_section(
        "DESCRIPTION",
        "Filters recordings, radio captures and other sampled signals of any length in bounded "
        "memory. The name - stands for standard input or output; WAV in a pipe needs no length in "
        "its header. OUT appears under its name only when it is complete.");
    printf(".SH COMMANDS\n");
    for (int c = 0; c < N_COMMANDS; c++) put_options_of((enum command)c);
    put_section(
        "FILES AND CHANNELS",
        "Signals may be WAV or RF64; .npy arrays ([frames], or [channels, frames]) of floats (f2, "
        "f4, f8), complex numbers (c8, c16) or integers, which are numbers as in NumPy: their full "
        "scale is not 1; raw samples (.raw, .iq, .cf32 and the like); and, in seekable files, all "
        "formats that libsndfile reads: .flac, .ogg, .opus, .aiff, .caf, .au, .w64. A SigMF "
        "recording is named by its .sigmf-meta, its .sigmf-data, the name without these suffixes, "
        "or its .sigmf archive; for an OUT named .sigmf-data the .sigmf-meta is written beside it: "
        "that of the input, with captures and annotations moved to where their samples are. "
        "Captures of different frequencies are selected with --first and --last, one at a time. "
        "The two channels of a WAV with the chunk auxi, which SDRangel, HDSDR, SDRuno and others "
        "write, are I and Q of one complex signal, and with --iq those of any WAV; a WAV of the "
        "result has I and Q in its channels, too. Filters may also be .txt files with one number "
        "per line, and for a mono input .sofa files, whose nearest pair to --azimuth and "
        "--elevation gives the left and the right ear. A filter of one channel applies to every "
        "channel of the input, and a filter with as many channels as the input applies channel by "
        "channel. A mono input with a filter of N channels gives N channels. With --matrix every "
        "output is a sum over all inputs. Full scale of an integer sample is 1, except in .npy "
        "arrays. What a WAV says about loudspeakers, and its texts, cue points and broadcast "
        "extension, are copied to a WAV; FLAC, Ogg and other formats of libsndfile carry the "
        "texts. Of a WAV the first data chunk is read, and its size counts, but not beyond the end "
        "of the file: missing samples are reported with status 3. Sizes that programs write into "
        "pipes stand for the end of the input: 0, unless the size of the whole file says that "
        "there are no samples; and 0x7ffff000 to 0x80000000 or 0xfffff000 to 0xffffffff, unless a "
        "file is that long. A size that has wrapped at 4 GiB is corrected if the file is longer by "
        "a multiple of it, and samples after the stated end are reported. The first bytes of a "
        "file decide what it is, and its name where they say nothing: raw samples and text are "
        "named.");
    printf(".SH MATRICES\n");
    put_text("The channels of IR from two inputs to two outputs:");
    printf("\n.PP\n.nf\n");
    put_text(matrix_drawing);
    printf(".fi\n.PP\n");
    put_text(
        "The channels may be in several files, and an .npy array of IR may have the axes [out, "
        "in, frames]; then --matrix is not needed.");
    printf("\n");
    put_section(
        "NUMBERS",
        "Numbers may have an exponent or end in k, M or G: 1e6, 48k, 2.4M; rates and frequencies "
        "may also end in Hz, kHz, MHz or GHz, and a sample rate may be a fraction, such as 100M/3. "
        "FRAMES is a number of frames, or a time in us, ms, s "
        "or min, which is rounded to frames at the sample rate. Times may have these units too; "
        "without one they have that of the option. K, M, G and T in numbers of bytes are powers of "
        "1024; kB, MB, GB and TB are powers of 1000.");
    printf(".SH EXAMPLES\n");
    for (int i = 0; i < N_COMMANDS * MAX_EXAMPLES; i++) {
        const struct example *example = &command_examples[i / MAX_EXAMPLES][i % MAX_EXAMPLES];
        if (example->command) put_item(example->command, example->text);
    }
    put_exit_status();
    put_section("ENVIRONMENT", "XDG_CACHE_HOME (default ~/.cache): the file partita/wisdom in it "
                               "stores the measurements of `partita plan --calibrate`. "
                               "PARTITA_CPU=c|avx2|avx512|neon limits the instruction set.");
}
