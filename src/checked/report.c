/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports the mistakes of protocols in the checked mode: a line that names the protocol and the
 * call, then the end of the worker. While a configuration is read it is a mistake of the
 * configuration; in the master, which goes on, an alert; in the test kit a fault. A crash within a
 * protocol's memory is reported from its signal's handler, and is still a crash. */
#include "checked/checked.h"

#include "base/compiler.h"
#include "process/conf_hooks.h"
#include "settings/calls.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT 512

/* Ends the process by the signal that says so, without the handlers of a library. */
static NORETURN void end_worker(void)
{
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void tell(struct worker *worker, const char *text)
{
    if (worker->heritage->mistake != NULL) {
        worker->heritage->mistake(worker, text);
        return;
    }
    log_write(&worker->log, LEVEL_ALERT, 0, "%s", text);
    end_worker();
}

static void deliver(const char *text)
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
        tell(checked->worker, text);
}

/* Returns the name of the protocol that runs, or else the given one. */
static const char *running(const char *protocol)
{
    const struct checked_scope *scope = checked_scope_now();

    if (scope != NULL)
        return scope->protocol->name;
    return protocol != NULL ? protocol : "?";
}

void checked_report_call(const char *protocol, const char *call, const char *format, ...)
{
    char text[TEXT], how[TEXT / 2];
    va_list args;

    va_start(args, format);
    vsnprintf(how, sizeof(how), format, args);
    va_end(args);
    snprintf(text, sizeof(text), "protocol \"%s\" called fb_%s() %s", running(protocol), call, how);
    deliver(text);
}

void checked_report(const char *protocol, const char *format, ...)
{
    char text[TEXT], what[TEXT / 2];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    snprintf(text, sizeof(text), "protocol \"%s\" %s", running(protocol), what);
    deliver(text);
}

/* Reports what the crash at an address was, if a block lies there. */
static void report_crash(const char *at)
{
    const struct checked_block *block = checked_block_at(at);
    const struct checked_scope *scope = checked_scope_now();
    const char *callback = scope != NULL ? scope->callback : "no callback", *name;

    if (block == NULL)
        return;
    name = checked_block_name(block);
    if (block->ended != NULL)
        checked_report(
            block->protocol, "used %s after %s, in \"%s\"", name, block->ended, callback);
    else if (at >= block->base + block->size)
        checked_report(block->protocol, "went beyond the %zu bytes of %s, in \"%s\"", block->n,
            name, callback);
    else
        checked_report(block->protocol, "wrote into %s, in \"%s\"", name, callback);
}

static void crashed(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    signal(signal_number, SIG_DFL); /* the access is made again, and crashes */
    if (info->si_code <= 0) {       /* a process has sent the signal */
        raise(signal_number);
        return;
    }
    report_crash(info->si_addr);
}

void checked_report_crashes(void)
{
    struct sigaction action = { .sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_NODEFER };

    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}
