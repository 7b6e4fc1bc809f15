/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the phases of an upgrade, of the old process and of the new. upgrade_set() alone changes
 * the phase. Messages of the other process may be anything, and come in any phase: they are
 * checked, never asserted. */
#include "upgrade/upgrade.h"

#include "os/descriptor.h"
#include "pool/start.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "systemd/notify.h"
#include "upgrade/alone.h"
#include "worker/messages.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Grace beyond worker_start_timeout, which the new process meets itself and reports better. */
#define GRACE_MS 5000
#define KILL_MS 2000 /* time between SIGTERM and SIGKILL */

/* Members of messages, with paths. */
static const char *const control_names[CONTROL_SOCKETS] = { "control", "control_read" };

static void upgrade_set(struct upgrade *upgrade, enum upgrade_phase phase)
{
    static const unsigned next[UPGRADE_PHASES] = {
        [UPGRADE_NONE] = 1u << UPGRADE_STARTING | 1u << UPGRADE_JOINING,
        [UPGRADE_STARTING] =
            1u << UPGRADE_ROLLING_BACK | 1u << UPGRADE_HANDED_OVER | 1u << UPGRADE_NONE,
        [UPGRADE_ROLLING_BACK] = 1u << UPGRADE_HANDED_OVER | 1u << UPGRADE_NONE,
        [UPGRADE_HANDED_OVER] = 1u << UPGRADE_NONE,
        [UPGRADE_JOINING] = 1u << UPGRADE_BESIDE | 1u << UPGRADE_NONE,
        [UPGRADE_BESIDE] = 1u << UPGRADE_NONE,
    };

    assert(phase < UPGRADE_PHASES);
    assert((next[upgrade->phase] & 1u << phase) != 0);
    upgrade->phase = phase;
}

void upgrade_check(const struct upgrade *upgrade)
{
    bool alone = upgrade->phase == UPGRADE_NONE;

    CHECK_KIND(upgrade, UPGRADE_KIND);
    assert(upgrade->phase < UPGRADE_PHASES);
    upgrade_link_check(&upgrade->link);
    assert(upgrade->other >= 0);
    assert(!alone || upgrade->other == 0);
    assert(!alone || upgrade->main);
    assert(!upgrade->main || !upgrade->main_owed);
    assert(!alone || (upgrade->link.fd == -1 && upgrade->diag == NULL &&
                         upgrade->controls[CONTROL_COMMANDS] == NULL));
    assert(!alone || (upgrade->sockets.n == 0 && upgrade->inboxes.form == 0));
    assert(upgrade->phase < UPGRADE_STARTING || upgrade->main);
    assert(upgrade->deadline.deadline == 0 || upgrade->phase >= UPGRADE_STARTING);
    assert(!upgrade->late || upgrade->phase == UPGRADE_ROLLING_BACK ||
           upgrade->phase == UPGRADE_HANDED_OVER);
}

bool upgrade_is_new(const struct upgrade *upgrade)
{
    return upgrade->phase == UPGRADE_JOINING || upgrade->phase == UPGRADE_BESIDE;
}

/* Drops the diagnostics of a new process's start, the target of its grave lines until now. */
static void drop_diag(struct upgrade *upgrade)
{
    if (upgrade->diag == NULL)
        return;
    if (upgrade->log->diag == upgrade->diag)
        upgrade->log->diag = NULL;
    log_update(upgrade->log);
    diag_destroy(&upgrade->diag);
}

/* Forgets the ended second master; we are the main process then. */
static void be_alone(struct upgrade *upgrade)
{
    upgrade_set(upgrade, UPGRADE_NONE);
    upgrade_link_close(&upgrade->link);
    upgrade_inboxes_end(upgrade);
    upgrade_sockets_free(&upgrade->sockets);
    binary_release(&upgrade->execution);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++) {
        free(upgrade->controls[i]);
        upgrade->controls[i] = NULL;
    }
    timers_disarm(upgrade->pool->timers, &upgrade->deadline);
    drop_diag(upgrade);
    upgrade->other = 0;
    upgrade->late = false;
    upgrade->main = true;
    upgrade->main_owed = false;
}

/* Begins the rollback of a running new process: gently first. */
static void end_other(struct upgrade *upgrade)
{
    upgrade_set(upgrade, UPGRADE_ROLLING_BACK);
    signals_send(upgrade->other, SIGTERM, upgrade->log);
    timers_arm(upgrade->pool->timers, &upgrade->deadline, KILL_MS);
}

static void meet_deadline(struct loop *loop, struct timer *timer)
{
    struct upgrade *upgrade = container_of(timer, struct upgrade, deadline);

    assert(loop == NULL);
    upgrade_check(upgrade);
    assert(upgrade->phase >= UPGRADE_STARTING);
    if (upgrade->phase == UPGRADE_ROLLING_BACK) {
        signals_send(upgrade->other, SIGKILL, upgrade->log);
        return;
    }
    end_other(upgrade);
    upgrade->late = true;
}

static void send_flag(struct upgrade *upgrade, const char *name)
{
    struct json json;

    if (upgrade->link.fd == -1)
        return;
    upgrade_link_begin(&json);
    json_bool(&json, name, true);
    upgrade_link_tell(upgrade, &json, -1);
}

void upgrade_tell_main(struct upgrade *upgrade)
{
    if (!upgrade->main_owed || notify_queue_is_waiting(&notify_state->queue))
        return;
    upgrade->main_owed = false;
    send_flag(upgrade, "main");
}

/* Makes the other process the main process. */
static void leave_main_process(struct upgrade *upgrade, bool stored)
{
    upgrade->ops->leave_main(upgrade->host, upgrade->other, stored);
    upgrade->main = false;
    upgrade->main_owed = true;
    upgrade_tell_main(upgrade);
}

void upgrade_send_rescan(struct upgrade *upgrade)
{
    upgrade_check(upgrade);
    send_flag(upgrade, "look");
}

void upgrade_announce(struct upgrade *upgrade)
{
    const struct generation *serving = upgrade->pool->serving;
    char path[PATH_MAX];
    struct json json;

    upgrade_check(upgrade);
    if (upgrade->phase == UPGRADE_JOINING) {
        upgrade_set(upgrade, UPGRADE_BESIDE);
        drop_diag(upgrade);
    }
    if (upgrade->link.fd == -1)
        return;
    upgrade_link_begin(&json);
    json_number(&json, "inboxes", MESSAGES_FORM);
    if (upgrade->phase == UPGRADE_BESIDE)
        json_bool(&json, "serves", true);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        json_string(
            &json, control_names[i], control_socket_path(&upgrade->endpoints->controls[i], path));
    upgrade_sockets_write(&json, serving != NULL ? &serving->cycle->stream.listeners : NULL);
    upgrade_link_tell(upgrade, &json, -1);
}

/* The old process */

/* Returns why an upgrade is refused, or NULL. */
static const char *refuse_upgrade(const struct upgrade *upgrade, char text[DIAG_REASON_MAX])
{
    const char *which = upgrade_is_new(upgrade) ? "old" : "new";
    int other = (int)upgrade->other;

    if (process_ops->self() == 1)
        return "process 1 cannot be replaced, the container would end with the process: start a "
               "new container";
    if (upgrade->phase == UPGRADE_NONE)
        return NULL;
    if (upgrade->phase == UPGRADE_STARTING)
        snprintf(text, DIAG_REASON_MAX,
            "an upgrade is under way: the new binary, process %d, does not serve yet; wait, or end "
            "the process by \"forkbeard upgrade back\"",
            other);
    else if (upgrade->phase == UPGRADE_ROLLING_BACK)
        snprintf(text, DIAG_REASON_MAX,
            "the upgrade before is being rolled back: process %d ends, try again then", other);
    else if (upgrade->sockets.n == 0) /* the listeners are closed */
        snprintf(text, DIAG_REASON_MAX,
            "the %s binary, process %d, still lets its sessions end: wait until the process has "
            "ended, or close the sessions by \"kill -INT %d\"",
            which, other, other);
    else
        snprintf(text, DIAG_REASON_MAX,
            "an upgrade is under way: the %s binary, process %d, serves beside process %d; "
            "complete the upgrade by \"forkbeard upgrade forward\", or take the upgrade back by "
            "\"forkbeard upgrade back\"",
            which, other, (int)process_ops->self());
    return text;
}

/* Makes the link, and starts the new process; NULL, or the call that failed, with errno. */
static const char *start(struct upgrade *upgrade, int ends[2])
{
    struct execution *execution = &upgrade->execution;
    pid_t pid;

    if (descriptor_socketpair(AF_UNIX, SOCK_STREAM, O_NONBLOCK, ends) == -1)
        return "socketpair()";
    upgrade_link_init(&upgrade->link, ends[0]);
    if (process_ops->wakeup_add(ends[0]) == -1)
        return "fcntl()";
    upgrade->diag = diag_create(); /* without it clients learn less */
    if (upgrade->diag != NULL)
        upgrade->diag_session = diag_begin(upgrade->diag);
    upgrade_announce(upgrade); /* waits in the link */
    upgrade->endpoints->pidfile.shared = true;
    if (binary_prepare(execution, upgrade->binary, upgrade->pool,
            upgrade->endpoints->pidfile.lock_fd, ends[1]) == -1)
        return "malloc()";
    pid = process_ops->fork(PROCESS_BINARY, binary_run, execution);
    if (pid == -1)
        return "fork()";
    upgrade->other = pid;
    return NULL;
}

/* Continues as if there had been no upgrade. */
static void roll_back(struct upgrade *upgrade, char why[DIAG_REASON_MAX])
{
    endpoints_take_back(upgrade->endpoints);
    diag_reason(upgrade->diag, LEVEL_ALERT, why, DIAG_REASON_MAX);
    control_reply(upgrade->clients, CONTROL_WAIT_UPGRADE_END,
        &(struct control_outcome) { .error = why, .diag = upgrade->diag });
    log_event(upgrade->log, "upgrade_rolled_back", LEVEL_ERROR, 0,
        "upgrade failed, process %d continues to serve: %s", (int)process_ops->self(), why);
    be_alone(upgrade);
}

void upgrade_begin(struct upgrade *upgrade, const char *refused, int64_t timeout_ms)
{
    char why[DIAG_REASON_MAX];
    int ends[2] = { -1, -1 };
    const char *failed;

    assert(role_is(ROLE_MASTER));
    upgrade_check(upgrade);
    failed = refused != NULL ? refused : refuse_upgrade(upgrade, why);
    if (failed != NULL) {
        log_event(upgrade->log, "upgrade_refused", LEVEL_ERROR, 0, "upgrade refused: %s", failed);
        control_reply(
            upgrade->clients, CONTROL_WAIT_UPGRADE, &(struct control_outcome) { .error = failed });
        return;
    }
    control_wait_on(upgrade->clients, CONTROL_WAIT_UPGRADE, CONTROL_WAIT_UPGRADE_END);
    upgrade_set(upgrade, UPGRADE_STARTING);
    if (endpoints_prepare_hand_over(upgrade->endpoints) == -1)
        failed = "a second pid file could not be written";
    else
        failed = start(upgrade, ends);
    if (failed != NULL) {
        snprintf(why, sizeof(why), "%s (%d: %s)", failed, errno, strerror(errno));
        roll_back(upgrade, why);
    } else {
        if (timeout_ms != 0)
            timers_arm(upgrade->pool->timers, &upgrade->deadline, (uint64_t)timeout_ms + GRACE_MS);
        log_event(upgrade->log, "upgrade_begins", LEVEL_NOTICE, 0,
            "start new binary process %d, %s", (int)upgrade->other, upgrade->binary->path);
    }
    descriptor_close(ends[1]);
}

/* Leaves the pid file and the control socket to the serving new process. */
static void hand_over_endpoints(struct upgrade *upgrade)
{
    upgrade_set(upgrade, UPGRADE_HANDED_OVER);
    timers_disarm(upgrade->pool->timers, &upgrade->deadline);
    binary_release(&upgrade->execution);
    endpoints_hand_over(upgrade->endpoints);
    upgrade_announce(upgrade); /* the control socket has another path now */
    log_event(upgrade->log, "upgrade_serves", LEVEL_NOTICE, 0,
        "new binary process %d serves: the upgrade is complete when process %d has quit",
        (int)upgrade->other, (int)process_ops->self());
    control_reply(upgrade->clients, CONTROL_WAIT_UPGRADE_END,
        &(struct control_outcome) { .ok = true, .pid = upgrade->other, .diag = upgrade->diag });
    diag_destroy(&upgrade->diag);
    leave_main_process(upgrade, true);
}

/* Describes the end of the new process; a reason that the process has sent takes precedence. */
static void describe_binary_end(const struct upgrade *upgrade, int status, char *text, size_t size)
{
    int pid = (int)upgrade->other;
    size_t n;

    if (upgrade->late)
        snprintf(text, size,
            "new binary process %d did not serve within worker_start_timeout and %d ms", pid,
            GRACE_MS);
    else if (WIFSIGNALED(status))
        snprintf(text, size, "new binary process %d exited on signal %d", pid, WTERMSIG(status));
    else
        snprintf(text, size, "new binary process %d exited with code %d", pid, WEXITSTATUS(status));
    n = strlen(text);
    if (upgrade->phase == UPGRADE_STARTING && WIFEXITED(status) && !upgrade->late)
        snprintf(text + n, size - n, " and has told no reason, see what \"%s -V\" says",
            upgrade->binary->path);
}

void upgrade_reaped(struct upgrade *upgrade, pid_t pid, int status)
{
    char why[DIAG_REASON_MAX];
    bool owed;

    upgrade_check(upgrade);
    assert(pid > 0);
    if (upgrade->phase == UPGRADE_NONE || upgrade_is_new(upgrade) || pid != upgrade->other)
        return;
    upgrade_receive(upgrade); /* the last messages */
    describe_binary_end(upgrade, status, why, sizeof(why));
    owed = upgrade->main_owed;
    if (upgrade->phase >= UPGRADE_STARTING) {
        roll_back(upgrade, why);
    } else {
        log_event(upgrade->log, "upgrade_rolled_back",
            WIFEXITED(status) ? LEVEL_NOTICE : LEVEL_ALERT, 0, "%s: process %d serves alone again",
            why, (int)process_ops->self());
        be_alone(upgrade);
        endpoints_take_back(upgrade->endpoints);
        if (owed) /* the service manager was not told */
            upgrade->ops->become_main(upgrade->host);
    }
    upgrade_alone_go_on(upgrade);
}

/* The new process */

void upgrade_init(struct upgrade *upgrade, const struct upgrade *from, struct exec_state *state)
{
    struct log *log = from->pool->log;
    struct json json;

    *upgrade = *from;
    upgrade->kind = UPGRADE_KIND;
    upgrade->log = log;
    upgrade->main = true;
    upgrade->deadline.expired = meet_deadline;
    upgrade_link_init(&upgrade->link, state->link);
    if (state->link == -1) {
        upgrade_check(upgrade);
        return;
    }
    assert(state->parent > 0);
    state->link = -1;
    upgrade_set(upgrade, UPGRADE_JOINING);
    upgrade->main = false;
    upgrade->other = state->parent;
    upgrade->diag = log->diag;
    if (process_ops->wakeup_add(upgrade->link.fd) == -1)
        log_write(log, LEVEL_ALERT, errno, "the link to master process %d is not watched",
            (int)upgrade->other);
    upgrade_receive(upgrade);
    if (upgrade->phase == UPGRADE_NONE)
        return;
    upgrade_link_begin(&json);
    json_number(&json, "inboxes", MESSAGES_FORM);
    upgrade_link_tell(upgrade, &json, -1);
}

/* Continues alone after the old process's end. */
static void outlive(struct upgrade *upgrade)
{
    bool becomes_main = upgrade->phase == UPGRADE_BESIDE && !upgrade->main;

    log_event(upgrade->log, "upgrade_completed", LEVEL_NOTICE, 0,
        "old binary process %d has ended: process %d serves alone", (int)upgrade->other,
        (int)process_ops->self());
    be_alone(upgrade);
    if (becomes_main)
        upgrade->ops->become_main(upgrade->host);
    upgrade_alone_rescan(upgrade);
}

/* Messages, for both processes */

static void handle_link_message(struct upgrade *upgrade, struct json_value message, int fd)
{
    struct json_value sockets = json_member(message, "sockets");
    bool becomes_main = json_is_true(json_member(message, "main"));
    bool rescan = json_is_true(json_member(message, "look"));
    bool serves = json_is_true(json_member(message, "serves"));
    char control[CONTROL_PATH_MAX + 1];

    if (upgrade_inboxes_handle(upgrade, message, fd))
        return;
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        if (json_text(json_member(message, control_names[i]), control, sizeof(control))) {
            free(upgrade->controls[i]);
            upgrade->controls[i] = strdup(control);
        }
    if (fd != -1)
        upgrade_sockets_take(upgrade, fd);
    if (upgrade->phase >= UPGRADE_STARTING)
        diag_add_json(upgrade->diag, upgrade->diag_session, json_member(message, "messages"));
    if (sockets.text != NULL) {
        upgrade_sockets_read(&upgrade->sockets, sockets);
        /* serves while the new process quits; a reload under way serves by itself */
        if (upgrade->sockets.n == 0 && upgrade->phase == UPGRADE_HANDED_OVER &&
            upgrade->ops->serves(upgrade->host) && upgrade->pool->starting == NULL)
            pool_revive(upgrade->pool);
    }
    if (rescan)
        upgrade_alone_rescan(upgrade);
    if (becomes_main) {
        upgrade->main = true;
        upgrade->main_owed = false;
        upgrade->ops->become_main(upgrade->host);
    }
    if (serves && upgrade->phase >= UPGRADE_STARTING)
        hand_over_endpoints(upgrade);
}

void upgrade_receive(struct upgrade *upgrade)
{
    struct json_value message;
    int fd;

    upgrade_check(upgrade);
    while (upgrade_link_next(&upgrade->link, &message, &fd))
        handle_link_message(upgrade, message, fd);
    if (upgrade->link.fd == -1)
        upgrade_inboxes_end(upgrade);
    if (upgrade->link.fd == -1 && upgrade_is_new(upgrade))
        outlive(upgrade);
}

void upgrade_tell_listeners(struct upgrade *upgrade, const struct listeners *listeners)
{
    struct json json;

    if (upgrade->link.fd == -1)
        return;
    upgrade_link_begin(&json);
    upgrade_sockets_write(&json, listeners);
    upgrade_link_tell(upgrade, &json, -1);
    upgrade_receive(upgrade);
}

void upgrade_ending(struct upgrade *upgrade, bool gracefully, bool both)
{
    upgrade_check(upgrade);
    if (upgrade->phase == UPGRADE_STARTING) /* the end of a daemon ends the upgrade */
        end_other(upgrade);
    if (both && upgrade_is_new(upgrade)) {
        signals_send(upgrade->other, gracefully ? SIGQUIT : SIGINT, upgrade->log);
    } else {
        if (upgrade->phase == UPGRADE_HANDED_OVER || upgrade->phase == UPGRADE_BESIDE)
            upgrade_sockets_give(upgrade);
        if (upgrade_is_new(upgrade) && upgrade->main)
            leave_main_process(upgrade, true);
    }
    upgrade_tell_listeners(upgrade, NULL);
}

void upgrade_ended(struct upgrade *upgrade)
{
    upgrade_check(upgrade);
    if (!upgrade_is_new(upgrade) || !upgrade->main)
        return;
    leave_main_process(upgrade, false); /* for the next start */
}

void upgrade_done(struct upgrade *upgrade, bool failed)
{
    CHECK_KIND(upgrade, UPGRADE_KIND);
    if (failed && upgrade_is_new(upgrade))
        upgrade_report(upgrade->link.fd, upgrade->diag);
    if (upgrade->main_owed) /* the service manager has read too late */
        send_flag(upgrade, "main");
    if (upgrade->phase != UPGRADE_NONE)
        be_alone(upgrade);
    upgrade->kind = 0;
}
