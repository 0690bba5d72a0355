// SPDX-License-Identifier: MIT
// A peer that is another process: it reads its operands from files in a folder of its own, answers
// each line on its standard input with one number, and writes its result into that folder.
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include "workloads/workload.h"

struct process;

// Its folder is made here and removed, with its files, by process_close.
struct process *process_create(void);
void process_close(void *process);
const char *process_folder(const struct process *process);

// Writes one of its files before it is started. Returns false if that fails.
bool process_write(struct process *process, const char *name, const void *data, size_t bytes);

// Starts the program words[0] with the arguments after it, NULL at the end.
bool process_start(struct process *process, const char *const *words);

// Sends one line and reads the number that answers it; NAN if the process has ended.
double process_ask(struct process *process, const char *line);

// A fetch_fn: the process writes its result to the file y, which becomes w->y.
bool process_fetch(void *process, struct workload *w);

#endif
