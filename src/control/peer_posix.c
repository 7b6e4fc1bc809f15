/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells operators from workers by the user alone, whom getpeereid() of libbsd names: workers that
 * have another user than the master, and are not root's, may not ask. Workers with the master's own
 * user, and what they start, cannot be told from its operator, and may. */
#include "control/peer.h"

#include "base/check.h"

#include <bsd/unistd.h>
#include <errno.h>
#include <unistd.h>

const char *control_peer_refusal(struct control *control, int fd, pid_t *pid)
{
    static const char why[] = "permission denied: only root and the daemon's own user may ask";
    uid_t uid;
    gid_t gid;

    CHECK_KIND(control, CONTROL_KIND);
    *pid = 0;
    if (getpeereid(fd, &uid, &gid) == -1) {
        log_write(control->log, LEVEL_ERROR, errno, "a client of the control socket is unknown");
        return "who asks could not be found out";
    }
    if (uid == 0 || uid == geteuid())
        return NULL;
    log_write(control->log, LEVEL_WARN, 0,
        "a process of user %u may not use the control socket, refused: %s", (unsigned)uid, why);
    return why;
}
