/* SPDX-License-Identifier: BSD-2-Clause */
/* A stand-in for <sys/devpoll.h> of illumos, poll(4D), with shims/devpoll.c as the driver. The
 * driver is used by open(), write() and ioctl(): in a file with this header these go to the shim,
 * which passes on calls for foreign descriptors. So the file is unchanged from illumos, and no
 * further file notices anything. */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct dvpoll {
    struct pollfd *dp_fds;
    nfds_t dp_nfds;
    int dp_timeout;
};

#define DP_POLL 0xd001
#define DP_ISPOLLED 0xd002

/* Handles of "/dev/poll"; all other paths and descriptors go to the system. */
int devpoll_open(const char *path, int flags, ...);
/* Weak names: a test may define these, and call devpoll_NAME_shim() itself. */
ssize_t devpoll_write(int fd, const void *p, size_t n);
ssize_t devpoll_write_shim(int fd, const void *p, size_t n);
int devpoll_ioctl(int fd, unsigned long request, void *arg);
int devpoll_ioctl_shim(int fd, unsigned long request, void *arg);

#define open(...) devpoll_open(__VA_ARGS__)
#define write(fd, p, n) devpoll_write(fd, p, n)
#define ioctl(fd, request, arg) devpoll_ioctl(fd, request, arg)
