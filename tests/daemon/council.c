/* SPDX-License-Identifier: BSD-2-Clause */
/* Speaks the lines of tests/module/council.c. Unasked reports of a worker, on members that came or
 * went, are skipped in waits for something else. */
#include "daemon/council.h"

#include "daemon/client.h"
#include "daemon/proc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char *council_read_after(int fd, const char *beginning)
{
    const char *line;

    do
        line = client_read_line(fd);
    while (strncmp(line, beginning, strlen(beginning)) != 0);
    return line + strlen(beginning);
}

void council_say(const struct member *member, const char *format, ...)
{
    char line[1000];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    client_send(member->fd, line);
}

void council_open_port(struct daemon *daemon, struct member *member, unsigned port)
{
    unsigned long connection;
    const char *answer;

    member->fd = client_open(daemon->ports[port]);
    council_say(member, "id\n");
    answer = council_read_after(member->fd, "id ");
    ck_assert_int_eq(
        sscanf(answer, "%" SCNx64 " %u %u", &member->id, &member->number, &member->count), 3);
    ck_assert_uint_ne(member->id, 0);
    connection = proc_connection(member->fd);
    member->pid = proc_holder(daemon->pid, connection);
    if (member->pid == 0) /* the new process of an upgrade serves the member */
        member->pid = proc_holder(daemon_pid(daemon), connection);
    ck_assert_int_ne(member->pid, 0);
}

unsigned council_known_by(const struct member *member)
{
    council_say(member, "who\n");
    return (unsigned)strtoul(council_read_after(member->fd, "who "), NULL, 10);
}

void council_open_members(struct daemon *daemon, struct member *members, unsigned n, unsigned there)
{
    for (int64_t until = deadline_ms(); there < n;) {
        unsigned i = 0;

        council_open_port(daemon, &members[there], 0);
        while (i < there && members[i].id != members[there].id)
            i++;
        if (i < there)
            close(members[there].fd);
        else
            there++;
        ck_assert_int_lt(now_ms(), until);
    }
    for (unsigned i = 0; i < n; i++)
        WAIT_FOR(council_known_by(&members[i]) == n - 1);
}

void council_close(struct member *member)
{
    if (member->fd != -1)
        close(member->fd);
    member->fd = -1;
}

void council_expect_got(const struct member *to, const char *text, uint64_t from)
{
    char line[200];

    snprintf(line, sizeof(line), "%s from %" PRIx64, text, from);
    ck_assert_str_eq(council_read_after(to->fd, "got "), line);
}

static bool has_counted(const struct member *member, unsigned n)
{
    char line[64];

    snprintf(line, sizeof(line), "%u 0", n);
    council_say(member, "count\n");
    return strcmp(council_read_after(member->fd, "count "), line) == 0;
}

void council_expect_count(const struct member *member, unsigned n)
{
    WAIT_FOR(has_counted(member, n));
}

static bool knows(const struct member *member, uint64_t id)
{
    char *ids;

    council_say(member, "who\n");
    strtoul(council_read_after(member->fd, "who "), &ids, 10);
    while (*ids != '\0')
        if (strtoull(ids, &ids, 16) == id)
            return true;
    return false;
}

void council_expect_gone(const struct member *member, uint64_t id)
{
    WAIT_FOR(!knows(member, id));
}
