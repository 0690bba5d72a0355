// SPDX-License-Identifier: MIT
// The page that steers a run: an HTTP server that sends one page, and executes the lines that this
// posts to /command. A WAV that is posted to /load?name=x.wav becomes the line "load" with a
// temporary file, which is removed when the answer is known. Nothing here blocks.
#ifndef PARTITA_APPS_CONTROL_WEB_H
#define PARTITA_APPS_CONTROL_WEB_H

#include "base/fault.h"
#include "socket.h"

struct web;

// Receives at PORT or ADDRESS:PORT, as osc_open, and prints where a browser finds the page: for an
// address of other machines with a token, without which nothing is answered.
bool web_open(struct web **ret, const char *address, struct fault *fault);

// Tells requests that wait that the program ends. Accepts NULL, as the functions below do.
void web_close(struct web *web);

// The descriptor to wait for; -1 for NULL.
int web_file(const struct web *web);

// Reads requests, executes their lines and answers.
void web_serve(struct web *web, control_line_fn *run, void *user);

// Answers requests that wait for this ticket or an earlier one.
void web_answer(struct web *web, uint64_t ticket, const char *line);

#endif
