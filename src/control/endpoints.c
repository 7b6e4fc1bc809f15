/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves the pid file and the control sockets through their phases. endpoints_set() alone changes
 * the phase. An unchanged path is only compared with the file. */
#include "control/endpoints.h"

#include "base/check.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDPOINTS_KIND KIND('E', 'n', 'd', 'p')

static void endpoints_set(struct endpoints *endpoints, enum endpoints_phase phase)
{
    static const unsigned next[ENDPOINTS_PHASES] = {
        [ENDPOINTS_OURS] = 1u << ENDPOINTS_OURS | 1u << ENDPOINTS_SHARED | 1u << ENDPOINTS_ASIDE,
        [ENDPOINTS_SHARED] = 1u << ENDPOINTS_OURS | 1u << ENDPOINTS_HANDED_OVER,
        [ENDPOINTS_HANDED_OVER] = 1u << ENDPOINTS_OURS | 1u << ENDPOINTS_ASIDE,
        [ENDPOINTS_ASIDE] = 1u << ENDPOINTS_OURS,
    };

    assert(phase < ENDPOINTS_PHASES);
    assert((next[endpoints->phase] & 1u << phase) != 0);
    endpoints->phase = phase;
}

void endpoints_check(const struct endpoints *endpoints)
{
    const struct pidfile *pidfile = &endpoints->pidfile, *next = &endpoints->next_pidfile;

    CHECK_KIND(endpoints, ENDPOINTS_KIND);
    assert(endpoints->phase < ENDPOINTS_PHASES);
    assert(pidfile->path != NULL);
    assert(pidfile->lock_fd != -1 || endpoints->phase == ENDPOINTS_ASIDE);
    assert(pidfile->left == (endpoints->phase >= ENDPOINTS_HANDED_OVER));
    assert((next->lock_fd == -1) == (next->path == NULL));
    assert(!next->left && (next->lock_fd == -1 || next->lock_fd != pidfile->lock_fd));
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++) {
        const struct control_socket *control = &endpoints->controls[i];
        const struct control_socket *next_control = &endpoints->next_controls[i];

        assert((control->path == NULL) == (control->fd == -1));
        assert((next_control->path == NULL) == (next_control->fd == -1));
        assert(next_control->fd == -1 || next_control->fd != control->fd);
    }
}

void endpoints_init(struct endpoints *endpoints, const struct pidfile *pidfile, struct log *log)
{
    *endpoints = (struct endpoints) {
        .kind = ENDPOINTS_KIND,
        .log = log,
        .pidfile = *pidfile,
        .next_pidfile = { .lock_fd = -1 },
    };
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++) {
        control_socket_init(&endpoints->controls[i]);
        control_socket_init(&endpoints->next_controls[i]);
    }
    endpoints_check(endpoints);
}

/* Locks a pid file at a copy of the path, into an unlocked struct; -1 after an emerg line. */
static int lock_next_pidfile(struct pidfile *pidfile, const char *path, struct log *log)
{
    char *copy = strdup(path);

    assert(pidfile->lock_fd == -1);
    if (copy == NULL) {
        log_write(log, LEVEL_EMERG, errno, "no memory for the path of the pid file");
        return -1;
    }
    if (pidfile_lock(pidfile, copy, log) == 0)
        return 0;
    free(copy);
    *pidfile = (struct pidfile) { .lock_fd = -1 };
    return -1;
}

static void remove_pidfile(struct pidfile *pidfile, struct log *log)
{
    if (pidfile->path == NULL)
        return;
    pidfile_release(pidfile, log);
    free((char *)pidfile->path);
    *pidfile = (struct pidfile) { .lock_fd = -1 };
}

static const struct control_settings *settings_of(
    const struct core_settings *core, enum control_use use)
{
    return use == CONTROL_READ ? &core->control_read : &core->control;
}

/* Makes the control socket, unless there is none or the socket is there. */
static int prepare_control(struct endpoints *endpoints, enum control_use use,
    const struct control_settings *settings, const char *replaced)
{
    struct control_socket *next = &endpoints->next_controls[use];
    const char *path = settings->path;

    if (path == NULL || control_socket_is_at(&endpoints->controls[use], path) ||
        control_socket_is_at(next, path))
        return 0;
    control_socket_remove(next, endpoints->log);
    return control_socket_create(
        next, settings, replaced != NULL && strcmp(replaced, path) == 0, endpoints->log);
}

int endpoints_prepare(
    struct endpoints *endpoints, const struct core_settings *core, char *const *replaced)
{
    struct pidfile *pidfile = &endpoints->pidfile, *next = &endpoints->next_pidfile;

    assert(role_is(ROLE_MASTER));
    CHECK_KIND(endpoints, ENDPOINTS_KIND);
    if (endpoints->phase == ENDPOINTS_HANDED_OVER) /* until the other process has gone */
        return 0;
    if (endpoints->phase != ENDPOINTS_ASIDE && pidfile_is_at(pidfile, core->pid)) {
        if (pidfile_lock_again(pidfile, endpoints->log) == -1)
            return -1;
    } else if (next->lock_fd == -1 || !pidfile_is_at(next, core->pid)) {
        remove_pidfile(next, endpoints->log);
        if (lock_next_pidfile(next, core->pid, endpoints->log) == -1)
            return -1;
    }
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        if (prepare_control(
                endpoints, i, settings_of(core, i), replaced != NULL ? replaced[i] : NULL) == -1)
            return -1;
    return pidfile_write_pid(next->lock_fd != -1 ? next : pidfile, endpoints->log);
}

void endpoints_undo(struct endpoints *endpoints)
{
    endpoints_check(endpoints);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++) {
        control_socket_remove(&endpoints->next_controls[i], endpoints->log);
        assert(endpoints->next_controls[i].fd == -1);
    }
    remove_pidfile(&endpoints->next_pidfile, endpoints->log);
    assert(endpoints->next_pidfile.path == NULL);
}

/* Gives sockets that stay at their paths the rights of the configuration. */
static int allow_again(struct endpoints *endpoints, const struct core_settings *core)
{
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++) {
        const struct control_settings *settings = settings_of(core, i);

        if (settings->path != NULL && endpoints->next_controls[i].fd == -1 &&
            control_socket_allow(&endpoints->controls[i], &settings->rights, endpoints->log) == -1)
            return -1;
    }
    return 0;
}

static void publish_control(
    struct endpoints *endpoints, enum control_use use, const struct control_settings *settings)
{
    struct control_socket *control = &endpoints->controls[use];
    struct control_socket *next = &endpoints->next_controls[use];

    if (next->fd == -1 && (settings->path != NULL || control->fd == -1))
        return;
    control_socket_remove(control, endpoints->log);
    *control = *next;
    control_socket_init(next);
    process_ops->raise(SIGIO); /* clients may have connected before */
}

int endpoints_publish(
    struct endpoints *endpoints, const struct core_settings *core, char *const *replaced)
{
    /* a socket that was handed over keeps the second name until the end of the new process */
    bool handed_over = endpoints->phase == ENDPOINTS_HANDED_OVER;

    if (endpoints_prepare(endpoints, core, replaced) == -1 ||
        (!handed_over && allow_again(endpoints, core) == -1)) {
        endpoints_undo(endpoints);
        return -1;
    }
    for (unsigned i = 0; !handed_over && i < CONTROL_SOCKETS; i++)
        publish_control(endpoints, i, settings_of(core, i));
    if (endpoints->next_pidfile.lock_fd != -1) {
        remove_pidfile(&endpoints->pidfile, endpoints->log);
        endpoints->pidfile = endpoints->next_pidfile;
        endpoints->next_pidfile = (struct pidfile) { .lock_fd = -1 };
    }
    if (endpoints->phase == ENDPOINTS_ASIDE)
        endpoints_set(endpoints, ENDPOINTS_OURS);
    return 0;
}

void endpoints_publish_again(
    struct endpoints *endpoints, const struct core_settings *core, char *const *replaced)
{
    if (endpoints_publish(endpoints, core, replaced) == -1)
        log_write(endpoints->log, LEVEL_ERROR, 0,
            "the pid file and the control socket stay where they are, reload to try again");
}

int endpoints_prepare_hand_over(struct endpoints *endpoints)
{
    endpoints_check(endpoints);
    endpoints_set(endpoints, ENDPOINTS_SHARED);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        control_socket_add_name(
            &endpoints->controls[i], PIDFILE_OLD_SUFFIX, endpoints->log); /* signals still work */
    return pidfile_add_name(&endpoints->pidfile, PIDFILE_OLD_SUFFIX, endpoints->log);
}

void endpoints_hand_over(struct endpoints *endpoints)
{
    endpoints_check(endpoints);
    endpoints_set(endpoints, ENDPOINTS_HANDED_OVER);
    pidfile_leave_path(&endpoints->pidfile, endpoints->log);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        control_socket_leave_path(&endpoints->controls[i]);
}

void endpoints_take_back(struct endpoints *endpoints)
{
    endpoints_check(endpoints);
    if (endpoints->phase == ENDPOINTS_ASIDE)
        return;
    endpoints_set(endpoints, ENDPOINTS_OURS);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        control_socket_restore_path(&endpoints->controls[i], endpoints->log);
    pidfile_restore_path(&endpoints->pidfile, endpoints->log);
}

void endpoints_step_aside(struct endpoints *endpoints)
{
    char suffix[PIDFILE_SUFFIX_MAX];

    endpoints_check(endpoints);
    assert(endpoints->next_pidfile.path == NULL);
    if (endpoints->phase != ENDPOINTS_ASIDE) /* otherwise for the sake of our pid */
        endpoints_set(endpoints, ENDPOINTS_ASIDE);
    snprintf(suffix, sizeof(suffix), PIDFILE_QUIT_SUFFIX "%d", (int)process_ops->self());
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++) {
        assert(endpoints->next_controls[i].fd == -1);
        control_socket_add_name(&endpoints->controls[i], suffix, endpoints->log);
        control_socket_leave_path(&endpoints->controls[i]);
    }
    pidfile_add_name(
        &endpoints->pidfile, suffix, endpoints->log); /* a failure does not keep the next start */
    pidfile_leave_path(&endpoints->pidfile, endpoints->log);
}

void endpoints_remove(struct endpoints *endpoints)
{
    endpoints_undo(endpoints);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        control_socket_remove(&endpoints->controls[i], endpoints->log);
    remove_pidfile(&endpoints->pidfile, endpoints->log);
    endpoints->kind = 0;
}
