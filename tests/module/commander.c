/* SPDX-License-Identifier: BSD-2-Clause */
/* A module whose worker gives a command on a control socket, like a worker in an attacker's hands:
 * on a client's line "HOW PATH COMMAND" the worker connects and sends the command. HOW names the
 * sending process: the worker itself ("worker"), the worker, killing itself then ("dying"), a child
 * ("child"), or a child's child with an ended parent ("orphan"). */
#include <forkbeard/forkbeard.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sends the command; the reply goes to the client. */
static void give_command(int out, const char *path, const char *command, int wait)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    char text[256] = "no connection\n";
    ssize_t n = (ssize_t)strlen(text);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
        n = snprintf(text, sizeof(text), "{\"command\":\"%s\"}\n", command);
        send(fd, text, (size_t)n, MSG_NOSIGNAL);
        if (!wait)
            return;
        n = recv(fd, text, sizeof(text), 0);
    }
    if (n > 0 && write(out, text, (size_t)n) == -1)
        return;
    close(fd);
}

/* Waits until the parent, which exits at once, has ended and the process has a new parent. */
static void become_orphan(void)
{
    pid_t parent = getpid();

    if (fork() != 0)
        _exit(0);
    while (getppid() == parent)
        usleep(1000);
}

static void run_child(int out, const char *how, const char *path, const char *command)
{
    if (strcmp(how, "orphan") == 0)
        become_orphan();
    give_command(out, path, command, 1);
    _exit(0);
}

/* Gives the command; returns the bytes of the reply, 0 where there is none. */
static size_t take_line(const char *line, char *reply, size_t size)
{
    char how[16], path[108], command[16];
    pid_t child = -1;
    int ends[2];
    ssize_t n;

    if (sscanf(line, "%15s %107s %15s", how, path, command) != 3 || pipe(ends) == -1)
        return 0;
    if (strcmp(how, "worker") == 0)
        give_command(ends[1], path, command, 1);
    else if (strcmp(how, "dying") == 0) {
        give_command(ends[1], path, command, 0);
        raise(SIGKILL);
    } else if ((child = fork()) == 0) {
        run_child(ends[1], how, path, command);
    }
    close(ends[1]);
    n = read(ends[0], reply, size); /* an orphan's too: the orphan holds the opposite end */
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return n > 0 ? (size_t)n : 0;
}

static size_t commander_data(fb_conn *conn, void *state, fb_bytes in)
{
    char line[160] = "", reply[256];
    size_t n;

    (void)state;
    if (in.n == 0 || in.n >= sizeof(line) || in.p[in.n - 1] != '\n')
        return 0;
    memcpy(line, in.p, in.n);
    n = take_line(line, reply, sizeof(reply));
    if (n > 0)
        fb_write(conn, reply, n);
    fb_close(conn);
    return in.n;
}

static const fb_directive directives[] = {
    { .name = "commander", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .data = commander_data,
};

FB_PROTOCOL(commander) = {
    FB_PROTOCOL_HEADER,
    .name = "commander",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};
