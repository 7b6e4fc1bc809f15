/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug lines of events, in builds configured with --enable-debug: `error_log ... debug` shows all
 * of them, debug_connection those of the named connections.
 *
 * In any other build the macros are empty: nothing is evaluated, no text is there, and debug.c is
 * not compiled. A line changes nothing and keeps errno. A loop over a simulated kernel has none,
 * because tests compare whole logs. */
#pragma once

#include "base/compiler.h"

#include <stdint.h>

struct loop;
struct source;
struct timers;

/* Bits of the kernel's flags, and their words in lines. A table ends with a NULL word. */
struct debug_flag {
    uint32_t bits;
    const char *word;
};

/* A line about the loop as a whole. */
#define debug_loop(loop, ...)                                                                      \
    do {                                                                                           \
        if (DEBUG_BUILD)                                                                           \
            debug_put_loop((loop), __VA_ARGS__);                                                   \
    } while (0)

/* A line about a source, beginning with the descriptor; `format` is a literal. For a connection the
 * line also has number and addresses. */
#define debug_source(loop, source, format, ...)                                                    \
    do {                                                                                           \
        if (DEBUG_BUILD)                                                                           \
            debug_put_source(                                                                      \
                (loop), (source), "descriptor %d: " format, (source)->fd, ##__VA_ARGS__);          \
    } while (0)

/* For mechanisms: a line about a source with flags that the kernel has reported, or is given, in
 * words: "descriptor 9: epoll reports in rdhup". */
#define debug_flags(loop, source, what, flags, table)                                              \
    do {                                                                                           \
        if (DEBUG_BUILD)                                                                           \
            debug_put_flags((loop), (source), (what), (flags), (table));                           \
    } while (0)

/* A line about a tree of timers, except for the master's, without a loop. */
#define debug_timers(timers, ...)                                                                  \
    do {                                                                                           \
        if (DEBUG_BUILD && (timers)->loop != NULL)                                                 \
            debug_put_loop((timers)->loop, __VA_ARGS__);                                           \
    } while (0)

/* Lines before and after a wait of at most `timeout` ms (-1: for ever); `before`: the clock's
 * milliseconds. A look for events without a wait has none: busy polling would fill the log. */
#define debug_wait(loop, timeout)                                                                  \
    do {                                                                                           \
        if (DEBUG_BUILD)                                                                           \
            debug_put_wait((loop), (timeout));                                                     \
    } while (0)
#define debug_waited(loop, timeout, before)                                                        \
    do {                                                                                           \
        if (DEBUG_BUILD)                                                                           \
            debug_put_waited((loop), (timeout), (before));                                         \
    } while (0)

void debug_put_loop(const struct loop *loop, const char *format, ...) PRINTF_FORMAT(2, 3);
void debug_put_source(const struct loop *loop, const struct source *source, const char *format, ...)
    PRINTF_FORMAT(3, 4);
void debug_put_flags(const struct loop *loop, const struct source *source, const char *what,
    uint32_t flags, const struct debug_flag *table);

void debug_put_wait(const struct loop *loop, int timeout);
void debug_put_waited(const struct loop *loop, int timeout, uint64_t before);

/* Words for the flags of poll(2), shared by several mechanisms. */
extern const struct debug_flag debug_poll_words[];

/* Words of lines: "read" or "write", and the name of a queue. */
const char *debug_direction(unsigned direction);
const char *debug_queue(unsigned queue);
