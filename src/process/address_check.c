/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares listeners and the control socket with what is in use. A warning is left out where this
 * user cannot know whose the socket is and it may well be ours: the running daemon's, or stored by
 * the service manager. The holders of sockets are found by the inode, as far as the system shows
 * them to this user: root sees all processes, others their own. */
#include "process/address_check.h"

#include "base/number.h"
#include "conf/report.h"
#include "net/in_use.h"
#include "os/proc.h"
#include "process/pidfile.h"
#include "process/process_ops.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define FIRST_ROOM 64u

struct socket_held {
    unsigned long inode;
    pid_t pid;
};

/* A list of sockets that processes hold; zeroed it is empty. */
struct socket_holders {
    struct socket_held *sockets;
    size_t n, room;
    bool sorted;
};

/* The process whose sockets are added. */
struct addition {
    struct socket_holders *holders;
    pid_t pid;
};

static int add_socket(void *arg, unsigned long inode)
{
    const struct addition *addition = arg;
    struct socket_holders *holders = addition->holders;

    assert(holders->n <= holders->room);
    if (holders->n == holders->room) {
        size_t room = holders->room > 0 ? 2 * holders->room : FIRST_ROOM;
        struct socket_held *larger = realloc(holders->sockets, room * sizeof(*larger));

        if (larger == NULL)
            return -1;
        holders->sockets = larger;
        holders->room = room;
    }
    holders->sockets[holders->n++] = (struct socket_held) { inode, addition->pid };
    holders->sorted = false;
    return 0;
}

/* Adds all sockets of the process; -1 where this user may not know them, or without memory. */
static int socket_holders_add(struct socket_holders *holders, pid_t pid)
{
    struct addition addition = { holders, pid };

    return os_proc_visit_sockets(pid, add_socket, &addition);
}

static void add_process(void *arg, pid_t pid)
{
    socket_holders_add(arg, pid);
}

/* Adds the sockets of all processes that this user sees. */
static void socket_holders_add_all(struct socket_holders *holders)
{
    os_proc_visit(add_process, holders);
}

static int compare_sockets(const void *a, const void *b)
{
    const struct socket_held *one = a, *other = b;

    if (one->inode != other->inode)
        return one->inode < other->inode ? -1 : 1;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

/* Returns the first process of the list that has the socket; 0: none has. */
static pid_t socket_holders_find(struct socket_holders *holders, unsigned long inode)
{
    size_t low = 0, high = holders->n;

    if (!holders->sorted && holders->n > 0)
        qsort(holders->sockets, holders->n, sizeof(holders->sockets[0]), compare_sockets);
    holders->sorted = true;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (holders->sockets[middle].inode < inode)
            low = middle + 1;
        else
            high = middle;
    }
    return low < holders->n && holders->sockets[low].inode == inode ? holders->sockets[low].pid : 0;
}

static void socket_holders_done(struct socket_holders *holders)
{
    free(holders->sockets);
    *holders = (struct socket_holders) { .sockets = NULL };
}

/* The master process that runs with our pid file, and in an upgrade the old one. */
enum { MASTER, OLD_MASTER, MASTERS };

/* Sockets of the masters, and of all processes, read when they are first asked for. */
struct held {
    struct socket_holders masters, all;
    bool masters_read, all_read;
    bool unknown; /* a master's are not to be known */
};

struct checking {
    struct conf_report report;
    struct in_use in_use;
    pid_t masters[MASTERS]; /* 0: none */
    struct held held;
    bool by_manager; /* the service manager has started this process */
};

/* Reads the number in a pid file; 0: there is none. */
static pid_t read_pid(const char *path, const char *suffix)
{
    char name[PATH_MAX], text[32] = "";
    int64_t pid = 0;
    FILE *file;

    if (snprintf(name, sizeof(name), "%s%s", path, suffix) >= (int)sizeof(name) ||
        (file = fopen(name, "re")) == NULL)
        return 0;
    if (fgets(text, sizeof(text), file) != NULL)
        text[strcspn(text, "\n")] = '\0';
    fclose(file);
    return number_parse(text, 1, INT_MAX, &pid) == NUMBER_OK ? (pid_t)pid : 0;
}

/* Whether systemd has started this process, which then cannot see whose sockets there are. */
static bool is_started_by_manager(void)
{
    const char *value = getenv("SYSTEMD_EXEC_PID");
    int64_t pid;

    return value != NULL && number_parse(value, 1, INT_MAX, &pid) == NUMBER_OK &&
           pid == process_ops->self();
}

/* Whether a daemon with our pid file has the socket, or may have it. */
static bool is_ours(struct checking *checking, unsigned long inode)
{
    struct held *held = &checking->held;

    for (int i = 0; i < MASTERS && !held->masters_read; i++)
        if (checking->masters[i] != 0 &&
            socket_holders_add(&held->masters, checking->masters[i]) == -1)
            held->unknown = true;
    held->masters_read = true;
    return held->unknown || socket_holders_find(&held->masters, inode) != 0;
}

/* Finds the process that has the socket, as far as this user may know; 0: none. */
static pid_t find_holder(struct checking *checking, unsigned long inode)
{
    struct held *held = &checking->held;

    if (!held->all_read)
        socket_holders_add_all(&held->all);
    held->all_read = true;
    return socket_holders_find(&held->all, inode);
}

/* Whether a socket that no process seems to have may be one that the service manager stores for us,
 * or will pass. */
static bool may_be_passed(const struct checking *checking, const struct in_use_socket *held)
{
    if (checking->by_manager)
        return true;
    return geteuid() != 0 && (held->uid == geteuid() || held->uid == (uid_t)-1);
}

/* Warns that `what` would fail because of a socket, unless that is ours. Returns whether it has. */
static bool warn_of(struct checking *checking, const struct listener *listener,
    const struct in_use_socket *held, bool sure, const char *what)
{
    const struct address *wanted = &listener->address;
    bool has_zone = wanted->any.sa_family == AF_INET6 && wanted->in6.sin6_scope_id != 0;
    const char *unless = sure       ? ""
                         : has_zone ? ", unless that is at another network interface"
                                    : ", unless that has IPV6_V6ONLY";
    char text[ADDRESS_TEXT], name[32], who[64] = "a process that this user cannot see";
    pid_t holder;

    if (is_ours(checking, held->inode))
        return false;
    if ((holder = find_holder(checking, held->inode)) != 0) {
        os_proc_name(holder, name);
        snprintf(who, sizeof(who), "process %d (%s)", (int)holder, name);
        if (holder == 1 || strcmp(name, "systemd") == 0)
            unless = ", unless it passes the socket";
    } else if (may_be_passed(checking, held)) {
        return false;
    }
    report_warn(&checking->report, listener->word, "%s: %s is in use by %s%s", what,
        address_format(&held->address, true, text), who, unless);
    return true;
}

static bool is_socket(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Warns of the first socket that is in the way: others are mostly of the same process. */
static void check_address(
    struct checking *checking, const struct listener *listener, const char *what)
{
    const struct in_use_socket *held = NULL;
    bool sure;

    do
        held = in_use_find(&checking->in_use, held, listener, &sure);
    while (held != NULL && !warn_of(checking, listener, held, sure, what));
}

static void check_listener(struct checking *checking, const struct listener *listener)
{
    char what[ADDRESS_TEXT + 32];

    if (listener->address.any.sa_family == AF_UNIX && !is_socket(listener->address.un.sun_path))
        return; /* the path is free, even where a socket listens that was made there */
    snprintf(what, sizeof(what), "bind() to %s would fail", listener->text);
    check_address(checking, listener, what);
}

/* The kernel knows a control socket by the name under which it was made (control/socket.c). */
static void check_control(struct checking *checking, const char *path)
{
    static const char *const suffixes[] = { ".new", "" };
    struct listener listener = { .address.length = sizeof(struct sockaddr_un) };
    struct sockaddr_un *address = &listener.address.un;

    if (path == NULL || !is_socket(path))
        return;
    address->sun_family = AF_UNIX;
    for (size_t i = 0; i < countof(suffixes); i++) {
        snprintf(address->sun_path, sizeof(address->sun_path), "%s%s", path, suffixes[i]);
        check_address(checking, &listener, "the control socket could not be made");
    }
}

void address_check(const struct cycle *cycle, struct log *log, int excerpts)
{
    struct checking checking = {
        .masters[MASTER] = read_pid(cycle->core.pid, ""),
        .masters[OLD_MASTER] = read_pid(cycle->core.pid, PIDFILE_OLD_SUFFIX),
        .by_manager = is_started_by_manager(),
    };
    const struct listener *listener;

    if (in_use_read(&checking.in_use, "") == -1)
        return;
    report_init(&checking.report, cycle->arena);
    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        check_listener(&checking, listener);
    if (cycle->core.master_process)
        check_control(&checking, cycle->core.control);
    report_show(&checking.report, log, excerpts);
    in_use_done(&checking.in_use);
    socket_holders_done(&checking.held.masters);
    socket_holders_done(&checking.held.all);
}
