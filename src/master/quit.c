/* SPDX-License-Identifier: BSD-2-Clause */
/* The graceful end of a master process, and its taking back. The process leaves its names to the
 * next start at once, and the lock as soon as no worker holds a listener, at the latest after a
 * bounded time. Until it exits it can be told to serve again, unless another master process has the
 * lock by then: by a whole new generation, as at a reload. Nothing here waits. */
#include "master/master.h"
#include "pool/generation.h"
#include "pool/transaction.h"
#include "systemd/fdstore.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>

/* Whether no other master process serves beside us: one that ends too has said so. */
static bool is_alone(const struct master *master)
{
    const struct upgrade *upgrade = &master->upgrade;

    return upgrade->phase == UPGRADE_NONE ||
           ((upgrade->phase == UPGRADE_BESIDE || upgrade->phase == UPGRADE_HANDED_OVER) &&
               upgrade->sockets.n == 0);
}

/* Takes the request to serve again, by a signal or by clients of the control socket. */
static bool take_request(struct master *master)
{
    bool requested = master->requested[COMMAND_RESUME];
    pid_t sender = 0;

    master->requested[COMMAND_RESUME] = false;
    if (!signals_take(COMMAND_RELOAD, &sender))
        return requested;
    log_write(&master->log, LEVEL_NOTICE, 0, "signal %d (SIGHUP) received from %d, %s", SIGHUP,
        (int)sender, signals_find(ROLE_MASTER, COMMAND_RESUME)->doing);
    return true;
}

void quit_drop_stored(struct master *master)
{
    struct listener *listener;

    if (master->pool.serving != NULL)
        STAILQ_FOREACH (listener, &master->pool.serving->cycle->stream.listeners.list, link)
            fdstore_drop(listener, &master->log);
}

static void refuse_resume(struct master *master, const char *why)
{
    struct control_outcome outcome = { .error = why };

    log_write(&master->log, LEVEL_ERROR, 0, "resume refused: %s", why);
    control_reply(&master->control, CONTROL_WAIT_RESUME, &outcome);
}

/* Begins to serve again by what is a reload from here on. */
static void resume(struct master *master)
{
    char text[64] = "";
    pid_t other = 0;

    if (master->is_left) {
        refuse_resume(master, "the service manager knows this process no more: start the service");
        return;
    }
    if (!is_alone(master))
        other = master->upgrade.other;
    else
        pidfile_is_taken(master->endpoints.pidfile.path, &other);
    if (other > 0)
        snprintf(text, sizeof(text), "master process %d runs", (int)other);
    else if (master->pool.serving == NULL)
        snprintf(text, sizeof(text), "nothing was served yet");
    if (text[0] != '\0') {
        refuse_resume(master, text);
        return;
    }
    quit_drop_stored(master);
    master_set_phase(master, MASTER_RESUMES);
    pool_set_ending(&master->pool, false);
    control_wait_on(&master->control, CONTROL_WAIT_RESUME, CONTROL_WAIT_RELOAD_END);
    reload_begin(master);
}

void quit_advance(struct master *master)
{
    static const struct control_outcome outcome = { .ok = true };
    struct endpoints *endpoints = &master->endpoints;

    assert(master->phase == MASTER_QUITS);
    /* before it serves the daemon has no names yet */
    if (is_alone(master) && master->pool.serving != NULL && endpoints->phase != ENDPOINTS_ASIDE)
        endpoints_step_aside(endpoints, &master->log);
    if (pool_find_holder(&master->pool) != NULL)
        return;
    if (endpoints->phase == ENDPOINTS_ASIDE)
        endpoints_unlock(endpoints, &master->log);
    if (master->leaves) {
        if (!service_manager_may_exit(&master->manager))
            return;
        leave_to_child(master);
    }
    control_reply(&master->control, CONTROL_WAIT_QUIT, &outcome);
    if (take_request(master))
        resume(master);
}

void quit_cancel_resume(struct master *master)
{
    assert(master->phase == MASTER_RESUMES);
    reload_cancel(master);
    transaction_conclude(&master->pool);
    assert(master->phase != MASTER_RESUMES);
}
