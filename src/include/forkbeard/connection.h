/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection, of a client or to a server: output, files, time-outs, timers, memory, addresses.
 * Part of <forkbeard/forkbeard.h>, with the same rules. */
#pragma once

#include <forkbeard/protocol.h>

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Output ---- */

/* Append to the connection's output; p may be reused at once. On a closing, shut down or broken
 * connection they do nothing. Without memory the connection ends as FB_NO_MEMORY. */
FB_SDK void fb_write(fb_conn *conn, const void *p, size_t n);
FB_SDK void fb_writev(fb_conn *conn, const fb_bytes *pieces, size_t n);
/* Appends bytes without a copy. The bytes must not change until release(arg) is called: once, from
 * the loop, when all are sent or discarded. Returns 0; or -1 when the connection takes no output or
 * without memory: then nothing was appended, and `release` is not called. */
FB_SDK int fb_write_ref(
    fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg);
/* Appends n bytes of a file, from `offset` on. Returns 0, and the connection owns `fd` and closes
 * it; or -1 as above, and the caller still owns `fd`. A file with fewer bytes ends the connection
 * as FB_IO_ERROR. */
FB_SDK int fb_send_file(fb_conn *conn, int fd, uint64_t offset, uint64_t n);
/* Sends the output now instead of after the callback. For long callbacks. */
FB_SDK void fb_flush(fb_conn *conn);
/* Returns how many bytes of output the kernel has not taken yet. */
FB_SDK size_t fb_unsent(const fb_conn *conn);

/* ---- Files ---- */

#define FB_READ_MAX 1048576
/* Reads n bytes, 1 to FB_READ_MAX, of a regular file from `offset` on, in the way of the server's
 * `aio`, and calls done(conn, state, read) from the loop, never within this call. The bytes are
 * lent until `done` returns, as input is: output of these bytes is sent from where they lie. `done`
 * waits, as input does, while 64 KiB of the connection's output are unsent. Several reads may be
 * under way, and end in any order. `fd` stays the caller's, and open until `done`; it may be closed
 * in `closed`. With O_DIRECT neither offset nor n need be aligned; unaligned ones cost a longer
 * read. The first call ends the wait for a client's first byte (first_byte_timeout). Returns 0, and
 * `done` is called once, or never, with nothing to give back, when the connection is closed, ended
 * or piped before. Returns -1, and nothing follows, when the connection is closing or in a pipe,
 * when n is out of range, when the queue of `thread_pool` is full, or without memory. */
FB_SDK int fb_read_file(fb_conn *conn, int fd, uint64_t offset, size_t n,
    void (*done)(fb_conn *conn, void *state, const fb_file_read *read));
/* Returns how fb_read_file() reads for this connection: FB_AIO_THREADS where `aio` is on but
 * refused to this worker by the kernel. */
FB_SDK fb_aio fb_aio_of(const fb_conn *conn);

/* ---- The connection ---- */

/* Stops reading: `data` and `eof` are not called until fb_resume(), after which unconsumed input is
 * offered again, too. Calling both in turn and returning lets other connections run. The frame
 * calls find no frame while the connection is stopped. A peer that breaks the connection meanwhile
 * ends it as FB_RESET: at once under epoll and poll, within about a second under other mechanisms,
 * and where `opened` stopped the connection. The end of the peer's half is reported after
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

/* Gives the connection other callbacks and another state from now on: a different protocol goes on,
 * as after an upgrade, STARTTLS or CONNECT. No callback announces the change: the old callbacks are
 * called no more, not even `closed`, so release all of the old state first; the new `opened` is
 * called only if the connection has not opened yet. Unconsumed input, also the rest left by the
 * running `data`, is offered to the new `data` from the loop. Timers, begun frames and reads of
 * files (`done` is never called) end with the old callbacks. Output, the time-out, memory of
 * fb_alloc(), references, connections to servers, the idle mark, and a stop all stay, and answers
 * to messages come to the new callbacks. In a draining worker the new `draining` follows. `ops` and
 * `state` stay the caller's, and must last until `closed`; a client's old state lasts as long, too.
 * Returns 0; or -1, and nothing has changed: in `closed`, or without memory, and then the
 * connection ends as FB_NO_MEMORY. Since API 4. */
FB_SDK int fb_become(fb_conn *conn, const fb_ops *ops, void *state);

/* Ends the connection as FB_TIMED_OUT when no byte was received or sent for `ms`; 0: never. A
 * client starts with its server's idle_timeout; first_byte_timeout applies until its first byte in
 * any case. A connection to a server starts with 60 s until connected, and then has no timeout; a
 * timeout set earlier holds for both. A pipe has a timeout of its own. */
FB_SDK void fb_set_timeout(fb_conn *conn, uint64_t ms);
/* Ends the connection as FB_TIMED_OUT when no byte was received for `ms`, whether or not bytes were
 * sent; 0: never. A client starts with its server's receive_timeout, a connection to a server with
 * none. The time begins with the call. Time does not count while the connection is stopped, or not
 * read because of unsent output; in a pipe the timeout does not apply. Without memory the
 * connection ends as FB_NO_MEMORY. Since API 4. */
FB_SDK void fb_set_receive_timeout(fb_conn *conn, uint64_t ms);
/* Sets a timer: the callback `timer` is called with `id` in `ms`, at least 1. A timer already set
 * with this id is moved. The number of timers is unlimited; all are cancelled when the connection
 * ends. Without memory the connection ends as FB_NO_MEMORY. */
FB_SDK void fb_timer(fb_conn *conn, uint32_t id, uint64_t ms);
FB_SDK void fb_timer_cancel(fb_conn *conn, uint32_t id);
/* Tells whether the connection is between requests (1) or not (0, as at first): a draining worker
 * closes idle connections, and a full worker the longest idle; each call with 1 begins the idle
 * time anew. */
FB_SDK void fb_set_idle(fb_conn *conn, int idle);

/* Allocate n bytes, aligned for any type, not zeroed; NULL without memory, and above 1 GiB, which
 * the log reports. Memory of fb_alloc() is freed with the connection, memory of fb_temp_alloc()
 * also by fb_temp_reset(), to be called after each request. */
FB_SDK void *fb_alloc(fb_conn *conn, size_t n);
FB_SDK void *fb_temp_alloc(fb_conn *conn, size_t n);
FB_SDK void fb_temp_reset(fb_conn *conn);

/* Returns the connection's state, as given to its callbacks: a client's conn_state bytes, or the
 * state from fb_connect(). Since API 4. */
FB_SDK void *fb_state_of(const fb_conn *conn);
/* Returns the configuration of the connection's server: conf_state bytes with the lifetime of the
 * connection, reloads included; NULL when conf_state is 0. */
FB_SDK const void *fb_conf_of(const fb_conn *conn);
/* Copy the address of an end into *out. The peer of a connection to a server is its target. Behind
 * a trusted proxy a client's peer is the address in the PROXY header. Of a unix socket's peer only
 * the family is set. Return 0, or -1 when the kernel does not know the address. */
FB_SDK int fb_peer_address(const fb_conn *conn, struct sockaddr_storage *out);
FB_SDK int fb_local_address(const fb_conn *conn, struct sockaddr_storage *out);
/* Writes an address as "192.0.2.1:80", "[2001:db8::1]:80" or "unix:/path", cut to `size` bytes, the
 * NUL included; 120 bytes hold any. Returns `text`. */
FB_SDK char *fb_address_text(const struct sockaddr_storage *address, char *text, size_t size);
/* Reads an IPv4 or IPv6 address, "192.0.2.1" or "2001:db8::1" (port 0), or with a port from 1 to
 * 65535, "192.0.2.1:80" or "[2001:db8::1]:80"; no name, no network interface, no spaces around. The
 * text, lent until the call returns, need not end with a NUL. May be called from anywhere, also
 * from a directive's setter. Returns 0, or -1 for any other text, and *out then has no address
 * (AF_UNSPEC). Since API 4. */
FB_SDK int fb_parse_address(fb_bytes text, struct sockaddr_storage *out);
/* Return the bytes received and sent so far; also in `closed`. */
FB_SDK uint64_t fb_received(const fb_conn *conn);
FB_SDK uint64_t fb_sent(const fb_conn *conn);

#ifdef __cplusplus
}
#endif
