/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners of the real kernel on free ports, and clients. */
#include "net/listening.h"

#include "net/address_parse.h"
#include "net/listener_open.h"
#include "net/listener_options.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Options that this system has. */
const struct listener_options every_option = {
    .backlog = 511,
    .rcvbuf = 16384,
    .sndbuf = 32768,
    .fastopen = LINUX_SYSTEM ? 5 : -1,
    .deferred = LINUX_SYSTEM,
    .ipv6only = true,
    .tcp_nodelay = true,
    .keepalive = LISTENER_KEEPALIVE_ON,
    .keepidle = LINUX_SYSTEM ? 77 : 0,
    .keepintvl = LINUX_SYSTEM ? 7 : 0,
    .keepcnt = LINUX_SYSTEM ? 3 : 0,
};

unsigned count_fds(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) != -1)
            n++;
    return n;
}

struct listening *listening_start(void)
{
    struct listening *listening = calloc(1, sizeof(*listening));

    ck_assert_ptr_nonnull(listening);
    listening->fd_n = count_fds();
    listening->arena = arena_create();
    ck_assert_ptr_nonnull(listening->arena);
    memory_log_open(&listening->log, LEVEL_INFO);
    return listening;
}

void listening_stop(struct listening *listening)
{
    memory_log_close(&listening->log);
    arena_destroy(&listening->arena);
    ck_assert_uint_eq(count_fds(), listening->fd_n);
    free(listening);
}

struct listener *listening_create(
    struct listening *listening, const char *text, const struct listener_options *options)
{
    struct address address;
    const char *wrong = address_parse(text, 0, &address);
    struct listener *listener;

    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
    listener =
        listener_create(listening->arena, &address, options != NULL ? options : &listener_defaults);
    ck_assert_ptr_nonnull(listener);
    return listener;
}

struct listener *listening_open(struct listening *listening, const char *text,
    const struct listener_options *options, const struct listener *from, unsigned slots)
{
    struct listener *listener = listening_create(listening, text, options);
    int rc = listener_open(listener, from, slots, &listening->log.log);

    ck_assert_msg(rc == 0, "%s", memory_log_take(&listening->log));
    return listener;
}

void listening_commit(struct listening *listening, struct listener *listener)
{
    int rc = listener_commit(listener, &(struct listener_system) { 0 }, &listening->log.log);

    ck_assert_msg(rc == 0, "%s", memory_log_take(&listening->log));
    ck_assert_str_eq(memory_log_take(&listening->log), "");
}

int try_connect(const struct address *address)
{
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

    ck_assert_int_ne(fd, -1);
    if (connect(fd, &address->any, address->length) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

unsigned accept_next(const struct listener *listener, int *fd)
{
    struct pollfd polls[SLOTS];

    ck_assert_uint_le(listener->fd_n, SLOTS);
    for (unsigned i = 0; i < listener->fd_n; i++)
        polls[i] = (struct pollfd) { .fd = listener->fds[i], .events = POLLIN };
    ck_assert_int_gt(poll(polls, listener->fd_n, TEST_PATIENCE_MS), 0);
    for (unsigned i = 0; i < listener->fd_n; i++) {
        if ((polls[i].revents & POLLIN) == 0)
            continue;
        *fd = accept4(listener->fds[i], NULL, NULL, SOCK_CLOEXEC);
        ck_assert_int_ne(*fd, -1);
        return i;
    }
    ck_abort_msg("an event that is not a connection");
}

unsigned slot_of_a_client(const struct listener *listener)
{
    int client = try_connect(&listener->address), server;
    unsigned slot;

    ck_assert_msg(client != -1, "%s: %s", listener->text, strerror(errno));
    slot = accept_next(listener, &server);
    close(client);
    close(server);
    return slot;
}

int option_of(int fd, int level, int option)
{
    int value;
    socklen_t length = sizeof(value);

    ck_assert_int_eq(getsockopt(fd, level, option, &value, &length), 0);
    return value;
}
