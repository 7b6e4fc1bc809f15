/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the heads of syslog messages. The text of a second is the caller's stamp; only the fraction
 * of RFC 5424 is worked out for each message. Never sends. */
#include "base/syslog_server.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* PRI VERSION TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA; "-" is a nil value. */
static int write_rfc5424(const struct syslog_server *server, struct log_stamp *stamp,
    unsigned priority, const char *kind, char head[SYSLOG_HEAD_MAX])
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    log_stamp_set(stamp, now.tv_sec);
    return snprintf(head, SYSLOG_HEAD_MAX, "<%u>1 %s.%06ld%s %s%s %d %s - ", priority,
        stamp->rfc5424, now.tv_nsec / 1000, stamp->zone,
        server->host[0] != '\0' ? server->host : "- ", server->tag, (int)getpid(), kind);
}

static int write_rfc3164(const struct syslog_server *server, struct log_stamp *stamp,
    unsigned priority, char head[SYSLOG_HEAD_MAX])
{
    log_stamp_update(stamp);
    return snprintf(
        head, SYSLOG_HEAD_MAX, "<%u>%s %s%s: ", priority, stamp->syslog, server->host, server->tag);
}

size_t syslog_server_head(const struct syslog_server *server, struct log_stamp *stamp,
    enum log_level severity, const char *kind, char head[SYSLOG_HEAD_MAX])
{
    unsigned priority = server->facility * 8 + (unsigned)severity;
    int n;

    if (server->format == SYSLOG_RFC5424)
        n = write_rfc5424(server, stamp, priority, kind, head);
    else
        n = write_rfc3164(server, stamp, priority, head);
    assert(n > 0 && n < SYSLOG_HEAD_MAX); /* names of hosts and tags are short */
    return (size_t)n;
}
