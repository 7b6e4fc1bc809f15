/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes the messages of sd_notify(3) from a socket and keeps the descriptors that come with them,
 * as systemd does. */
#include "daemon/service_manager.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET "manager"

/* For the child, which calls a function without arguments. */
static struct {
    char path[128], interval[32];
    bool other;
} environment;

static void set_environment(void)
{
    char pid[32];

    snprintf(pid, sizeof(pid), "%d", environment.other ? 1 : (int)getpid());
    setenv("NOTIFY_SOCKET", environment.path, 1);
    if (environment.interval[0] == '\0')
        return;
    setenv("WATCHDOG_USEC", environment.interval, 1);
    setenv("WATCHDOG_PID", pid, 1);
}

struct service_manager *service_manager_create(
    struct daemon *daemon, uint64_t watchdog_us, bool other)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct service_manager *manager = calloc(1, sizeof(*manager));
    int on = 1;

    ck_assert_ptr_nonnull(manager);
    manager->daemon = daemon;
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ne(manager->fd, -1);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon_path(daemon, SOCKET));
    ck_assert_int_eq(bind(manager->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(setsockopt(manager->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);

    snprintf(environment.path, sizeof(environment.path), "%s", address.sun_path);
    snprintf(environment.interval, sizeof(environment.interval), "%llu",
        (unsigned long long)watchdog_us);
    if (watchdog_us == 0)
        environment.interval[0] = '\0';
    environment.other = other;
    daemon->before_exec = set_environment;
    return manager;
}

static void remove_stored(struct service_manager *manager, unsigned i)
{
    close(manager->store[i].fd);
    manager->store[i] = manager->store[--manager->stored_n];
}

void service_manager_destroy(struct service_manager *manager)
{
    while (manager->stored_n > 0)
        remove_stored(manager, 0);
    if (manager->daemon->pid != 0)
        daemon_stop(manager->daemon, SIGTERM);
    if (manager->fd != -1)
        close(manager->fd);
    unlink(daemon_path(manager->daemon, SOCKET));
    manager->daemon->before_exec = NULL;
    free(manager);
}

void service_manager_go(struct service_manager *manager)
{
    close(manager->fd);
    manager->fd = -1;
}

/* The value of a line, which is copied; "" if there is none. */
static void value_of(const char *text, const char *key, char *value, size_t size)
{
    const char *line = strstr(text, key);

    value[0] = '\0';
    if (line != NULL)
        snprintf(value, size, "%.*s", (int)strcspn(line + strlen(key), "\n"), line + strlen(key));
}

static void handle_message(struct service_manager *manager, int fd)
{
    char name[256];

    value_of(manager->message.text, "FDNAME=", name, sizeof(name));
    for (const char *p = name; *p != '\0'; p++)
        ck_assert(*p >= 0x20 && *p < 0x7f && *p != ':');
    if (strstr(manager->message.text, "FDSTORE=1") != NULL) {
        ck_assert(fd != -1 && name[0] != '\0' && manager->stored_n < SERVICE_MANAGER_STORE_MAX);
        snprintf(manager->store[manager->stored_n].name, sizeof(name), "%s", name);
        manager->store[manager->stored_n++].fd = fd;
        return;
    }
    ck_assert_int_eq(fd, -1);
    if (strstr(manager->message.text, "FDSTOREREMOVE=1") == NULL)
        return;
    for (unsigned i = manager->stored_n; i-- > 0;)
        if (strcmp(manager->store[i].name, name) == 0)
            remove_stored(manager, i);
}

const char *service_manager_next(struct service_manager *manager)
{
    struct iovec piece = { manager->message.text, sizeof(manager->message.text) - 1 };
    char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    struct msghdr message = { .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control) };
    struct pollfd wait = { .fd = manager->fd, .events = POLLIN };
    struct ucred sender = { .pid = 0 };
    int fd = -1;
    ssize_t n;

    ck_assert_msg(poll(&wait, 1, (int)(deadline_ms() - now_ms())) == 1,
        "the manager was told nothing more; the log:\n%.3000s",
        daemon_text(manager->daemon, manager->daemon->log));
    n = recvmsg(manager->fd, &message, MSG_CMSG_CLOEXEC);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC), 0);
    manager->message.text[n] = '\0';
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_type == SCM_RIGHTS)
            memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        else
            memcpy(&sender, CMSG_DATA(c), sizeof(sender));
    manager->message.pid = sender.pid;
    if (manager->daemon->pid != 0)
        ck_assert_int_eq(sender.pid, manager->daemon->pid);
    handle_message(manager, fd);
    return manager->message.text;
}

void service_manager_expect(struct service_manager *manager, const char *text)
{
    const char *next;

    do
        next = service_manager_next(manager);
    while (strcmp(next, "WATCHDOG=1") == 0 || strncmp(next, "FDSTORE", strlen("FDSTORE")) == 0);
    ck_assert_str_eq(manager->message.text, text);
}

const char *service_manager_wait(struct service_manager *manager, const char *beginning)
{
    while (strncmp(service_manager_next(manager), beginning, strlen(beginning)) != 0)
        continue;
    return manager->message.text;
}

bool service_manager_is_quiet(const struct service_manager *manager)
{
    struct pollfd wait = { .fd = manager->fd, .events = POLLIN };

    return poll(&wait, 1, 0) == 0;
}
