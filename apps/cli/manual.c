// SPDX-License-Identifier: MIT
// partita(1) as roff, with the man macros.
#include "manual.h"

#include <stdio.h>

// Text with roff's special characters made plain: a backslash, a hyphen that is to be copied, a
// leading dot or quote.
static void put(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\\') printf("\\e");
        else if (*c == '-') printf("\\-");
        else if ((*c == '.' || *c == '\'') && c == text) printf("\\&%c", *c);
        else putchar(*c);
    }
}

static void put_option(const struct option_row *row, enum command command)
{
    char help[OPTION_HELP_SIZE];
    printf(".TP\n");
    if (row->letter) printf("\\fB\\-%c\\fR, ", row->letter);
    printf("\\fB\\-\\-");
    put(row->name);
    printf("\\fR");
    if (row->argument) {
        printf(" \\fI");
        put(row->argument);
        printf("\\fR");
    }
    printf("\n");
    option_help(row, command, help);
    put(help);
    printf(".\n");
}

static void put_options_of(enum command command)
{
    const struct command_row *c = &command_rows[command];
    printf(".SS \"partita %s\"\n.B partita %s\n[\\fIoptions\\fR] \\fI", c->name, c->name);
    put(c->operands);
    printf("\\fR\n.PP\nThis command ");
    put(c->summary);
    printf(".\n");
    if (*c->text) {
        put(c->text);
        printf("\n");
    }
    for (size_t i = 0; i < n_option_rows; i++)
        if (option_rows[i].commands & 1u << command) put_option(&option_rows[i], command);
}

static void put_section(const char *title, const char *text)
{
    printf(".SH \"%s\"\n", title);
    put(text);
    printf("\n");
}

static void put_names(void)
{
    printf(
        ".SH NAME\npartita \\- linear filters for files, pipes and audio devices\n.SH SYNOPSIS\n");
    for (int c = 0; c < N_COMMANDS; c++) {
        printf("%s.B partita %s\n[\\fIoptions\\fR] \\fI", c ? ".br\n" : "", command_rows[c].name);
        put(command_rows[c].operands);
        printf("\\fR\n");
    }
}

static void put_examples(void)
{
    static const char *const rows[][2] = {
        {"partita convolve hall.wav voice.wav wet.wav", "Puts a voice into a hall."},
        {"partita convolve --resample-ir --gain -6 --stats hall.wav voice.flac wet.flac",
         "The same between files of different sample rates, 6 dB lower, with the levels of the "
         "result."},
        {"partita convolve --format cf32 low-pass.txt - - <in.cf32 >out.cf32",
         "Filters raw complex samples on their way through a pipe."},
        {"partita correlate --mode valid burst.sigmf-meta capture.sigmf-meta match.npy",
         "Where a burst is in a capture: the largest magnitudes of the result."},
        {"partita plan --block 64 --taps 96000",
         "What a filter of two seconds costs when it is played live."},
        {"partita live --ir hall.wav --device 3",
         "Plays what device 3 of `partita devices` hears, in that hall."},
    };
    printf(".SH EXAMPLES\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf(".TP\n.B ");
        put(rows[i][0]);
        printf("\n");
        put(rows[i][1]);
        printf("\n");
    }
}

static void put_exit_status(void)
{
    static const char *const rows[][2] = {
        {"0", "Done."},
        {"1", "Failed: nothing stands under the name of the output."},
        {"2", "Wrong usage."},
        {"3",
         "Done, but degraded: the input ended early, or with part of a frame, or was interrupted; "
         "of live, samples were missing from the recording, or with --strict from the sound."},
        {"4", "The audio device was lost. What was recorded until then is complete."},
        {"141", "The reader of standard output went away (SIGPIPE)."},
    };
    printf(".SH \"EXIT STATUS\"\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf(".TP\n.B %s\n", rows[i][0]);
        put(rows[i][1]);
        printf("\n");
    }
}

void manual_print(void)
{
    printf(".TH PARTITA 1 \"\" \"partita %s\" \"User Commands\"\n", partita_version());
    put_names();
    put_section("DESCRIPTION",
                "Filters recordings, radio captures and other sampled signals of any length, in "
                "bounded memory. The name - stands for standard input or output; a WAV that comes "
                "or goes through a pipe needs no length in its header. A file appears under the "
                "name OUT only when it is complete.");
    printf(".SH COMMANDS\n");
    for (int c = 0; c < N_COMMANDS; c++) put_options_of((enum command)c);
    put_section(
        "FILES AND CHANNELS",
        "Signals are WAV and RF64, .npy arrays ([frames], or [channels, frames]) of type f4, f8, "
        "c8 and c16, raw samples (.raw, .iq, .cf32 and the like), and in seekable files whatever "
        "libsndfile reads: .flac, .ogg, .opus, .aiff, .caf, .au, .w64. A SigMF recording is read "
        "by the name of its .sigmf-meta or its .sigmf-data, and an OUT named .sigmf-data gets its "
        ".sigmf-meta beside it. Filters may also be .txt files of one number a line. A filter of "
        "one channel applies to every channel of the input, a filter of as many channels goes one "
        "to one, a mono input with a filter of N channels gives N channels, and --matrix sums. In "
        "the units of the filter, full scale of an integer is 1.");
    put_examples();
    put_exit_status();
    put_section("ENVIRONMENT",
                "XDG_CACHE_HOME (default ~/.cache): partita/wisdom in it holds what `partita plan "
                "--calibrate` measured. PARTITA_CPU: c, avx2, avx512 or neon selects the kernels.");
}
