/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the process at the configuration's paths, and the one at those of an old binary. A name may
 * be left of a process that was killed, and the new one may have names of its own: each of the two
 * knows the other's pid. */
#include "cli/upgrade_state.h"

#include "cli/exchange.h"
#include "cli/masters.h"
#include "os/proc.h"
#include "process/pidfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A master process that has not replied by then hangs. */
#define REPLY_MS 5000

static void count_workers(struct upgrade_master *master, struct json_value generations)
{
    struct json_value generation = { NULL, 0 }, worker = { NULL, 0 };
    char state[32];

    while ((generation = json_next(generations, generation)).text != NULL) {
        struct json_value workers = json_member(generation, "workers");

        while ((worker = json_next(workers, worker)).text != NULL) {
            if (json_integer(json_member(worker, "pid"), 0) == 0)
                continue;
            master->workers++;
            master->sessions += json_integer(json_member(worker, "connections"), 0);
            if (json_text(json_member(worker, "state"), state, sizeof(state)) &&
                strcmp(state, "accepting") == 0)
                master->accepting++;
        }
    }
}

static void read_reply(struct upgrade_master *master)
{
    struct json_value status = json_parse(master->text, master->text_n);
    struct json_value upgrade = json_member(status, "upgrade");

    master->replied = json_is_true(json_member(status, "ok"));
    master->pid = (pid_t)json_integer(json_member(status, "pid"), master->pid);
    json_text(json_member(status, "version"), master->version, sizeof(master->version));
    json_text(json_member(status, "state"), master->state, sizeof(master->state));
    json_text(json_member(upgrade, "role"), master->role, sizeof(master->role));
    master->other = (pid_t)json_integer(json_member(upgrade, "other"), 0);
    master->serves = json_is_true(json_member(upgrade, "serves"));
    master->main = master->role[0] == '\0' || json_is_true(json_member(upgrade, "main"));
    count_workers(master, json_member(status, "generations"));
}

/* Takes an entry of the list, and asks the process; -1 without memory. */
static int read_master(
    struct upgrade_master *master, const struct masters_entry *entry, int64_t deadline)
{
    struct cli_exchange exchange = { .fd = -1 };

    if (deadline > cli_now_ms() + REPLY_MS)
        deadline = cli_now_ms() + REPLY_MS;
    master->pid = entry->pid;
    if (entry->control == NULL)
        return 0;
    master->control = strdup(entry->control);
    if (master->control == NULL)
        return -1;
    errno = 0;
    if (cli_connect(&exchange, master->control, deadline) == 0 &&
        cli_send(&exchange, "{\"command\":\"status\"}\n") == 0 &&
        cli_receive(&exchange, deadline) == 0) {
        master->text = exchange.text;
        master->text_n = exchange.line_n;
        exchange.text = NULL;
        read_reply(master);
    } else {
        master->silent = errno == EAGAIN;
    }
    cli_disconnect(&exchange);
    return 0;
}

bool upgrade_master_ends(const struct upgrade_master *master)
{
    return strcmp(master->state, "quitting") == 0 || strcmp(master->state, "stopping") == 0;
}

static bool has_role(const struct upgrade_master *master, const char *role)
{
    return master->replied && strcmp(master->role, role) == 0;
}

static void free_master(struct upgrade_master *master)
{
    free(master->control);
    free(master->text);
    *master = (struct upgrade_master) { .pid = -1 };
}

/* Works out which of the two is which: `old` and `new` are those at the names of these. */
static void tell_apart(struct upgrade_state *state)
{
    struct upgrade_master *old = &state->old, *new = &state->new;

    if (has_role(new, "old")) { /* the new one has no names yet */
        free_master(old);
        *old = *new;
        *new = (struct upgrade_master) { .pid = old->other };
    } else if (has_role(new, "new") && old->pid != new->other) {
        free_master(old);
        old->pid = new->other;
    } else if (!new->replied && has_role(old, "old")) {
        new->pid = old->other; /* the new one may have another configuration, or hang */
    }
    if (has_role(old, "old"))
        state->serves = old->serves;
    else
        state->serves = true;
    if (new->replied || old->replied)
        state->under_way = has_role(new, "new") || has_role(old, "old");
    else
        state->under_way = os_proc_runs(new->pid) && os_proc_runs(old->pid);
    if (!state->under_way)
        free_master(old);
}

/* Whether the process is there that has left the configuration's paths. */
static bool runs(const struct masters_entry *entry)
{
    struct cli_exchange exchange = { .fd = -1 };
    int status;

    if (entry->control == NULL)
        return os_proc_runs(entry->pid);
    status = cli_connect(&exchange, entry->control, cli_now_ms() + REPLY_MS);
    cli_disconnect(&exchange);
    return status == 0;
}

int upgrade_state_read(
    struct upgrade_state *state, const struct core_settings *core, int64_t deadline)
{
    struct masters masters;
    int status = 0;

    *state = (struct upgrade_state) { .old = { .pid = -1 }, .new = { .pid = -1 } };
    if (masters_find(&masters, core) == -1)
        return -1;
    for (unsigned i = 0; i < masters.n && status == 0; i++) {
        const struct masters_entry *entry = &masters.list[i];

        if (entry->place == MASTERS_QUITTING && state->quitting == 0 && runs(entry))
            state->quitting = entry->pid;
        else if (entry->place != MASTERS_QUITTING)
            status = read_master(
                entry->place == MASTERS_FIRST ? &state->new : &state->old, entry, deadline);
    }
    masters_free(&masters);
    if (status == 0)
        tell_apart(state);
    return status;
}

void upgrade_state_free(struct upgrade_state *state)
{
    free_master(&state->old);
    free_master(&state->new);
}
