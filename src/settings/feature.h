/* SPDX-License-Identifier: BSD-2-Clause */
/* Features of stream {}: folders of features/, each with directives, run-time work, and variables.
 * The reader of stream {} knows features by this struct alone, from cycle_options.features. The
 * structs of servers and of the configuration lie in the cycle's memory, zeroed. */
#pragma once

#include "session/server.h"
#include "settings/apply.h"

struct setting;
struct stream;
struct variable_row;

/* The directives of connections to servers by TLS, which a protocol declares in one row
 * (FB_VALUE_TLS) under a name of its own. */
struct feature_tls {
    const struct setting *rows; /* as the proxy names them; the first is the declared directive */
    size_t size;                /* bytes of the struct with the values of a server */
    /* Makes the protocol's value of a server's values, `declared` in the configuration; NULL: TLS
     * is off, or a mistake was reported. */
    const fb_tls_profile *(*make)(struct apply *apply, struct scope *server,
        const fb_directive *declared, const void *values);
};

struct feature {
    const char *name; /* of its folder */
    /* Rows, up to a row without a name; NULL: no directive. `offset` is a place in the server's
     * struct, or, without such a struct, in struct server_settings. */
    const struct setting *rows;
    size_t server_size;                   /* bytes of the struct of each server, and of stream {} */
    size_t conf_size;                     /* bytes of the struct of the configuration */
    const struct variable_row *variables; /* end with a row without a name; NULL: none */
    const struct feature_tls *tls;        /* of one feature alone; NULL: none */

    /* While stream {} is read; hooks may be NULL. They run in the order of features.def. */
    void (*begin)(struct apply *apply); /* before its first directive */
    void (*finish_server)(
        struct apply *apply, struct scope *server);                /* the server has all values */
    void (*finish)(struct apply *apply, struct scope *stream);     /* all servers have */
    void (*bind)(struct apply *apply, struct scope *stream);       /* the listeners are known */
    void (*warn)(struct apply *apply, const struct scope *stream); /* no mistake was found */

    /* In a worker, from start to end; hooks may be NULL. */
    int (*open)(struct stream *stream, const struct cycle *cycle, struct slot_id slot);
    void (*close)(struct stream *stream, const struct cycle *cycle);
};

/* Return the feature's structs: of the configuration, and of a block. */
static inline void *feature_conf(const struct apply *apply, unsigned feature)
{
    return apply->cycle->stream.features[feature];
}

static inline void *feature_values(const struct scope *scope, unsigned feature)
{
    return scope->features[feature];
}

/* Makes the rows of stream {} of those of the features; NULL after a report. */
const struct setting *feature_rows(struct apply *apply);
/* Makes a list of the features' structs; `size` is the place of their size in struct feature. */
void **feature_make_structs(struct apply *apply, size_t size);
/* Makes the list of the variables of all features, and of others; NULL after a report. */
const struct variable_row *const *feature_variables(struct apply *apply);
/* Makes the server run the handler, after all handlers of earlier phases and of the same. */
int feature_add_handler(struct apply *apply, struct server *server, enum stream_phase phase,
    unsigned (*run)(struct fb_conn *conn, const void *arg), const void *arg);
