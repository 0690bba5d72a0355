// SPDX-License-Identifier: MIT
#include "peers/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct process {
    pid_t child;
    FILE *to, *from;
    char folder[64];
};

struct process *process_create(void)
{
    struct process *p = bench_allocate(sizeof *p);
    snprintf(p->folder, sizeof p->folder, "/tmp/partita-bench-XXXXXX");
    if (mkdtemp(p->folder) == NULL) p->folder[0] = '\0'; // then no file can be written
    return p;
}

const char *process_folder(const struct process *process)
{
    return process->folder;
}

static bool process_transfer(const struct process *p, const char *name, const char *mode,
                             void *data, size_t bytes)
{
    char path[96];
    if (p->folder[0] == '\0') return false;
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    FILE *file = fopen(path, mode);
    if (file == NULL) return false;
    const size_t n = mode[0] == 'w' ? fwrite(data, 1, bytes, file) : fread(data, 1, bytes, file);
    return (fclose(file) == 0) & (n == bytes);
}

bool process_write(struct process *process, const char *name, const void *data, size_t bytes)
{
    return process_transfer(process, name, "w", (void *)data, bytes);
}

double process_ask(struct process *process, const char *line)
{
    double answer = NAN;
    fprintf(process->to, "%s\n", line);
    if (fflush(process->to) != 0 || fscanf(process->from, "%lf", &answer) != 1) return NAN;
    return answer;
}

bool process_fetch(void *process, struct workload *w)
{
    return !isnan(process_ask(process, "write")) &&
           process_transfer(process, "y", "r", w->y, w->n_out * partita_type_size(w->signal));
}

bool process_start(struct process *process, const char *const *words)
{
    int down[2], up[2];
    // Closed on exec: a second child holding these ends would keep the first from reading its end.
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) return false;
    process->child = fork();
    if (process->child == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        execv(words[0], (char *const *)words);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    process->to = fdopen(down[1], "w");
    process->from = fdopen(up[0], "r");
    return process->child > 0 && process->to != NULL && process->from != NULL;
}

static void process_remove_folder(const struct process *p)
{
    DIR *folder = p->folder[0] == '\0' ? NULL : opendir(p->folder);
    if (folder == NULL) return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.') unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(p->folder);
}

void process_close(void *process)
{
    struct process *p = process;
    if (p->to != NULL) fclose(p->to);
    if (p->from != NULL) fclose(p->from);
    if (p->child > 0) waitpid(p->child, NULL, 0);
    process_remove_folder(p);
    free(p);
}
