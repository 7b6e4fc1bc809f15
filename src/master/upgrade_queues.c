/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket with reuseport is a queue of its own, and who waits in it is lost when the last closes it.
 * With more workers one of the two master processes has queues that the other lacks: when it ends, it
 * gives them to the other, whose next workers serve them. */
#include "master/master.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

uint64_t fb_upgrade_inode(int fd)
{
    struct stat st;

    return fd != -1 && fstat(fd, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Whether the other one has it. */
static bool is_shared(const struct fb_upgrade *upgrade, int fd)
{
    uint64_t inode = fb_upgrade_inode(fd);

    for (unsigned i = 0; i < upgrade->socket_n; i++)
        if (inode != 0 && upgrade->sockets[i] == inode)
            return true;
    return false;
}

bool fb_upgrade_shares(const struct master *master, const struct fb_listener *listener)
{
    return listener->fd_n > 0 && is_shared(&master->upgrade, listener->fds[0]);
}

/* A message that says nothing, with the socket. */
static int send_socket(int link, int fd)
{
    static const char nothing[] = "{}\n";
    struct iovec piece = { (char *)nothing, sizeof(nothing) - 1 };
    union control control;
    struct msghdr header = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.room),
    };

    memset(&control, 0, sizeof(control));
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
    return sendmsg(link, &header, MSG_NOSIGNAL) == -1 && errno != EPIPE ? -1 : 0;
}

void fb_upgrade_give_queues(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    const struct fb_listener *listener;

    if (upgrade->link == -1 || !upgrade->serves || master->pool.serving == NULL)
        return;
    STAILQ_FOREACH (listener, &master->pool.serving->cycle->stream.listeners, link)
        for (unsigned i = 0; i < listener->fd_n && listener->options.reuseport; i++)
            if (listener->fds[i] != -1 && !is_shared(upgrade, listener->fds[i]) &&
                send_socket(upgrade->link, listener->fds[i]) == -1)
                fb_log(&master->log, FB_ALERT, errno,
                    "a socket of %s could not be given to process %d", listener->text,
                    (int)upgrade->other);
}

ssize_t fb_upgrade_receive(int link, void *bytes, size_t n, int *fd)
{
    struct iovec piece = { bytes, n };
    union control control;
    struct msghdr header = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.room),
    };
    ssize_t received = recvmsg(link, &header, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = received > 0 ? CMSG_FIRSTHDR(&header) : NULL;

    *fd = -1;
    if (c != NULL && c->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(c), sizeof(int));
    return received;
}

/* Whether one of them is of the socket's address, and has it now. */
static bool take(struct fb_listeners *listeners, const struct fb_address *address, int fd)
{
    struct fb_listener *listener;

    STAILQ_FOREACH (listener, listeners, link) {
        if (!fb_address_equal(&listener->address, address))
            continue;
        for (unsigned i = 0; i < listener->fd_n; i++)
            if (fb_upgrade_inode(listener->fds[i]) == fb_upgrade_inode(fd))
                return false;
        return fb_listener_add(listener, fd) == 0;
    }
    return false;
}

/* Those of a generation that starts are the live one's as well until it is committed, and then its
 * alone. */
static bool take_all(struct master *master, const struct fb_address *address, int fd)
{
    struct generation *starting = master->pool.starting;
    bool taken = false;

    if (starting == NULL || starting->phase == GENERATION_STARTING)
        taken = take(&master->pool.serving->cycle->stream.listeners, address, fd);
    if (starting != NULL)
        taken = take(&starting->cycle->stream.listeners, address, fd) || taken;
    return taken;
}

void fb_upgrade_take_queue(struct master *master, int fd)
{
    struct fb_address address = { .length = sizeof(address.un) };
    char text[FB_ADDRESS_TEXT];

    if (master->phase != MASTER_RUNS || master->pool.serving == NULL ||
        getsockname(fd, &address.any, &address.length) == -1 || !take_all(master, &address, fd)) {
        close(fd);
        return;
    }
    fb_log(&master->log, FB_NOTICE, 0,
        "a socket of %s comes from process %d: workers that serve it are started",
        fb_address_format(&address, true, text), (int)master->upgrade.other);
    fb_order_give(FB_ORDER_RELOAD);
}
