/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads /proc: children, descriptors, connections and their holders. Fails no test: ended processes
 * are simply not there. */
#include "daemon/proc.h"

#include "daemon/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX 64
#define INODES_MAX 1024

int proc_wait(pid_t pid)
{
    int status;
    pid_t ended = 0;

    ck_assert_int_gt(pid, 0);
    WAIT_FOR((ended = waitpid(pid, &status, WNOHANG)) != 0);
    ck_assert_int_eq(ended, pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void proc_check_childless(void)
{
    pid_t pid = waitpid(-1, NULL, WNOHANG);

    ck_assert_msg(pid <= 0, "process %d has lost its parent, which should have waited", (int)pid);
    ck_assert_msg(pid == -1 && errno == ECHILD, "a process is left and runs");
}

void proc_reap_orphans(void)
{
    pid_t pid;

    WAIT_FOR((pid = waitpid(-1, NULL, WNOHANG)) == -1);
}

/* The state and the parent; false after the end. */
static bool read_stat(pid_t pid, char *state, int *parent)
{
    const char *text = proc_text(pid, "stat"), *name_end = strrchr(text, ')');

    return name_end != NULL && sscanf(name_end, ") %c %d", state, parent) == 2;
}

char proc_state(pid_t pid)
{
    char state;
    int parent;

    return read_stat(pid, &state, &parent) ? state : 0;
}

pid_t proc_parent(pid_t pid)
{
    char state;
    int parent;

    return read_stat(pid, &state, &parent) ? parent : 0;
}

/* Leaves the rest of /proc alone: tests ask every two milliseconds. */
unsigned proc_children(pid_t parent, pid_t *list, unsigned max)
{
    char name[64], pids[1024], *word, *rest = pids;
    unsigned n = 0;

    snprintf(name, sizeof(name), "task/%d/children", (int)parent);
    snprintf(pids, sizeof(pids), "%s", proc_text(parent, name));
    while ((word = strsep(&rest, " ")) != NULL && n < max) {
        pid_t pid = (pid_t)strtol(word, NULL, 10);
        char state;
        int its_parent;

        if (pid > 0 && read_stat(pid, &state, &its_parent) && its_parent == parent && state != 'Z')
            list[n++] = pid;
    }
    return n;
}

unsigned proc_child_n(pid_t parent)
{
    pid_t list[CHILDREN_MAX];

    return proc_children(parent, list, CHILDREN_MAX);
}

bool proc_has(const pid_t *list, unsigned n, pid_t pid)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i] == pid)
            return true;
    return false;
}

const char *proc_text(pid_t pid, const char *name)
{
    static char text[8192];
    char path[320];
    int fd;
    ssize_t n = -1;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd != -1) {
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    for (ssize_t i = 0; i < n; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    return text;
}

unsigned proc_titled(pid_t parent, const char *title, pid_t *list, unsigned max)
{
    unsigned n = proc_children(parent, list, max), found = 0;

    for (unsigned i = 0; i < n; i++)
        if (strstr(proc_text(list[i], "cmdline"), title) != NULL)
            list[found++] = list[i];
    return found;
}

const char *proc_link(pid_t pid, const char *name)
{
    static char target[4096];
    char path[320];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    n = readlink(path, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = '\0';
    return target;
}

/* The sockets of a process; counts all descriptors. */
static unsigned list_descriptors(pid_t pid, unsigned long inodes[INODES_MAX], unsigned *inode_n)
{
    char path[320];
    DIR *dir;
    struct dirent *entry;
    unsigned n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    *inode_n = 0;
    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL) {
        char name[300];

        if (entry->d_name[0] == '.')
            continue;
        n++;
        snprintf(name, sizeof(name), "fd/%s", entry->d_name);
        if (*inode_n < INODES_MAX &&
            sscanf(proc_link(pid, name), "socket:[%lu]", &inodes[*inode_n]) == 1)
            ++*inode_n;
    }
    closedir(dir);
    return n;
}

unsigned proc_descriptors(pid_t pid)
{
    unsigned long inodes[INODES_MAX];
    unsigned inode_n;

    return list_descriptors(pid, inodes, &inode_n);
}

struct request {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
};

/* Reads a piece of the kernel's answer; false when it was the last. */
static bool read_answer(
    int fd, void (*each)(void *arg, const struct inet_diag_msg *connection), void *arg)
{
    alignas(struct nlmsghdr) char piece[32768];
    ssize_t n = recv(fd, piece, sizeof(piece), 0);
    unsigned left = (unsigned)n;

    ck_assert_int_gt(n, 0);
    for (struct nlmsghdr *h = (void *)piece; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
        const struct inet_diag_msg *m = NLMSG_DATA(h);

        if (h->nlmsg_type == NLMSG_DONE)
            return false;
        ck_assert_int_ne(h->nlmsg_type, NLMSG_ERROR);
        if (m->idiag_inode != 0)
            each(arg, m);
    }
    return true;
}

/* Calls `each` for the server's ends of the connections to its port. The kernel is asked directly,
 * because /proc/net/tcp grows slow by abandoned sockets. */
static void list_connections(
    in_port_t server, void (*each)(void *arg, const struct inet_diag_msg *connection), void *arg)
{
    struct request request = {
        .header = { sizeof(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 },
        .body = {
            .sdiag_family = AF_INET,
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_states = 1 << TCP_ESTABLISHED | 1 << TCP_CLOSE_WAIT,
            .id.idiag_sport = htons(server),
        },
    };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(send(fd, &request, sizeof(request), 0), sizeof(request));
    while (read_answer(fd, each, arg))
        ;
    close(fd);
}

struct holder {
    unsigned long inodes[INODES_MAX];
    unsigned inode_n;
    struct proc_ports *ports;
};

static void add_client(void *arg, const struct inet_diag_msg *connection)
{
    in_port_t client = ntohs(connection->id.idiag_dport);
    struct holder *holder = arg;

    for (unsigned i = 0; i < holder->inode_n; i++)
        if (holder->inodes[i] == connection->idiag_inode)
            holder->ports->bits[client / 8] |= (uint8_t)(1 << client % 8);
}

void proc_add_clients(pid_t pid, in_port_t server, struct proc_ports *ports)
{
    struct holder holder = { .ports = ports };

    list_descriptors(pid, holder.inodes, &holder.inode_n);
    list_connections(server, add_client, &holder);
}

static in_port_t port_at(int (*name)(int, struct sockaddr *, socklen_t *), int fd)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);

    ck_assert_int_eq(name(fd, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin_port);
}

struct wanted {
    in_port_t client;
    unsigned long inode;
    uint32_t unread; /* bytes */
};

static void take_wanted(void *arg, const struct inet_diag_msg *connection)
{
    struct wanted *wanted = arg;

    if (ntohs(connection->id.idiag_dport) != wanted->client)
        return;
    wanted->inode = connection->idiag_inode;
    wanted->unread = connection->idiag_rqueue;
}

static bool find_connection(in_port_t server, struct wanted *wanted)
{
    list_connections(server, take_wanted, wanted);
    return wanted->inode != 0;
}

unsigned long proc_connection(int client)
{
    struct wanted wanted = { .client = port_at(getsockname, client) };

    WAIT_FOR(find_connection(port_at(getpeername, client), &wanted));
    return wanted.inode;
}

bool proc_has_received(int client)
{
    struct wanted wanted = { .client = port_at(getsockname, client) };

    return find_connection(port_at(getpeername, client), &wanted) && wanted.unread == 0;
}

pid_t proc_holder(pid_t parent, unsigned long connection)
{
    pid_t list[CHILDREN_MAX];
    unsigned long inodes[INODES_MAX];
    unsigned n = proc_children(parent, list, CHILDREN_MAX), inode_n;

    for (unsigned i = 0; i < n; i++) {
        list_descriptors(list[i], inodes, &inode_n);
        for (unsigned j = 0; j < inode_n; j++)
            if (inodes[j] == connection)
                return list[i];
    }
    return 0;
}

pid_t proc_server_of(pid_t parent, int client)
{
    pid_t pid = proc_holder(parent, proc_connection(client));

    ck_assert_int_ne(pid, 0);
    return pid;
}

void proc_freeze(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    WAIT_FOR(proc_state(pid) == 'T');
}
