/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug lines of events, in builds configured with --enable-debug: `error_log ... debug` shows all,
 * debug_connection the lines of chosen connections. In other builds the macros are empty: nothing
 * is evaluated, and debug.c is not compiled. A line changes nothing and keeps errno. A loop over a
 * simulated kernel has no lines, because tests compare whole logs. */
#pragma once

#include "base/compiler.h"

#include <stdint.h>

struct loop;
struct source;

/* A flag of the kernel's, and its word in lines. A table ends with a NULL word. */
struct debug_flag {
    uint32_t bits;
    const char *word;
};

#define DEBUG_LINE(call) (DEBUG_BUILD ? (call) : (void)0)

/* A line about a loop; NULL, the loop of the master's timers, has none. */
#define debug_loop(loop, ...) DEBUG_LINE(debug_put_loop((loop), __VA_ARGS__))
/* A line about a source with descriptor, and a connection's number. `format` is a literal. */
#define debug_source(loop, source, format, ...)                                                    \
    DEBUG_LINE(                                                                                    \
        debug_put_source((loop), (source), "descriptor %d: " format, (source)->fd, ##__VA_ARGS__))
/* For mechanisms: a line with a source's flags in words: "descriptor 9: epoll reports in rdhup". */
#define debug_flags(loop, source, what, flags, table)                                              \
    DEBUG_LINE(debug_put_flags((loop), (source), (what), (flags), (table)))
/* Lines before and after a wait of at most `timeout` ms (-1: for ever); `before`: the clock's
 * milliseconds. A look for events without a wait has none: busy polling would fill the log. */
#define debug_wait(loop, timeout) DEBUG_LINE(debug_put_wait((loop), (timeout)))
#define debug_waited(loop, timeout, before)                                                        \
    DEBUG_LINE(debug_put_waited((loop), (timeout), (before)))

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
