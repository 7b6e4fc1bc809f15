/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection, of a client or to a server: output, files, time-outs, timers, memory, addresses.
 * Part of <forkbeard/forkbeard.h>, whose rules hold here. */
#pragma once

#include <forkbeard/protocol.h>

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Output ---- */

/* Append to the connection's output; p may be reused at once. They do nothing on a connection that
 * is closing, was shut down or is broken. Without memory the connection ends as FB_NO_MEMORY. */
FB_SDK void fb_write(fb_conn *conn, const void *p, size_t n);
FB_SDK void fb_writev(fb_conn *conn, const fb_bytes *pieces, size_t n);
/* Appends bytes without a copy. They must not change until release(arg) is called: once, from the
 * loop, when they have been sent or discarded. Returns 0; or -1 when the connection takes no output
 * or there is no memory: then nothing was appended, and `release` is not called. */
FB_SDK int fb_write_ref(
    fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg);
/* Appends n bytes of a file, from `offset` on. Returns 0, and the connection owns `fd` and closes
 * it; or -1 as above, and the caller still owns `fd`. A file that is too short ends the connection
 * as FB_IO_ERROR. */
FB_SDK int fb_send_file(fb_conn *conn, int fd, uint64_t offset, uint64_t n);
/* Sends the output now instead of after the callback. For callbacks that take long. */
FB_SDK void fb_flush(fb_conn *conn);
/* Returns how many bytes of output the kernel has not taken yet. */
FB_SDK size_t fb_unsent(const fb_conn *conn);

/* ---- Files ---- */

#define FB_READ_MAX 1048576
/* Reads n bytes, 1 to FB_READ_MAX, of a regular file from `offset` on, in the way of the server's
 * `aio`, and calls done(conn, state, read) from the loop, never within this call. The bytes are
 * lent until `done` returns, as input is: what it writes of them is sent from where they lie.
 * `done` waits, as input does, while 64 KiB of the connection's output are unsent. Several reads
 * may be under way, and end in any order. `fd` stays the caller's, and open until `done`; it may be
 * closed in `closed`. With O_DIRECT neither offset nor n need be aligned, and what is not costs a
 * longer read. The first call ends the wait for a client's first byte (first_byte_timeout). Returns
 * 0, and `done` is called once, unless the connection was closed, ended or piped by then: it is
 * never called, and there is nothing to give back. Returns -1, and nothing follows, when the
 * connection is closing or in a pipe, when n is out of range, when the queue of `thread_pool` is
 * full, or without memory. */
FB_SDK int fb_read_file(fb_conn *conn, int fd, uint64_t offset, size_t n,
    void (*done)(fb_conn *conn, void *state, const fb_file_read *read));
/* Returns how fb_read_file() reads for this connection: FB_AIO_THREADS where `aio` is on and the
 * kernel has refused it to this worker. */
FB_SDK fb_aio fb_aio_of(const fb_conn *conn);

/* ---- The connection ---- */

/* Stops reading: `data` and `eof` are not called until fb_resume(), which also has unconsumed input
 * offered again. Calling both in turn and returning lets other connections run. The frame calls
 * find no frame while the connection is stopped. A peer that breaks the connection meanwhile ends
 * it as FB_RESET: at once under epoll and poll, within about a second under other mechanisms, and
 * where it was stopped when it opened. That the peer has ended its half is told after
 * fb_resume(). */
FB_SDK void fb_stop(fb_conn *conn);
FB_SDK void fb_resume(fb_conn *conn);

/* Sends the unsent output, then ends our half; the peer may go on sending. When both halves have
 * ended, the connection ends as FB_FINISHED. */
FB_SDK void fb_shutdown(fb_conn *conn);
/* Sends the unsent output, then closes; `closed` follows with FB_FINISHED. */
FB_SDK void fb_close(fb_conn *conn);
/* Discards the unsent output and resets the connection; `closed` follows with FB_ABORTED. */
FB_SDK void fb_abort(fb_conn *conn);

/* Gives the connection other callbacks and another state from now on: another protocol goes on with
 * it, as after an upgrade, STARTTLS or CONNECT. No callback is called for that: the old ones are
 * called no more, not even `closed`, so release what is theirs first; and `opened` of the new ones
 * is called only where the connection has not opened yet. Unconsumed input, also what the running
 * `data` will leave, is offered to the new `data` from the loop. Timers, frames that have begun and
 * reads of files (their `done` is never called) end with the old callbacks. Output, the time-out,
 * memory of fb_alloc(), references, connections to servers, the idle mark, and a stop all stay, and
 * answers to messages come to the new callbacks. In a draining worker the new `draining` follows.
 * `ops` and `state` stay the caller's, and must last until `closed`; a client's old state lasts so
 * long, too. Returns 0; or -1, and nothing has changed: in `closed`, or without memory, and then
 * the connection ends as FB_NO_MEMORY. Since API 4. */
FB_SDK int fb_become(fb_conn *conn, const fb_ops *ops, void *state);

/* Ends the connection as FB_TIMED_OUT when no byte has been received or sent for `ms`; 0: never. A
 * client starts with its server's idle_timeout; first_byte_timeout applies until its first byte in
 * any case. A connection to a server starts with 60 s until it is connected, and no timeout then; a
 * timeout that is set earlier holds for both. A pipe has a timeout of its own. */
FB_SDK void fb_set_timeout(fb_conn *conn, uint64_t ms);
/* Ends the connection as FB_TIMED_OUT when no byte has been received for `ms`, whatever was sent;
 * 0: never. A client starts with its server's receive_timeout, a connection to a server with none.
 * The time begins with the call. While the connection is stopped, or not read for its unsent
 * output, it does not count; in a pipe it does not apply. Without memory the connection ends as
 * FB_NO_MEMORY. Since API 4. */
FB_SDK void fb_set_receive_timeout(fb_conn *conn, uint64_t ms);
/* Sets a timer, which calls the callback `timer` with `id` in `ms`, at least 1. A timer of this id
 * that is set already is moved. There may be any number of timers; all are cancelled when the
 * connection ends. Without memory the connection ends as FB_NO_MEMORY. */
FB_SDK void fb_timer(fb_conn *conn, uint32_t id, uint64_t ms);
FB_SDK void fb_timer_cancel(fb_conn *conn, uint32_t id);
/* Tells whether the connection is between requests (1) or not (0, as at first): a worker that
 * drains closes idle connections, and one without room for another the longest idle; each call with
 * 1 begins that time anew. */
FB_SDK void fb_set_idle(fb_conn *conn, int idle);

/* Allocate n bytes, aligned for any type, not zeroed; NULL without memory, and above 1 GiB, which
 * the log says. Memory of fb_alloc() is
 * freed with the connection, that of fb_temp_alloc() also by fb_temp_reset(), which a protocol
 * calls after each request. */
FB_SDK void *fb_alloc(fb_conn *conn, size_t n);
FB_SDK void *fb_temp_alloc(fb_conn *conn, size_t n);
FB_SDK void fb_temp_reset(fb_conn *conn);

/* Returns the connection's state, as its callbacks are given it: of a client its conn_state bytes,
 * of a connection to a server what fb_connect() was given. Since API 4. */
FB_SDK void *fb_state_of(const fb_conn *conn);
/* Returns the configuration of the connection's server: conf_state bytes that live as long as the
 * connection, reloads included; NULL when conf_state is 0. */
FB_SDK const void *fb_conf_of(const fb_conn *conn);
/* Copy the address of an end into *out. The peer of a connection to a server is its target; that of
 * a client behind a proxy whose PROXY header is believed is the one that the header names. Of a
 * unix socket's peer only the family is set. Return 0, or -1 when the kernel does not know the
 * address. */
FB_SDK int fb_peer_address(const fb_conn *conn, struct sockaddr_storage *out);
FB_SDK int fb_local_address(const fb_conn *conn, struct sockaddr_storage *out);
/* Writes an address as "192.0.2.1:80", "[2001:db8::1]:80" or "unix:/path", cut to `size` bytes, the
 * NUL included; 120 bytes hold any. Returns `text`. */
FB_SDK char *fb_address_text(const struct sockaddr_storage *address, char *text, size_t size);
/* Reads an IPv4 or IPv6 address, "192.0.2.1" or "2001:db8::1", whose port is 0 then, or with a port
 * from 1 to 65535, "192.0.2.1:80" or "[2001:db8::1]:80"; no name, no network interface, and nothing
 * around it. The text, which need not end with a NUL, is lent until the call returns. It may be
 * called from anywhere, also from a directive's setter. Returns 0, or -1 when the text is anything
 * else, and *out has no address (AF_UNSPEC) then. Since API 4. */
FB_SDK int fb_parse_address(fb_bytes text, struct sockaddr_storage *out);
/* Return the bytes received and sent so far; also in `closed`. */
FB_SDK uint64_t fb_received(const fb_conn *conn);
FB_SDK uint64_t fb_sent(const fb_conn *conn);

#ifdef __cplusplus
}
#endif
