/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations that move a source's bytes: plain socket calls, a layer on them (TLS), or a
 * mechanism's own (io_uring, simulation). Code above net/ never makes the system call itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct source;

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
    /* On entry *span is memory for input; on IO_DONE it is the input, there or in the operation's
     * memory, valid until the source's next successful recv. */
    struct io_result (*recv)(struct source *source, struct io_span *span);
    /* Sends from the pieces in order; may take fewer bytes than they hold. */
    struct io_result (*send)(struct source *source, const struct iovec *pieces, int n);
    /* Hands on what send has taken and still holds: IO_DONE when all of it has left,
     * IO_AGAIN_WRITE when an event will tell. Called before a half or a connection is ended; NULL:
     * send holds nothing. */
    struct io_result (*flush)(struct source *source);
    /* A connection from a listener: its descriptor, and the peer's address in *address, whose room
     * and then length is *length. EAGAIN is IO_AGAIN_READ; n is not used. */
    struct io_result (*accept)(
        struct source *listener, int *fd, struct sockaddr *address, socklen_t *length);
    /* Whether a client waits at a listener, or an error. */
    bool (*waits)(const struct source *listener);
    /* Makes the source's socket, and begins to connect: IO_AGAIN_WRITE when connected() will give
     * the result. `options` may be NULL. */
    struct io_result (*connect)(struct source *source, const struct sockaddr *address,
        socklen_t length, struct io_connect *options);
    struct io_result (*connected)(struct source *source);
    /* Looks, without receiving: IO_EOF after the peer's end with nothing left to receive before,
     * IO_FAILED on an error; else IO_AGAIN_READ. */
    struct io_result (*ended)(const struct source *source);
    /* The local address; -1 where unknown. */
    int (*name)(const struct source *source, struct sockaddr *address, socklen_t *length);
    /* At most n bytes of a file, from *offset, which moves on; IO_EOF at the file's end. */
    struct io_result (*sendfile)(struct source *source, int fd, off_t *offset, size_t n);
    /* At most n bytes into or out of a pipe; both NULL where the operation's bytes cannot go past
     * this process. */
    struct io_result (*splice_in)(struct source *source, int pipe, size_t n);
    struct io_result (*splice_out)(struct source *source, int pipe, size_t n);
    /* Bytes sent by TCP and not acknowledged by the peer's system, lost by a reset, plus one for an
     * end of our half; 0 where unknown. */
    size_t (*queued)(const struct source *source);
    /* Ends our half, after what was sent. */
    struct io_result (*shutdown)(struct source *source);
    /* Bytes that a layer holds and the kernel will not announce; NULL where there is no layer. */
    size_t (*pending)(const struct source *source);
    /* Closes the descriptor; with `reset` the peer sees a broken connection. */
    void (*close)(struct source *source, bool reset);
};

/* The kernel's sockets, non-blocking. */
extern const struct io_ops io_socket;
