/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports the mistakes of protocols in the checked mode: a line with the names of the protocol and
 * the call, then the end of the worker. While a configuration is read, a mistake counts as the
 * configuration's; in the master, which goes on, an alert; in the test kit a fault. */
#include "checked/checked.h"
#include "configuration/configuration.h"
#include "settings/calls.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT 512

/* Tells the worker's owner, or ends the process by SIGABRT, without the handlers of a library. */
static void tell_owner(struct worker *worker, const char *text)
{
    if (worker->heritage->mistake != NULL) {
        worker->heritage->mistake(worker, text);
        return;
    }
    log_write(&worker->log, LEVEL_ALERT, 0, "%s", text);
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void deliver_mistake(const char *text)
{
    struct checked_scope *scope = checked_scope_now();
    struct checked *checked = SLIST_FIRST(checked_scope_workers());

    if (scope != NULL) {
        scope->mistakes++;
        checked = scope->checked;
    }
    if (scope != NULL && scope->place == CHECKED_CONF)
        settings_report(scope->conf, NULL, "%s", text);
    else if (scope != NULL && scope->place == CHECKED_MASTER)
        log_write(scope->master->log, LEVEL_ALERT, 0, "%s", text);
    else if (checked != NULL)
        tell_owner(checked->worker, text);
}

void checked_report(const char *protocol, const char *format, ...)
{
    const struct checked_scope *scope = checked_scope_now();
    char text[TEXT];
    va_list args;
    int n;

    if (scope != NULL)
        protocol = scope->protocol->name;
    n = snprintf(text, sizeof(text), "protocol \"%s\" ", protocol != NULL ? protocol : "?");
    assert(n > 0 && n < TEXT);
    va_start(args, format);
    vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
    va_end(args);
    deliver_mistake(text);
}

bool checked_report_call(const char *protocol, const char *call, const char *format, ...)
{
    char how[TEXT / 2];
    va_list args;

    va_start(args, format);
    vsnprintf(how, sizeof(how), format, args);
    va_end(args);
    checked_report(protocol, "called fb_%s() %s", call, how);
    return false;
}
