/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and receives the messages of the link. A message longer than MESSAGE_MAX, sent by no
 * version, is dropped. */
#include "upgrade/link.h"

#include "channel/fd_passing.h"
#include "os/descriptor.h"
#include "process/process_ops.h"
#include "upgrade/upgrade.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_MAX (4 << 20) /* bytes */
#define REPORT_S 5            /* time limit for an old process without reads */

/* The longest line, of the sockets of all listeners, has to fit at once, also while the old process
 * does not read; the kernel gives as much as it may. */
void upgrade_link_init(struct upgrade_link *link, int fd)
{
    if (fd != -1)
        fd_widen(fd, MESSAGE_MAX);
    *link = (struct upgrade_link) { .fd = fd, .passed = -1 };
}

void upgrade_link_check(const struct upgrade_link *link)
{
    assert(link->in_n <= link->in_size);
    assert(link->line_n <= link->in_n);
    assert((link->in == NULL) == (link->in_size == 0));
}

void upgrade_link_close(struct upgrade_link *link)
{
    upgrade_link_check(link);
    if (link->fd != -1) {
        process_ops->wakeup_remove(link->fd);
        descriptor_close(link->fd);
    }
    descriptor_close(link->passed);
    free(link->in);
    upgrade_link_init(link, -1);
}

/* Sending */

void upgrade_link_begin(struct json *json)
{
    json_begin(json);
    json_object(json, NULL);
}

int upgrade_link_send(struct upgrade_link *link, struct json *json, int fd)
{
    ssize_t sent = -1;
    size_t n;
    char *line;

    assert(link->fd != -1);
    assert(json->depth == 1); /* opened values are closed */
    json_close(json);
    line = json_end(json, &n);
    if (line != NULL) /* the socket's buffer takes many lines at once */
        sent = fd_send(link->fd, line, n, fd);
    free(line);
    if (line != NULL && sent == -1)
        return errno == EPIPE || errno == ECONNRESET ? 0 : -1;
    return line != NULL && sent == (ssize_t)n ? 0 : -1;
}

void upgrade_link_tell(struct upgrade *upgrade, struct json *json, int fd)
{
    if (upgrade_link_send(&upgrade->link, json, fd) == -1)
        log_write(upgrade->log, LEVEL_ALERT, errno, "no message could be sent to master process %d",
            (int)upgrade->other);
}

void upgrade_report(int link, const struct diag *diag)
{
    struct json json;
    size_t n, sent = 0;
    ssize_t piece = 0;
    char *line;

    if (link == -1)
        return;
    upgrade_link_begin(&json);
    diag_to_json(&json, diag);
    json_close(&json);
    line = json_end(&json, &n);
    fd_send_slowly(link, REPORT_S);
    while (line != NULL && sent < n && piece != -1) {
        piece = fd_send(link, line + sent, n - sent, -1);
        sent += piece > 0 ? (size_t)piece : 0;
    }
    free(line);
}

/* Receiving */

/* Receives once; the return value and errno are recv()'s. */
static ssize_t receive_link_bytes(struct upgrade_link *link)
{
    size_t size = link->in_size > 0 ? 2 * link->in_size : 4096;
    char *larger = NULL;
    ssize_t n;
    int fd;

    assert(link->line_n == 0);
    if (link->in_n == link->in_size && size <= MESSAGE_MAX)
        larger = realloc(link->in, size);
    if (larger != NULL) {
        link->in = larger;
        link->in_size = size;
    } else if (link->in_size == 0) {
        errno = ENOMEM;
        return -1;
    } else if (link->in_n == link->in_size) {
        link->in_n = 0; /* no version sends so much */
    }
    n = fd_receive(link->fd, link->in + link->in_n, link->in_size - link->in_n, &fd, NULL);
    if (n > 0)
        link->in_n += (size_t)n;
    if (fd == -1)
        return n;
    descriptor_close(link->passed); /* the descriptor's message has no end */
    link->passed = fd;
    return n;
}

bool upgrade_link_next(struct upgrade_link *link, struct json_value *message, int *fd)
{
    const char *end;
    ssize_t n;

    *fd = -1;
    while (link->fd != -1) {
        upgrade_link_check(link);
        link->in_n -= link->line_n;
        if (link->line_n > 0)
            memmove(link->in, link->in + link->line_n, link->in_n);
        link->line_n = 0;
        end = link->in_n > 0 ? memchr(link->in, '\n', link->in_n) : NULL;
        if (end != NULL)
            break;
        n = receive_link_bytes(link);
        if (n == -1 && errno == EAGAIN)
            return false;
        if (n == 0 || (n == -1 && errno != EINTR))
            upgrade_link_close(link);
    }
    if (link->fd == -1)
        return false;
    link->line_n = (size_t)(end - link->in) + 1;
    *message = json_parse(link->in, link->line_n - 1);
    /* the bytes of several messages may have been received at once */
    if (link->line_n - 1 == 2 || json_member(*message, "inbox").text != NULL) {
        *fd = link->passed;
        link->passed = -1;
    }
    return true;
}
