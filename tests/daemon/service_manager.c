/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes the messages of sd_notify(3) from a socket and keeps the descriptors in them, as systemd
 * does. */
#include "daemon/service_manager.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKET "manager"
#define BARRIER "BARRIER=1"
#define FILLER "X_FILLER=1"

/* For the child, and a function without arguments. */
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
    manager->barrier = -1;
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
    service_manager_answer(manager);
    if (manager->daemon->pid != 0 && manager->fd != -1)
        service_manager_stop(manager, SIGTERM);
    else if (manager->daemon->pid != 0)
        daemon_stop(manager->daemon, SIGTERM);
    while (manager->stored_n > 0)
        remove_stored(manager, 0);
    for (unsigned i = 0; i < manager->inbox_n; i++)
        if (manager->inbox[i].fd != -1)
            close(manager->inbox[i].fd);
    if (manager->fd != -1)
        close(manager->fd);
    unlink(daemon_path(manager->daemon, SOCKET));
    manager->daemon->before_exec = NULL;
    free(manager);
}

void service_manager_answer(struct service_manager *manager)
{
    if (manager->barrier != -1)
        close(manager->barrier);
    manager->barrier = -1;
    manager->keeps_barriers = false;
}

/* Sends until the queue, or the sender's own buffer, is full; whether anything was sent. */
static bool send_fillers(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool any = false;

    ck_assert_int_ne(fd, -1);
    while (sendto(fd, FILLER, strlen(FILLER), 0, (const struct sockaddr *)address,
               sizeof(*address)) > 0)
        any = true;
    ck_assert_int_eq(errno, EAGAIN);
    close(fd);
    return any;
}

void service_manager_fill(struct service_manager *manager)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    snprintf(
        address.sun_path, sizeof(address.sun_path), "%s", daemon_path(manager->daemon, SOCKET));
    while (send_fillers(&address))
        continue;
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

static void handle_barrier(struct service_manager *manager, int fd)
{
    ck_assert_int_ne(fd, -1);
    manager->unconfirmed = false;
    if (!manager->keeps_barriers) {
        close(fd);
        return;
    }
    if (manager->barrier != -1)
        close(manager->barrier);
    manager->barrier = fd;
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

/* Takes what has come into the inbox, and answers barriers; false if nothing comes in time. */
static bool receive(struct service_manager *manager, int wait_ms)
{
    struct service_manager_message *taken = &manager->inbox[manager->inbox_n];
    struct iovec piece = { taken->text, sizeof(taken->text) - 1 };
    char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    struct msghdr message = { .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control) };
    struct pollfd wait = { .fd = manager->fd, .events = POLLIN };
    struct ucred sender = { .pid = 0 };
    ssize_t n;

    if (poll(&wait, 1, wait_ms) != 1)
        return false;
    n = recvmsg(manager->fd, &message, MSG_CMSG_CLOEXEC);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC), 0);
    taken->text[n] = '\0';
    taken->fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_type == SCM_RIGHTS)
            memcpy(&taken->fd, CMSG_DATA(c), sizeof(taken->fd));
        else
            memcpy(&sender, CMSG_DATA(c), sizeof(sender));
    taken->pid = sender.pid;
    if (strcmp(taken->text, FILLER) == 0)
        return true;
    if (strcmp(taken->text, BARRIER) == 0) {
        handle_barrier(manager, taken->fd);
        return true;
    }
    if (strncmp(taken->text, "FDSTORE", 7) == 0 || strncmp(taken->text, "MAINPID=", 8) == 0)
        manager->unconfirmed = true;
    manager->inbox_n++;
    ck_assert_uint_lt(manager->inbox_n, SERVICE_MANAGER_INBOX_MAX);
    return true;
}

static void wait_message(struct service_manager *manager)
{
    ck_assert_msg(receive(manager, (int)patience_ms()),
        "the manager was told nothing more; the log:\n%.3000s",
        daemon_text(manager->daemon, manager->daemon->log));
}

const char *service_manager_next(struct service_manager *manager)
{
    while (manager->inbox_n == 0)
        wait_message(manager);
    manager->message = manager->inbox[0];
    manager->inbox_n--;
    memmove(manager->inbox, manager->inbox + 1, manager->inbox_n * sizeof(manager->inbox[0]));
    if (manager->daemon->pid != 0)
        ck_assert_int_eq(manager->message.pid, manager->daemon->pid);
    handle_message(manager, manager->message.fd);
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

bool service_manager_is_quiet(struct service_manager *manager)
{
    while (receive(manager, 0))
        continue;
    return manager->inbox_n == 0;
}

void service_manager_wait_barrier(struct service_manager *manager)
{
    while (manager->unconfirmed)
        wait_message(manager);
}

void service_manager_stop(struct service_manager *manager, int number)
{
    siginfo_t info = { .si_pid = 0 };

    daemon_signal(manager->daemon, number);
    while (waitid(P_PID, (id_t)manager->daemon->pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
           info.si_pid == 0)
        receive(manager, 10);
    ck_assert_int_eq(daemon_wait(manager->daemon), 0);
}
