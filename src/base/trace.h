/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace points for bpftrace, perf and gdb: probes of the provider "forkbeard" by SystemTap's
 * sys/sdt.h, and nothing without the header.
 *
 * A probe is a nop, and a note in the binary that says in which registers or at which addresses the
 * arguments are. So callers pass what they have loaded anyway, and nothing is computed here. No
 * probe has a semaphore: a tracer needs no write access to workers. Names and arguments are in
 * forkbeard(8), section TRACE POINTS, and people's scripts rely on them. */
#pragma once

#include "base/compiler.h"

#include <stdint.h>

#if HAVE_SDT
#include <sys/sdt.h>
#else
#define DTRACE_PROBE(provider, name)
#define DTRACE_PROBE2(provider, name, a, b) (void)(a), (void)(b)
#define DTRACE_PROBE3(provider, name, a, b, c) (void)(a), (void)(b), (void)(c)
#define DTRACE_PROBE6(provider, name, a, b, c, d, e, f)                                            \
    (void)(a), (void)(b), (void)(c), (void)(d), (void)(e), (void)(f)
#endif

/* A worker has accepted a client: the number of the session in the log, the descriptor, and the
 * address of the listener. */
static ALWAYS_INLINE void trace_accept(uint64_t session, int fd, const char *listen)
{
    DTRACE_PROBE3(forkbeard, accept, session, fd, listen);
}

/* A client's session begins with its protocol, after phase handlers, TLS and preread. */
static ALWAYS_INLINE void trace_session_begin(uint64_t session, const char *protocol)
{
    DTRACE_PROBE2(forkbeard, session__begin, session, protocol);
}

/* A client's session has ended: the protocol of the server (NULL: none), the cause as in
 * $session_end, bytes from and to the client, and the time as in $session_time, in ms. */
static ALWAYS_INLINE void trace_session_end(uint64_t session, const char *protocol, const char *end,
    uint64_t received, uint64_t sent, uint64_t ms)
{
    DTRACE_PROBE6(forkbeard, session__end, session, protocol, end, received, sent, ms);
}

/* Surround a callback of a protocol: the protocol (NULL: of `release`), the callback's name in the
 * SDK, and the session (0: of the worker). A callback runs within no other. */
static ALWAYS_INLINE void trace_callback_begin(
    const char *protocol, const char *callback, uint64_t session)
{
    DTRACE_PROBE3(forkbeard, callback__begin, protocol, callback, session);
}
static ALWAYS_INLINE void trace_callback_end(void)
{
    DTRACE_PROBE(forkbeard, callback__end);
}

/* Surround the work of a turn, between two waits: where the list of events that the wait has
 * reported begins and ends, each event the size of a pointer. */
static ALWAYS_INLINE void trace_turn_begin(const void *events, const void *events_end)
{
    DTRACE_PROBE2(forkbeard, turn__begin, events, events_end);
}
static ALWAYS_INLINE void trace_turn_end(void)
{
    DTRACE_PROBE(forkbeard, turn__end);
}

/* The master: a reload comes to a phase; the number of the generation that serves. */
static ALWAYS_INLINE void trace_reload_phase(const char *phase, unsigned generation)
{
    DTRACE_PROBE2(forkbeard, reload__phase, phase, generation);
}
