/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets that do not listen any more: every process with the descriptor can stop a
 * socket for all processes, by shutdown(), or by connect(). A TCP socket is disconnected, keeps the
 * address and listens again. A unix socket cannot, and a TCP socket with a changed address must
 * not: a new socket takes the place, and has to be given to the other holders, unless a service
 * manager holds the old socket open and would pass it to the next start. Nothing here decides
 * when. */
#include "net/listener_mend.h"

#include "net/listener_set.h"
#include "net/listener_socket.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* A listener failing to listen again is tried at least once in so many times. */
#define TRIES_MOST 64

/* Makes the socket listen; -1 with the name of the failed call. */
static int listen_once_more(struct listener *listener, int fd, const char **failed, struct log *log)
{
    struct listener_system system = { .restores = true };

    *failed = "bind";
    if (listener_revive(listener, fd, log) == -1)
        return -1;
    *failed = "listen";
    return listener_listen(listener, fd, &system, log);
}

/* Puts a new socket in the place of the old one; -1 as above, or with NULL after a line. */
static int replace_broken(struct listener *listener, int fd, const char **failed, struct log *log)
{
    struct listener_system system = { 0 };
    int fresh = listener_open_socket(listener, log), error;

    assert(fresh != fd && listener->kept_n == 0);
    *failed = NULL;
    if (fresh == -1)
        return -1;
    *failed = "listen";
    if (listener_listen(listener, fresh, &system, log) == 0) {
        *failed = "dup2";
        descriptor_stop_linger(fd);
        if (descriptor_replace(fresh, fd) != -1)
            *failed = NULL;
    }
    error = errno;
    close(fresh);
    errno = error;
    return *failed == NULL ? LISTENER_REPLACED : -1;
}

static int mend_broken(
    struct listener *listener, int fd, bool may_replace, const char **failed, struct log *log)
{
    if (!listener_is_unix(listener)) {
        if (listen_once_more(listener, fd, failed, log) == 0)
            return LISTENER_MENDED;
    } else if (!may_replace) {
        log_write(log, LEVEL_EMERG, 0,
            "listener %s was shut down, and only its owner can replace it: restart the socket unit",
            listener->text);
    }
    return may_replace ? replace_broken(listener, fd, failed, log) : -1;
}

/* Whether the listener is tried now. A failing listener is tried ever less often, and less often
 * logged, but never given up. */
static bool is_due(const struct listener *listener)
{
    return listener_is_told(listener->mend_failures) || listener->mend_failures % TRIES_MOST == 0;
}

int listener_mend(struct listener *listener, int fd, const struct listeners *others,
    bool may_replace, struct log *log)
{
    const char *failed = NULL;
    int result = -1, error;

    assert(fd >= 0 && listener_has(listener, fd));
    assert(!may_replace || listener->kept_n == 0);
    if (is_due(listener)) {
        listener_set_allow(others, listener, true);
        result = mend_broken(listener, fd, may_replace, &failed, log);
        error = errno;
        listener_set_allow(others, listener, false);
        errno = error;
    }
    if (result == -1) {
        listener->mend_failures++;
        if (failed != NULL)
            log_write(log, LEVEL_EMERG, errno, "%s() to %s, which was shut down, failed", failed,
                listener->text);
        return -1;
    }
    listener->mend_failures = 0;
    if (listener_is_told(++listener->mended_n))
        log_write(log, LEVEL_ALERT, 0, "listener %s was shut down, and listens again (%u)",
            listener->text, listener->mended_n);
    return result;
}
