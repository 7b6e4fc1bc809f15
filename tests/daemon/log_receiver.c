/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives log lines as datagrams, and waits for lines with a deadline. */
#include "daemon/log_receiver.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int log_receiver_udp(in_port_t *port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, n), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

int log_receiver_unix(const struct daemon *daemon, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon_path(daemon, name));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(chmod(address.sun_path, 0666), 0);
    return fd;
}

void log_receiver_end(const struct daemon *daemon, const char *name, int fd)
{
    close(fd);
    ck_assert_int_eq(unlink(daemon_path(daemon, name)), 0);
}

const char *log_receiver_next(int fd)
{
    static char text[8192];
    ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    text[n == -1 ? 0 : n] = '\0';
    return text;
}

const char *log_receiver_wait(int fd, const char *text)
{
    const char *found = "";

    for (int64_t until = deadline_ms(); strstr(found, text) == NULL;) {
        ck_assert_msg(now_ms() < until, "waited in vain for \"%s\"", text);
        found = log_receiver_next(fd);
        if (*found == '\0')
            pause_briefly();
    }
    return found;
}

unsigned log_receiver_drain(int fd, const char *text)
{
    unsigned n = 0;

    for (const char *found; *(found = log_receiver_next(fd)) != '\0';)
        n += strstr(found, text) != NULL;
    return n;
}
