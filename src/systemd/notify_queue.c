/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the messages, sends from the first on until the manager's socket is full, and looks for
 * the confirmation. The messages for an unreachable manager are dropped, with a line. The sending
 * socket has no name: the manager knows the sender by the credentials that the kernel adds. */
#include "systemd/notify_queue.h"

#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BARRIER "BARRIER=1"
#define NAME_LINE "\nFDNAME="
#define FIRST_PAUSE_MS 1
#define LONGEST_PAUSE_MS 500
#define SLOW_MS 1000 /* until a stalled manager is logged */

struct notify_message {
    TAILQ_ENTRY(notify_message) link;
    RB_ENTRY(notify_message) node;
    const char *name; /* name of the descriptors, in the text, or NULL */
    uint64_t number;  /* serial number, for the order in the tree */
    enum notify_kind kind;
    int fd; /* our own, or -1 */
    size_t length;
    char text[];
};

static int compare_message_names(const struct notify_message *a, const struct notify_message *b)
{
    int result = strcmp(a->name, b->name);

    return result != 0 ? result : (a->number > b->number) - (a->number < b->number);
}

RB_GENERATE_INTERNAL(
    notify_names, notify_message, node, compare_message_names, static __attribute__((unused)))

static bool must_arrive(enum notify_kind kind)
{
    return kind >= NOTIFY_MAIN_PID;
}

static void drop_message(struct notify_queue *queue, struct notify_message *message)
{
    TAILQ_REMOVE(&queue->messages, message, link);
    if (message->name != NULL)
        RB_REMOVE(notify_names, &queue->names, message);
    if (message->fd != -1)
        close(message->fd);
    else
        queue->plain_n--;
    free(message);
}

static void drop_all(struct notify_queue *queue)
{
    while (!TAILQ_EMPTY(&queue->messages))
        drop_message(queue, TAILQ_FIRST(&queue->messages));
}

static void close_barrier(struct notify_queue *queue)
{
    descriptor_close(queue->barrier);
    queue->barrier = -1;
}

static uint64_t notify_queue_now(const struct notify_queue *queue)
{
    return queue->timers != NULL ? queue->timers->clock->mono_ms : 0;
}

static void note_unreachable(struct notify_queue *queue, struct log *log)
{
    if (!queue->failing)
        log_write(log, LEVEL_ERROR, errno,
            "the service manager (NOTIFY_SOCKET=%s) cannot be reached", queue->name);
    queue->failing = true;
    queue->unconfirmed = false;
    queue->waiting_ms = 0;
    close_barrier(queue);
    drop_all(queue);
}

static void note_waiting(struct notify_queue *queue, struct log *log)
{
    queue->failing = false;
    if (queue->waiting_ms == 0)
        queue->waiting_ms = notify_queue_now(queue);
    if (queue->slow || notify_queue_now(queue) - queue->waiting_ms < SLOW_MS)
        return;
    queue->slow = true;
    log_write(log, LEVEL_WARN, 0,
        "the service manager (NOTIFY_SOCKET=%s) does not read: messages wait for it", queue->name);
}

static void note_sent(struct notify_queue *queue, struct log *log)
{
    if (queue->slow)
        log_write(log, LEVEL_NOTICE, 0, "the service manager (NOTIFY_SOCKET=%s) reads again",
            queue->name);
    queue->slow = false;
    queue->failing = false;
    queue->waiting_ms = 0;
    queue->pause_ms = FIRST_PAUSE_MS;
}

/* Returns the reason of a refusal, or NULL. */
static const char *set_manager_address(struct notify_queue *queue, const char *text)
{
    size_t n = strlen(text);

    if (*text != '/' && *text != '@')
        return "neither an absolute path nor an abstract name";
    if (n < 2)
        return "no name";
    /* a path ends with a NUL, an abstract name begins with a NUL */
    if (n + (*text == '/') > sizeof(queue->address.sun_path))
        return "too long";
    queue->address.sun_family = AF_UNIX;
    memcpy(queue->address.sun_path, text, n);
    if (*text == '@')
        queue->address.sun_path[0] = '\0';
    queue->length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (size_t)(*text == '/'));
    return NULL;
}

/* Sends a datagram, perhaps with a descriptor; -1 with errno. */
static int send_to_manager(struct notify_queue *queue, const char *text, size_t length, int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { .space = "" };
    struct iovec piece = { (char *)text, length };
    struct msghdr message = { .msg_name = &queue->address,
        .msg_namelen = queue->length,
        .msg_iov = &piece,
        .msg_iovlen = 1 };
    ssize_t n;

    assert(queue->length > 0);
    if (queue->fd == -1)
        queue->fd = descriptor_socket(AF_UNIX, SOCK_DGRAM, O_NONBLOCK);
    if (queue->fd == -1)
        return -1;
    if (fd != -1) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control.space);
        control.header = (struct cmsghdr) {
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
        };
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    do
        n = sendmsg(queue->fd, &message, MSG_NOSIGNAL);
    while (n == -1 && errno == EINTR);
    return n != -1 ? 0 : -1;
}

/* Sends a message: 1; 0: not now; -1 with errno: the message can never be sent. */
static int send_message(
    struct notify_queue *queue, struct log *log, const char *text, size_t length, int fd)
{
    if (send_to_manager(queue, text, length, fd) == 0) {
        note_sent(queue, log);
        return 1;
    }
    switch (errno) {
    case EBADF:
    case EMSGSIZE:
        return -1;
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS: /* too many descriptors in flight */
        note_waiting(queue, log);
        return 0;
    default:
        note_unreachable(queue, log);
        return 0;
    }
}

/* Sends until the socket is full. */
static void send_messages(struct notify_queue *queue, struct log *log)
{
    struct notify_message *message;
    int sent;

    while ((message = TAILQ_FIRST(&queue->messages)) != NULL) {
        sent = send_message(queue, log, message->text, message->length, message->fd);
        if (sent == 0)
            return;
        if (sent == -1) {
            log_write(log, LEVEL_ALERT, errno, "a message to the service manager was dropped");
        } else if (must_arrive(message->kind)) {
            queue->unconfirmed = true;
            queue->unanswered = false;
        }
        drop_message(queue, message);
    }
}

/* Sends the end of a pipe; the manager closes it after reading all messages before. */
static void send_barrier(struct notify_queue *queue, struct log *log)
{
    int ends[2];

    if (descriptor_pipe(ends, O_NONBLOCK) == -1)
        return;
    if (send_message(queue, log, BARRIER, strlen(BARRIER), ends[1]) == 1) {
        queue->barrier = ends[0];
        queue->barrier_ms = notify_queue_now(queue);
        queue->unconfirmed = false;
    } else {
        close(ends[0]);
    }
    close(ends[1]);
}

/* Looks for the manager's closing of the barrier, or its deadline. */
static void check_barrier(struct notify_queue *queue)
{
    struct pollfd state = { .fd = queue->barrier };

    if (queue->barrier == -1)
        return;
    if (poll(&state, 1, 0) == 1 && (state.revents & POLLHUP) != 0) {
        queue->unanswered = false;
        close_barrier(queue);
    } else if (notify_queue_now(queue) - queue->barrier_ms >= NOTIFY_QUEUE_DEADLINE_MS) {
        queue->unanswered = true;
        queue->unconfirmed = true;
        close_barrier(queue);
    }
}

/* Sets the timer while messages or a confirmation are outstanding. */
static void arm(struct notify_queue *queue)
{
    if (queue->timers == NULL)
        return;
    if (TAILQ_EMPTY(&queue->messages) && queue->barrier == -1 &&
        (!queue->unconfirmed || queue->unanswered)) {
        timers_disarm(queue->timers, &queue->again);
        queue->pause_ms = FIRST_PAUSE_MS;
        return;
    }
    if (!timer_is_set(&queue->again) ||
        queue->again.deadline > notify_queue_now(queue) + queue->pause_ms)
        timers_arm(queue->timers, &queue->again, queue->pause_ms);
}

static void advance(struct notify_queue *queue, struct log *log, bool again)
{
    send_messages(queue, log);
    check_barrier(queue);
    if (TAILQ_EMPTY(&queue->messages) && queue->barrier == -1 && queue->unconfirmed &&
        (again || !queue->unanswered))
        send_barrier(queue, log);
    arm(queue);
}

void notify_queue_advance(struct notify_queue *queue, struct log *log)
{
    if (queue->name != NULL)
        advance(queue, log, true);
}

static void again_expired(struct loop *loop, struct timer *timer)
{
    struct notify_queue *queue = container_of(timer, struct notify_queue, again);

    (void)loop;
    queue->pause_ms *= 2;
    if (queue->pause_ms > LONGEST_PAUSE_MS)
        queue->pause_ms = LONGEST_PAUSE_MS;
    advance(queue, queue->log, false);
}

/* Returns the descriptors' name in a message, or NULL. */
static const char *name_in(enum notify_kind kind, const char *text)
{
    const char *line = kind >= NOTIFY_STORE ? strstr(text, NAME_LINE) : NULL;

    return line != NULL ? line + strlen(NAME_LINE) : NULL;
}

/* Drops all messages about the name of a removal. */
static void drop_name(struct notify_queue *queue, const char *name)
{
    struct notify_message first = { .name = name }, *message;

    while ((message = RB_NFIND(notify_names, &queue->names, &first)) != NULL &&
           strcmp(message->name, name) == 0)
        drop_message(queue, message);
}

/* Drops a queued reload that has begun and ended, in favour of the next. */
static void drop_reload(struct notify_queue *queue)
{
    struct notify_message *message, *next;
    bool begun = false;

    TAILQ_FOREACH_SAFE (message, &queue->messages, link, next) {
        begun = begun || message->kind == NOTIFY_RELOADING;
        if (begun && (message->kind == NOTIFY_RELOADING || message->kind == NOTIFY_READY))
            drop_message(queue, message);
    }
}

/* Drops queued messages made obsolete by a new message. */
static void drop_outdated(struct notify_queue *queue, enum notify_kind kind, const char *text)
{
    const char *name = name_in(kind, text);

    if (kind == NOTIFY_RELOADING)
        drop_reload(queue);
    else if (kind == NOTIFY_MAIN_PID)
        notify_queue_cancel(queue, kind);
    else if (kind == NOTIFY_UNSTORE && name != NULL)
        drop_name(queue, name);
}

static struct notify_message *find_last(const struct notify_queue *queue, enum notify_kind kind)
{
    struct notify_message *message;

    TAILQ_FOREACH_REVERSE(message, &queue->messages, notify_messages, link)
    if (message->kind == kind || (kind <= NOTIFY_STOPPING && message->kind <= NOTIFY_STOPPING))
        break;
    return message != NULL && message->kind == kind ? message : NULL;
}

/* Whether the descriptor leaves an eighth of the limit free for the serving daemon. */
static bool leaves_room(int fd)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == -1 ||
           (rlim_t)fd < limit.rlim_cur - limit.rlim_cur / 8;
}

/* Makes a message with a copy of the descriptor; NULL with errno. */
static struct notify_message *create_message(enum notify_kind kind, const char *text, int fd)
{
    size_t length = strlen(text);
    struct notify_message *message = malloc(sizeof(*message) + length + 1);

    if (message == NULL)
        return NULL;
    message->kind = kind;
    message->length = length;
    memcpy(message->text, text, length + 1);
    message->name = name_in(kind, message->text);
    message->fd = fd != -1 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd == -1 || message->fd != -1)
        return message;
    free(message);
    return NULL;
}

/* Appends the message; a status replaces the queued status. */
static int queue_message(
    struct notify_queue *queue, struct log *log, enum notify_kind kind, const char *text, int fd)
{
    struct notify_message *message = NULL, *same = find_last(queue, kind);

    if (same != NULL && (kind <= NOTIFY_STOPPING || kind == NOTIFY_ALIVE))
        return 0; /* queued already */
    errno = ENOBUFS;
    if (fd != -1 || kind == NOTIFY_MAIN_PID || queue->plain_n < NOTIFY_QUEUE_MAX)
        message = create_message(kind, text, fd);
    if (message != NULL && fd != -1 && !TAILQ_EMPTY(&queue->messages) &&
        !leaves_room(message->fd)) {
        close(message->fd);
        free(message);
        message = NULL;
        errno = EMFILE;
    }
    if (message == NULL) {
        log_write(log, LEVEL_ALERT, errno, "a message to the service manager was dropped");
        return -1;
    }
    queue->plain_n += fd == -1;
    message->number = ++queue->number;
    if (message->name != NULL)
        RB_INSERT(notify_names, &queue->names, message);
    if (kind == NOTIFY_STATUS && same != NULL) {
        TAILQ_INSERT_BEFORE(same, message, link);
        drop_message(queue, same);
    } else {
        TAILQ_INSERT_TAIL(&queue->messages, message, link);
    }
    return 0;
}

int notify_queue_push(
    struct notify_queue *queue, struct log *log, enum notify_kind kind, const char *text, int fd)
{
    bool waits;

    assert(log != NULL && (fd == -1) == (kind != NOTIFY_STORE));
    if (queue->name == NULL)
        return -1;
    drop_outdated(queue, kind, text);
    waits = !TAILQ_EMPTY(&queue->messages);
    if (queue_message(queue, log, kind, text, fd) == -1)
        return -1;
    if (!waits || queue->timers == NULL)
        send_messages(queue, log);
    arm(queue);
    return queue->failing ? -1 : 0;
}

void notify_queue_cancel(struct notify_queue *queue, enum notify_kind kind)
{
    struct notify_message *message, *next;

    TAILQ_FOREACH_SAFE (message, &queue->messages, link, next)
        if (message->kind == kind)
            drop_message(queue, message);
}

bool notify_queue_is_waiting(const struct notify_queue *queue)
{
    return !TAILQ_EMPTY(&queue->messages);
}

bool notify_queue_is_confirmed(const struct notify_queue *queue)
{
    const struct notify_message *message;

    TAILQ_FOREACH (message, &queue->messages, link)
        if (must_arrive(message->kind))
            return false;
    return !queue->unconfirmed && queue->barrier == -1;
}

void notify_queue_init(struct notify_queue *queue, const char *name, struct log *log)
{
    const char *wrong;

    *queue = (struct notify_queue) {
        .fd = -1, .barrier = -1, .pause_ms = FIRST_PAUSE_MS, .again = { .expired = again_expired }
    };
    TAILQ_INIT(&queue->messages);
    RB_INIT(&queue->names);
    if (name == NULL)
        return;
    wrong = set_manager_address(queue, name);
    if (wrong != NULL)
        log_write(log, LEVEL_ERROR, 0,
            "NOTIFY_SOCKET=\"%s\" cannot be used (%s): the service manager is told nothing", name,
            wrong);
    else
        queue->name = strdup(name);
}

void notify_queue_attend(struct notify_queue *queue, struct timers *timers, struct log *log)
{
    assert((timers == NULL) == (log == NULL));
    if (queue->timers != NULL)
        timers_disarm(queue->timers, &queue->again);
    if (timers == NULL) /* times of the clock that ends */
        queue->barrier_ms = queue->waiting_ms = 0;
    queue->timers = timers;
    queue->log = log;
    if (queue->name != NULL)
        arm(queue);
}

void notify_queue_done(struct notify_queue *queue)
{
    notify_queue_attend(queue, NULL, NULL);
    drop_all(queue);
    close_barrier(queue);
    descriptor_close(queue->fd);
    queue->fd = -1;
    free(queue->name);
    queue->name = NULL;
    queue->unconfirmed = false;
}
