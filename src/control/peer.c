/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells operators from workers, and from children of workers: children have a master among the
 * ancestors, because a master adopts orphaned descendants. A gone or unknown client with a worker's
 * user counts as a worker's child. The kernel's pidfd excludes a later process with the client's
 * pid. Where the system tells no pid of a client, workers with the master's own user, and workers'
 * children, may ask. */
#include "control/peer.h"

#include "base/check.h"
#include "os/sockets.h"
#include "pool/worker.h"
#include "process/process_ops.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define GENERATIONS_MAX 256 /* of ancestors */

/* The kin of a client with the daemon. */
enum kin { KIN_NONE, KIN_DESCENDANT, KIN_UNKNOWN };

/* Follows the parents of a process up to a master or to the first process. */
static enum kin find_kin(struct control *control, pid_t client)
{
    struct proc_stat stat;
    pid_t pid = client;

    for (int i = 0; i < GENERATIONS_MAX; i++) {
        bool lives = process_ops->proc_read(pid, &stat) && stat.state != 'Z' && stat.state != 'X';

        if (!lives && pid == client)
            return KIN_UNKNOWN;
        if (lives && control->ops->is_master(control->host, stat.parent))
            return KIN_DESCENDANT;
        if (lives && stat.parent <= 1)
            return KIN_NONE;
        pid = lives ? stat.parent : client; /* ancestor ended: children have a new parent */
    }
    return KIN_UNKNOWN;
}

/* Implements find_kin() for the client itself, not for a later process with the pid. */
static enum kin find_client_kin(struct control *control, int fd, pid_t pid)
{
    enum kin kin = KIN_UNKNOWN;
    int pidfd = os_socket_peer_handle(fd);
    struct pollfd ended = { .fd = pidfd, .events = POLLIN };

    if (pidfd != -1 || errno != ESRCH)
        kin = find_kin(control, pid);
    if (kin == KIN_NONE && pidfd != -1 && poll(&ended, 1, 0) != 0)
        kin = KIN_UNKNOWN;
    if (pidfd != -1)
        close(pidfd);
    return kin;
}

static const char *refuse_peer(struct control *control, uid_t uid, pid_t pid, const char *why)
{
    char process[32] = "a process";

    if (pid != 0)
        snprintf(process, sizeof(process), "process %d", (int)pid);
    log_write(control->log, LEVEL_WARN, 0,
        "%s of user %u may not use the control socket, refused: %s", process, (unsigned)uid, why);
    return why;
}

/* Whether workers run as the user. */
static bool is_worker_user(const struct pool *pool, uid_t uid)
{
    const struct generation *generation;

    TAILQ_FOREACH (generation, &pool->generations, link) {
        const struct core_settings *core = &generation->cycle->core;

        if (uid == (core->user != NULL ? core->uid : geteuid()))
            return true;
    }
    return false;
}

const char *control_peer_refusal(struct control *control, int fd, pid_t *pid)
{
    uid_t uid;
    enum kin kin;

    CHECK_KIND(control, CONTROL_KIND);
    if (os_socket_peer(fd, &uid, pid) == -1) {
        log_write(control->log, LEVEL_ERROR, errno, "a client of the control socket is unknown");
        return "who asks could not be found out";
    }
    if (uid != 0 && uid != geteuid())
        return refuse_peer(
            control, uid, *pid, "permission denied: only root and the daemon's own user may ask");
    if (*pid == 0 || *pid == process_ops->self())
        return NULL;
    if (pool_find_worker(control->pool, *pid) != NULL)
        return refuse_peer(control, uid, *pid, "permission denied: it is a worker process");
    kin = find_client_kin(control, fd, *pid);
    if (kin == KIN_DESCENDANT)
        return refuse_peer(
            control, uid, *pid, "permission denied: a worker or module has started it");
    if (kin == KIN_UNKNOWN && is_worker_user(control->pool, uid))
        return refuse_peer(control, uid, *pid,
            "permission denied: it has ended before it was known not to be a worker");
    return NULL;
}
