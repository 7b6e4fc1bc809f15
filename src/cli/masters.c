/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the names of master processes. The pid file and the control socket may lie in two
 * directories: equal suffixes belong to a process. Files that vanish meanwhile are left out. */
#include "cli/masters.h"

#include "cli/exchange.h"
#include "os/proc.h"
#include "pidfile/pidfile.h"
#include "pidfile/worker_list.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONNECT_MS 5000

/* Returns the time of a name, 0 for a missing file or a different type. */
static int64_t since_ns(const char *path, mode_t type)
{
    struct stat st;

    if (lstat(path, &st) == -1 || (st.st_mode & S_IFMT) != type)
        return 0;
    return (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
}

static struct masters_entry *add_entry(struct masters *masters, enum masters_place place)
{
    struct masters_entry *longer =
        realloc(masters->list, (masters->n + 1) * sizeof(*masters->list));

    if (longer == NULL)
        return NULL;
    masters->list = longer;
    masters->list[masters->n] = (struct masters_entry) { .place = place, .pid = -1 };
    return &masters->list[masters->n++];
}

/* Adds the process with the suffix, if any; -1 without memory. */
static int add_names(struct masters *masters, const struct core_settings *core,
    enum masters_place place, const char *suffix)
{
    char pid_path[PATH_MAX], control[PATH_MAX] = "";
    int64_t pid_since, control_since = 0;
    struct masters_entry *entry;
    pid_t pid;

    snprintf(pid_path, sizeof(pid_path), "%s%s", core->pid, suffix);
    if (core->control.path != NULL)
        snprintf(control, sizeof(control), "%s%s", core->control.path, suffix);
    pid_since = since_ns(pid_path, S_IFREG);
    if (core->control.path != NULL)
        control_since = since_ns(control, S_IFSOCK);
    if (pid_since == 0 && control_since == 0)
        return 0;
    pid = pid_since != 0 ? pidfile_peek_pid(pid_path) : -1;
    /* left by a killed process: the pid may have been reused */
    if (pid > 0 && ((place != MASTERS_QUITTING && !pidfile_is_live(core->pid, pid)) ||
                       (place != MASTERS_FIRST && worker_list_has_survived(core->pid, pid))))
        pid = 0;
    if (pid == 0 && control_since == 0)
        return 0;
    entry = add_entry(masters, place);
    if (entry == NULL)
        return -1;
    entry->since_ns = pid_since > control_since ? pid_since : control_since;
    entry->pid = pid > 0 ? pid : -1;
    if (control_since == 0)
        return 0;
    entry->control = strdup(control);
    return entry->control != NULL ? 0 : -1;
}

/* A search for quitting processes. */
struct search {
    struct masters *masters;
    const struct core_settings *core;
    int status; /* -1 without memory */
};

/* Adds the process of a second name, unless it is listed already. */
static void add_quitting(void *arg, pid_t pid, int directory, const char *name)
{
    struct search *search = arg;
    struct masters *masters = search->masters;
    unsigned before = masters->n;
    char suffix[64];

    (void)directory;
    (void)name;
    for (unsigned i = 0; i < before; i++)
        if (masters->list[i].place == MASTERS_QUITTING && masters->list[i].pid == pid)
            return;
    snprintf(suffix, sizeof(suffix), PIDFILE_QUIT_SUFFIX "%d", (int)pid);
    if (add_names(masters, search->core, MASTERS_QUITTING, suffix) == -1)
        search->status = -1;
    if (masters->n > before)
        masters->list[before].pid = pid;
}

static int compare_masters(const void *one, const void *other)
{
    const struct masters_entry *a = one, *b = other;

    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return a->since_ns == b->since_ns ? 0 : a->since_ns > b->since_ns ? -1 : 1;
}

int masters_find(struct masters *masters, const struct core_settings *core, struct log *log)
{
    struct search search = { .masters = masters, .core = core };

    *masters = (struct masters) { .n = 0 };
    pidfile_visit_beside(core->pid, PIDFILE_QUIT_SUFFIX, add_quitting, &search);
    if (core->control.path != NULL)
        pidfile_visit_beside(core->control.path, PIDFILE_QUIT_SUFFIX, add_quitting, &search);
    if (search.status == -1 || add_names(masters, core, MASTERS_FIRST, "") == -1 ||
        add_names(masters, core, MASTERS_OLD, PIDFILE_OLD_SUFFIX) == -1) {
        log_write(log, LEVEL_EMERG, errno, "no memory for the names of master processes");
        masters_free(masters);
        return -1;
    }
    if (masters->n > 1)
        qsort(masters->list, masters->n, sizeof(*masters->list), compare_masters);
    return 0;
}

void masters_free(struct masters *masters)
{
    for (unsigned i = 0; i < masters->n; i++)
        free(masters->list[i].control);
    free(masters->list);
    *masters = (struct masters) { .n = 0 };
}

struct masters_entry masters_at(const struct masters *masters, enum masters_place place)
{
    for (unsigned i = 0; i < masters->n; i++)
        if (masters->list[i].place == place)
            return masters->list[i];
    return (struct masters_entry) { .place = place, .pid = -1 };
}

/* Whether the process accepts a connection, or, without a control socket, its pid is in use. */
static bool entry_runs(const struct masters_entry *entry)
{
    struct cli_exchange exchange;
    int status;

    if (entry->control == NULL)
        return os_proc_runs(entry->pid);
    status = cli_connect(&exchange, entry->control, cli_now_ms() + CONNECT_MS);
    cli_disconnect(&exchange);
    return status == 0;
}

const struct masters_entry *masters_quitting(const struct masters *masters)
{
    for (unsigned i = 0; i < masters->n; i++)
        if (masters->list[i].place == MASTERS_QUITTING && entry_runs(&masters->list[i]))
            return &masters->list[i];
    return NULL;
}
