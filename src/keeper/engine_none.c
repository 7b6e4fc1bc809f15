/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine of a build without OpenSSL, which refuses to start. */
#include "keeper/engine.h"

#include <stdlib.h>

static struct tls_engine *refuse_engine(struct tls_files *files, struct log *log)
{
    (void)files;
    log_write(
        log, LEVEL_EMERG, 0, "TLS needs OpenSSL, and this build of forkbeard is without OpenSSL");
    return NULL;
}

static void destroy_no_engine(struct tls_engine *engine)
{
    (void)engine;
    abort();
}

static void refresh_nothing(struct tls_engine *engine, struct log *log)
{
    (void)engine;
    (void)log;
    abort();
}

static struct tls_handshake *begin_nothing(struct tls_engine *engine, const struct tls_start *start)
{
    (void)engine;
    (void)start;
    abort();
}

static enum tls_step feed_nothing(
    struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply)
{
    (void)handshake;
    (void)in;
    (void)reply;
    abort();
}

static void end_nothing(struct tls_handshake *handshake)
{
    (void)handshake;
    abort();
}

const struct tls_engine_ops engine_openssl = {
    .name = "none",
    .create = refuse_engine,
    .destroy = destroy_no_engine,
    .refresh = refresh_nothing,
    .remind = refresh_nothing,
    .begin = begin_nothing,
    .feed = feed_nothing,
    .end = end_nothing,
};
