/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager's socket, store of descriptors, and list of messages. */
#include "plays/manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char filler[] = "X_FILLER=1";

static struct sockaddr_un address_of(const struct play *play)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    strcpy(address.sun_path, play_path(play, "notify"));
    return address;
}

struct play_manager *play_manager_create(struct play *play, uint64_t watchdog_us, bool other)
{
    struct play_manager *manager = calloc(1, sizeof(*manager));
    struct sockaddr_un address = address_of(play);

    test_require(manager != NULL && play->manager == NULL);
    manager->play = play;
    manager->barrier = -1;
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    test_require(manager->fd != -1);
    test_require(bind(manager->fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    snprintf(manager->environment[0], sizeof(manager->environment[0]), "NOTIFY_SOCKET=%s",
        address.sun_path);
    if (watchdog_us > 0)
        snprintf(manager->environment[1], sizeof(manager->environment[1]), "WATCHDOG_USEC=%llu",
            (unsigned long long)watchdog_us);
    if (other)
        strcpy(manager->environment[2], "WATCHDOG_PID=1");
    play->manager = manager;
    return manager;
}

static void close_stored(struct play_manager *manager, unsigned i)
{
    close(manager->store[i].fd);
    manager->store[i] = manager->store[--manager->stored_n];
}

void play_manager_go(struct play_manager *manager)
{
    if (manager->fd != -1)
        close(manager->fd);
    manager->fd = -1;
}

void play_manager_destroy(struct play_manager **manager)
{
    if (*manager == NULL)
        return;
    play_manager_go(*manager);
    while ((*manager)->stored_n > 0)
        close_stored(*manager, 0);
    if ((*manager)->barrier != -1)
        close((*manager)->barrier);
    (*manager)->play->manager = NULL;
    free(*manager);
    *manager = NULL;
}

void play_manager_fill(struct play_manager *manager)
{
    struct sockaddr_un address = address_of(manager->play);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    test_require(fd != -1);
    manager->stalls = true;
    while (
        sendto(fd, filler, strlen(filler), 0, (struct sockaddr *)&address, sizeof(address)) != -1)
        continue;
    close(fd);
}

char **play_manager_environment(struct play_manager *manager, pid_t pid)
{
    static char *variables[7];
    char *names = manager->environment[5];
    unsigned n = 0;

    if (manager->main == 0)
        manager->main = pid;
    for (unsigned i = 3; i < 6; i++)
        manager->environment[i][0] = '\0';
    if (manager->stored_n > 0) {
        snprintf(
            manager->environment[3], PLAY_MANAGER_VARIABLE, "LISTEN_FDS=%u", manager->stored_n);
        snprintf(manager->environment[4], PLAY_MANAGER_VARIABLE, "LISTEN_PID=%d", (int)pid);
        strcpy(names, "LISTEN_FDNAMES=");
        for (unsigned i = 0; i < manager->stored_n; i++) {
            strcat(names, i > 0 ? ":" : "");
            strcat(names, manager->store[i].name);
        }
    }
    for (unsigned i = 0; i < 6; i++)
        if (manager->environment[i][0] != '\0')
            variables[n++] = manager->environment[i];
    variables[n] = NULL;
    return variables;
}

/* Descriptors of the process that are in the way are moved first. */
void play_manager_pass(const struct play_manager *manager)
{
    int fds[PLAY_MANAGER_STORE];

    for (unsigned i = 0; i < manager->stored_n; i++) {
        fds[i] = fcntl(manager->store[i].fd, F_DUPFD_CLOEXEC, 3 + PLAY_MANAGER_STORE);
        test_require(fds[i] != -1);
    }
    for (unsigned i = 0; i < manager->stored_n; i++)
        test_require(dup2(fds[i], 3 + (int)i) != -1);
}

/* The value of a line of the message; "" without a line. */
static const char *value_of(const char *text, const char *key, char value[64])
{
    const char *line = strstr(text, key);
    size_t n = 0;

    if (line != NULL)
        for (line += strlen(key); line[n] != '\0' && line[n] != '\n' && n < 63; n++)
            value[n] = line[n];
    value[n] = '\0';
    return value;
}

static void store(struct play_manager *manager, const char *text, int fd)
{
    test_require(fd != -1 && manager->stored_n < PLAY_MANAGER_STORE);
    value_of(text, "FDNAME=", manager->store[manager->stored_n].name);
    manager->store[manager->stored_n++].fd = fd;
}

static void unstore(struct play_manager *manager, const char *text)
{
    char name[64];

    value_of(text, "FDNAME=", name);
    for (unsigned i = manager->stored_n; i-- > 0;)
        if (strcmp(manager->store[i].name, name) == 0)
            close_stored(manager, i);
}

static void answer_barrier(struct play_manager *manager, int fd)
{
    test_require(fd != -1);
    if (!manager->keeps_barriers) {
        close(fd);
        return;
    }
    if (manager->barrier != -1)
        close(manager->barrier);
    manager->barrier = fd;
}

static void take(struct play_manager *manager, pid_t sender, const char *text, int fd)
{
    char value[64];

    if (strcmp(text, filler) == 0)
        return;
    if (strcmp(text, "BARRIER=1") == 0) { /* of any process */
        answer_barrier(manager, fd);
        return;
    }
    if (sender != manager->main) {
        manager->ignored++;
        if (fd != -1)
            close(fd);
        return;
    }
    test_require(manager->message_n < PLAY_MANAGER_MESSAGES);
    manager->messages[manager->message_n].sender = sender;
    snprintf(manager->messages[manager->message_n].text,
        sizeof(manager->messages[manager->message_n].text), "%.*s",
        (int)sizeof(manager->messages[0].text) - 1, text);
    manager->message_n++;
    if (strncmp(text, "FDSTORE=1", 9) == 0)
        store(manager, text, fd);
    if (strncmp(text, "FDSTOREREMOVE=1", 15) == 0)
        unstore(manager, text);
    if (strncmp(text, "MAINPID=", 8) == 0)
        manager->main = atoi(value_of(text, "MAINPID=", value));
}

bool play_manager_step(struct play_manager *manager, pid_t sender)
{
    bool any = false;

    while (manager->fd != -1 && !manager->stalls) {
        union {
            char bytes[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control;
        char text[8192];
        struct iovec iov = { text, sizeof(text) - 1 };
        struct msghdr message = { .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = control.bytes,
            .msg_controllen = sizeof(control.bytes) };
        ssize_t n = recvmsg(manager->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        struct cmsghdr *header;
        int fd = -1;

        if (n == -1)
            break;
        any = true;
        text[n] = '\0';
        header = CMSG_FIRSTHDR(&message);
        if (header != NULL)
            memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        take(manager, sender, text, fd);
    }
    return any;
}

static bool is_aside(const char *text)
{
    return strcmp(text, "WATCHDOG=1") == 0 || strncmp(text, "FDSTORE", 7) == 0;
}

const char *play_manager_next(struct play_manager *manager)
{
    while (manager->taken < manager->message_n) {
        const char *text = manager->messages[manager->taken++].text;

        if (!is_aside(text))
            return text;
    }
    return "";
}

const char *play_manager_wait(struct play_manager *manager, const char *beginning)
{
    while (manager->taken < manager->message_n) {
        const char *text = manager->messages[manager->taken++].text;

        if (strncmp(text, beginning, strlen(beginning)) == 0)
            return text;
    }
    return "";
}

unsigned play_manager_count(const struct play_manager *manager, const char *beginning)
{
    unsigned n = 0;

    for (unsigned i = manager->taken; i < manager->message_n; i++)
        n += strncmp(manager->messages[i].text, beginning, strlen(beginning)) == 0;
    return n;
}
