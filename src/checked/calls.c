/* SPDX-License-Identifier: BSD-2-Clause */
/* The wrappers of calls.def's rows, the wrappers of the configuration's calls with further checks,
 * and the table of all wrappers for the loader of the checked mode. A wrapper does nothing after a
 * report but return the row's value. */
#include "checked/calls.h"

#include "checked/protocol.h"
#include "module/module.h"
#include "settings/calls.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- The checks of rows: report a failure and replace handles ---- */

#define CONN(conn) (((conn) = checked_conn(conn, CHECKED_CALL)) != NULL)
#define OUTPUT(conn) (CONN(conn) && checked_can_write(conn, CHECKED_CALL))
#define WORKER(worker) (((worker) = checked_worker(worker, CHECKED_CALL)) != NULL)
#define WORKER_PLACE() checked_place_is_worker(NULL, CHECKED_CALL)
#define WATCH(watch) (checked_watch(watch, CHECKED_CALL) != NULL)
#define MAP(map) (checked_map((fb_map *)(uintptr_t)(map), CHECKED_CALL) != NULL)
#define CONF(conf) checked_place_is_conf(conf, CHECKED_CALL)
#define MASTER(master) checked_place_is_master(master, CHECKED_CALL)
#define GIVEN(p) checked_given(CHECKED_CALL, (const void *)(uintptr_t)(p), #p)
#define BYTES(p, n, name) checked_bytes(CHECKED_CALL, p, n, name)
#define ITEM(item) (GIVEN(item) && BYTES((item)->value, (item)->room, #item))

#define CALL(name)

#define CALL_VALUE(name, signature, checks, call, otherwise)                                       \
    signature                                                                                      \
    {                                                                                              \
        return (checks) ? call : otherwise;                                                        \
    }

#define CALL_VOID(name, signature, checks, call)                                                   \
    signature                                                                                      \
    {                                                                                              \
        if (checks)                                                                                \
            call;                                                                                  \
    }

/* The call of a format is made with the formatted text. */
#define CALL_LOGF(name, signature, checks, call)                                                   \
    signature                                                                                      \
    {                                                                                              \
        char text[CHECKED_LINE];                                                                   \
        va_list args;                                                                              \
                                                                                                   \
        if (!(checks) || !GIVEN(format))                                                           \
            return;                                                                                \
        va_start(args, format);                                                                    \
        vsnprintf(text, sizeof(text), format, args);                                               \
        va_end(args);                                                                              \
        call;                                                                                      \
    }

#include "checked/calls.def"

/* ---- The configuration ---- */

int checked_conf_errorf(fb_conf *conf, const char *directive, const char *format, ...)
{
    va_list args;

    if (!checked_place_is_conf(conf, CHECKED_CALL) ||
        !checked_given(CHECKED_CALL, format, "format"))
        return -1;
    va_start(args, format);
    settings_vreport(conf, directive, format, args);
    va_end(args);
    return -1;
}

const fb_health_check *checked_conf_health_check(fb_conf *conf, const char *directive,
    const fb_upstream *upstream, const fb_health_options *options)
{
    fb_health_options own;

    if (!checked_place_is_conf(conf, CHECKED_CALL) ||
        !checked_given(CHECKED_CALL, directive, "directive") ||
        !checked_given(CHECKED_CALL, upstream, "upstream") ||
        !checked_options(CHECKED_CALL, &own, sizeof(own), options))
        return NULL;
    return fb_conf_health_check(conf, directive, upstream, &own);
}

/* ---- The table ---- */

#define CALL(name) { "fb_" #name, (void (*)(void))fb_##name, (void (*)(void))checked_##name },

const struct relink_call checked_calls[] = {
#include "checked/calls.def"
    { NULL, NULL, NULL },
};

const fb_protocol *(*const checked_protocol_wrapper)(
    struct arena *arena, const fb_protocol *copy) = checked_protocol_make;
