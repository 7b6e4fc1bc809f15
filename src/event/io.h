/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations that move a source's bytes: socket calls, a layer on them (TLS), or a mechanism's
 * own. Code above net/ never makes the system call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct source;
struct os_tls_keys;

enum io_status {
    IO_DONE,        /* n bytes moved, n > 0 */
    IO_AGAIN_READ,  /* no byte moved: try again when the source is readable */
    IO_AGAIN_WRITE, /* no byte moved: try again when the source is writable */
    IO_EOF,         /* recv: the peer has ended its half */
    IO_FAILED,      /* see error */
};

struct io_result {
    enum io_status status;
    int error; /* an errno */
    size_t n;
};

struct io_span {
    uint8_t *p;
    size_t n;
};

/* The steps of a connect(); any may fail. */
enum io_step { IO_CONNECT, IO_TRANSPARENT, IO_BIND };

/* Whether the socket has taken all that the kernel has sealed for it. */
enum io_sealed {
    IO_SEALED_LEFT,  /* the end may follow, or the connection is over */
    IO_SEALED_SOON,  /* the kernel is about to go on, and no event will tell */
    IO_SEALED_LATER, /* the socket has no room, of which an event will tell */
};

/* Output that the kernel seals, counted by its giver. */
struct io_sealing {
    uint8_t cipher;    /* enum os_tls_cipher */
    uint8_t overhead;  /* bytes of a record beside its plaintext */
    uint64_t sequence; /* number of the first record */
    uint64_t begin;    /* bytes taken by the socket before; set by `seal` */
    uint64_t plain;    /* bytes given since */
    uint64_t most;     /* the number of the next record, at most */
};

/* Options of a connecting socket, and the outcome. */
struct io_connect {
    const struct sockaddr *local; /* address to bind the socket to; NULL: the kernel's choice */
    socklen_t local_length;
    int receive_buffer;  /* bytes; 0: the system's */
    bool datagrams;      /* a datagram socket, connected at once */
    bool transparent;    /* `local` may be another host's address */
    bool keepalive;      /* the kernel probes a silent peer */
    enum io_step failed; /* out: what the error is of */
};

struct io_ops {
    /* span is memory for input, and on IO_DONE the input, there or in the operation's memory, valid
     * until the next successful recv. */
    struct io_result (*recv)(struct source *source, struct io_span *span);
    /* Sends from the pieces in order; may take fewer bytes than they hold. */
    struct io_result (*send)(struct source *source, const struct iovec *pieces, int n);
    /* Sends output that no peer waits for: the kernel may keep the bytes for 200 ms, so that they
     * leave with the next ones. NULL: send() is to be called. */
    struct io_result (*send_more)(struct source *source, const struct iovec *pieces, int n);
    /* Hands on what send holds: IO_DONE when all has left, IO_AGAIN_WRITE when an event will tell.
     * Called before a half or a connection ends, which a layer then tells its peer with `ends`; and
     * when the socket of a source with `held` has room again. NULL: send holds nothing. */
    struct io_result (*flush)(struct source *source, bool ends);
    /* A connection from a listener: descriptor, and the peer's address in *address, *length
     * bytes. */
    struct io_result (*accept)(
        struct source *listener, int *fd, struct sockaddr *address, socklen_t *length);
    /* Whether a client waits at a listener, or an error. */
    bool (*waits)(const struct source *listener);
    /* Makes a socket and connects; IO_AGAIN_WRITE: connected() will tell. `options` may be NULL. */
    struct io_result (*connect)(struct source *source, const struct sockaddr *address,
        socklen_t length, struct io_connect *options);
    struct io_result (*connected)(struct source *source);
    /* Looks: IO_EOF at the peer's end with nothing left to receive, IO_FAILED, or IO_AGAIN_READ. */
    struct io_result (*ended)(const struct source *source);
    /* The local address; -1 where unknown. */
    int (*name)(const struct source *source, struct sockaddr *address, socklen_t *length);
    /* At most n bytes of a file, from *offset, which moves on; IO_EOF at the file's end. */
    struct io_result (*sendfile)(struct source *source, int fd, off_t *offset, size_t n);
    /* At most n bytes into or out of a pipe; both NULL: bytes cannot go past this process. */
    struct io_result (*splice_in)(struct source *source, int pipe, size_t n);
    struct io_result (*splice_out)(struct source *source, int pipe, size_t n);
    /* Gives the kernel the keys of TLS for the output; -1 with errno, and output goes on as before.
     * NULL, as the two below: no kernel seals. */
    int (*seal)(struct source *source, const struct os_tls_keys *keys, struct io_sealing *sealing);
    /* Sends a record of another type than data, whole or not at all. */
    struct io_result (*send_record)(
        struct source *source, uint8_t type, const uint8_t *p, size_t n);
    /* Asked before the end of a half or a connection, which would lose what the kernel still keeps;
     * sets sealing->most. */
    enum io_sealed (*sealed)(const struct source *source, struct io_sealing *sealing);
    /* Told that much output follows: a layer may leave its part to the kernel, and then has
     * splice_out. False: there is no use in telling again. NULL: not a layer's. */
    bool (*offload)(struct source *source);
    /* Bytes sent and not acknowledged, lost by a reset, plus one for an end of our half; or 0. */
    size_t (*queued)(const struct source *source);
    /* Ends our half, after what was sent. */
    struct io_result (*shutdown)(struct source *source);
    /* Bytes that the next recv may find and the kernel will not announce, or 1 where their number
     * is unknown; NULL: never any. */
    size_t (*pending)(const struct source *source);
    /* Both NULL where source->layered is not set. Gives the layer's state to another source, which
     * is layered then; and drops the state: the mechanism's own operations remain. */
    void (*move)(struct source *from, struct source *to);
    void (*leave)(struct source *source);
    /* Closes the descriptor; with `reset` the peer sees a broken connection. */
    void (*close)(struct source *source, bool reset);
};

/* The kernel's sockets, non-blocking; and the parts, for the tables of mechanisms. */
extern const struct io_ops io_socket;
struct io_result io_socket_recv(struct source *source, struct io_span *span);
struct io_result io_socket_send(struct source *source, const struct iovec *pieces, int count);
struct io_result io_socket_send_more(struct source *source, const struct iovec *pieces, int count);
struct io_result io_socket_accept(
    struct source *listener, int *fd, struct sockaddr *address, socklen_t *length);
bool io_socket_waits(const struct source *listener);
struct io_result io_socket_connect(struct source *source, const struct sockaddr *address,
    socklen_t length, struct io_connect *options);
struct io_result io_socket_connected(struct source *source);
struct io_result io_socket_ended(const struct source *source);
int io_socket_name(const struct source *source, struct sockaddr *address, socklen_t *length);
struct io_result io_socket_shutdown(struct source *source);
void io_socket_close(struct source *source, bool reset);
size_t io_socket_queued(const struct source *source);
struct io_result io_socket_sendfile(struct source *source, int fd, off_t *offset, size_t n);
/* For systems that have splice(). */
struct io_result io_socket_splice_in(struct source *source, int pipe, size_t n);
struct io_result io_socket_splice_out(struct source *source, int pipe, size_t n);
int io_socket_seal(
    struct source *source, const struct os_tls_keys *keys, struct io_sealing *sealing);
struct io_result io_socket_send_record(
    struct source *source, uint8_t type, const uint8_t *p, size_t n);
enum io_sealed io_socket_sealed(const struct source *source, struct io_sealing *sealing);

/* The operations of every table. */
#define IO_SOCKET_COMMON                                                                           \
    .send = io_socket_send, .send_more = io_socket_send_more, .waits = io_socket_waits,            \
    .connect = io_socket_connect, .ended = io_socket_ended, .name = io_socket_name,                \
    .shutdown = io_socket_shutdown, .close = io_socket_close
/* The operations with results perhaps known to a mechanism. */
#define IO_SOCKET_ASKING                                                                           \
    .recv = io_socket_recv, .accept = io_socket_accept, .connected = io_socket_connected
/* The operations that not every system has. */
#if LINUX_SYSTEM
#define IO_SOCKET_SYSTEM                                                                           \
    .queued = io_socket_queued, .sendfile = io_socket_sendfile, .splice_in = io_socket_splice_in,  \
    .splice_out = io_socket_splice_out, .seal = io_socket_seal,                                    \
    .send_record = io_socket_send_record, .sealed = io_socket_sealed
#else
#define IO_SOCKET_SYSTEM .queued = io_socket_queued, .sendfile = io_socket_sendfile
#endif
