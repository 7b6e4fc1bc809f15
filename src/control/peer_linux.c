/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells operators from workers, and from processes that workers have started: these have a master
 * among their ancestors, because it adopts the orphans among its descendants. A client of a
 * worker's user that is gone, or that nothing can be found out about, is taken for such a process.
 * The kernel's pidfd makes sure that it is the client that is looked at, and not a later process
 * that has its pid. */
#include "control/peer.h"

#include "base/check.h"
#include "process/process_ops.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Linux 6.5 */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

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

/* Returns the client's pidfd; -1 where the kernel has none, or with *gone if the client has ended
 * and its pid may be another process's. */
static int open_pidfd(int fd, bool *gone)
{
    int pidfd = -1;
    socklen_t length = sizeof(pidfd);

    *gone = false;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
        return pidfd;
    *gone = errno == ESRCH || errno == EINVAL;
    return -1;
}

static bool has_ended(int pidfd)
{
    struct pollfd ended = { .fd = pidfd, .events = POLLIN };

    return pidfd != -1 && poll(&ended, 1, 0) != 0;
}

/* Does what find_kin() does, of the client itself and not of a process that was given its pid
 * later. */
static enum kin find_client_kin(struct control *control, int fd, pid_t pid)
{
    enum kin kin = KIN_UNKNOWN;
    bool gone;
    int pidfd = open_pidfd(fd, &gone);

    if (!gone)
        kin = find_kin(control, pid);
    if (kin == KIN_NONE && has_ended(pidfd))
        kin = KIN_UNKNOWN;
    if (pidfd != -1)
        close(pidfd);
    return kin;
}

static const char *refuse(struct control *control, const struct ucred *peer, const char *why)
{
    log_write(control->log, LEVEL_WARN, 0,
        "process %d of user %u may not use the control socket, refused: %s", (int)peer->pid,
        (unsigned)peer->uid, why);
    return why;
}

const char *control_peer_refusal(struct control *control, int fd, pid_t *pid)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    enum kin kin;

    CHECK_KIND(control, CONTROL_KIND);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == -1) {
        log_write(control->log, LEVEL_ERROR, errno, "a client of the control socket is unknown");
        return "who asks could not be found out";
    }
    *pid = peer.pid;
    if (peer.uid != 0 && peer.uid != geteuid())
        return refuse(
            control, &peer, "permission denied: only root and the daemon's own user may ask");
    if (peer.pid == 0 || peer.pid == process_ops->self())
        return NULL;
    if (control->ops->is_worker(control->host, peer.pid))
        return refuse(control, &peer, "permission denied: it is a worker process");
    kin = find_client_kin(control, fd, peer.pid);
    if (kin == KIN_DESCENDANT)
        return refuse(control, &peer, "permission denied: a worker or module has started it");
    if (kin == KIN_UNKNOWN && control->ops->is_worker_user(control->host, peer.uid))
        return refuse(control, &peer,
            "permission denied: it has ended before it was known not to be a worker");
    return NULL;
}
