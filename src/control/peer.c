/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells operators from workers, and from processes that workers have started: the latter have a
 * master among their ancestors, because it adopts the orphans among its descendants. A client of a
 * worker's user that is gone, or unknown, counts as such a process. The kernel's pidfd makes sure
 * that the client is looked at, and not a later process with its pid. Where the system tells no pid
 * of a client, workers with the master's own user, and what they start, may ask. */
#include "control/peer.h"

#include "base/check.h"
#include "os/sockets.h"
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
        pid = lives ? stat.parent : client; /* an ancestor has ended: its children have another */
    }
    return KIN_UNKNOWN;
}

static bool peer_has_ended(int pidfd)
{
    struct pollfd ended = { .fd = pidfd, .events = POLLIN };

    return pidfd != -1 && poll(&ended, 1, 0) != 0;
}

/* Does what find_kin() does, of the client itself and not of a process that was given its pid
 * later. */
static enum kin find_client_kin(struct control *control, int fd, pid_t pid)
{
    enum kin kin = KIN_UNKNOWN;
    int pidfd = os_socket_peer_handle(fd);

    if (pidfd != -1 || errno != ESRCH)
        kin = find_kin(control, pid);
    if (kin == KIN_NONE && peer_has_ended(pidfd))
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
    if (control->ops->is_worker(control->host, *pid))
        return refuse_peer(control, uid, *pid, "permission denied: it is a worker process");
    kin = find_client_kin(control, fd, *pid);
    if (kin == KIN_DESCENDANT)
        return refuse_peer(
            control, uid, *pid, "permission denied: a worker or module has started it");
    if (kin == KIN_UNKNOWN && control->ops->is_worker_user(control->host, uid))
        return refuse_peer(control, uid, *pid,
            "permission denied: it has ended before it was known not to be a worker");
    return NULL;
}
