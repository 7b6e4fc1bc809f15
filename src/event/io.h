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

struct fb_source;

enum fb_io_status {
    FB_IO_DONE,        /* n bytes moved, n > 0 */
    FB_IO_AGAIN_READ,  /* no byte moved: try again when the source is readable */
    FB_IO_AGAIN_WRITE, /* no byte moved: try again when the source is writable */
    FB_IO_EOF,         /* recv: the peer has ended its half */
    FB_IO_FAILED,      /* see error */
};

struct fb_io_result {
    enum fb_io_status status;
    int error; /* an errno */
    size_t n;
};

struct fb_span {
    uint8_t *p;
    size_t n;
};

struct fb_io_ops {
    /* On entry *span is memory that may be filled; on FB_IO_DONE it is what was received, there or
     * in memory of the operation's own, valid until the source's next recv that takes something. */
    struct fb_io_result (*recv)(struct fb_source *source, struct fb_span *span);
    /* Sends from the pieces in order; may take fewer bytes than they hold. */
    struct fb_io_result (*send)(struct fb_source *source, const struct iovec *pieces, int n);
    /* A connection from a listener: its descriptor, and the peer's address in *address, whose room
     * and then length is *length. EAGAIN is FB_IO_AGAIN_READ; n is not used. */
    struct fb_io_result (*accept)(
        struct fb_source *listener, int *fd, struct sockaddr *address, socklen_t *length);
    /* Makes a socket, whose descriptor the source has then, and begins to connect it:
     * FB_IO_AGAIN_WRITE when connected() will tell how it ended. */
    struct fb_io_result (*connect)(
        struct fb_source *source, const struct sockaddr *address, socklen_t length);
    struct fb_io_result (*connected)(struct fb_source *source);
    /* The local address; -1 where it is not known. */
    int (*name)(const struct fb_source *source, struct sockaddr *address, socklen_t *length);
    /* At most n bytes of a file, from *offset, which moves on; FB_IO_EOF at the file's end. */
    struct fb_io_result (*sendfile)(struct fb_source *source, int fd, off_t *offset, size_t n);
    /* At most n bytes into or out of a pipe; both NULL where the operation's bytes cannot go past
     * this process. */
    struct fb_io_result (*splice_in)(struct fb_source *source, int pipe, size_t n);
    struct fb_io_result (*splice_out)(struct fb_source *source, int pipe, size_t n);
    /* Ends our half, after what was sent. */
    struct fb_io_result (*shutdown)(struct fb_source *source);
    /* Bytes that a layer holds and the kernel will not announce. */
    size_t (*pending)(const struct fb_source *source);
    /* Closes the descriptor; with `reset` the peer is told that the connection broke. */
    void (*close)(struct fb_source *source, bool reset);
};

/* The kernel's sockets, non-blocking. */
extern const struct fb_io_ops fb_io_socket;
