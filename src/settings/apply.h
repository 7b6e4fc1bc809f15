/* SPDX-License-Identifier: BSD-2-Clause */
/* How directives are given a meaning: each is a row of a table, and the walk through the file's tree
 * (apply.c) checks what the row says before its setter runs. Private to settings/. */
#pragma once

#include "conf/conf.h"
#include "conf/report.h"
#include "settings/cycle.h"

#include <bsd/sys/tree.h>

/* Where a directive may stand. */
enum fb_at { FB_AT_MAIN = 1, FB_AT_EVENTS = 2, FB_AT_STREAM = 4, FB_AT_SERVER = 8 };
#define FB_AT_ANY (FB_AT_MAIN | FB_AT_EVENTS | FB_AT_STREAM | FB_AT_SERVER)

struct fb_apply;

struct fb_setting {
    const char *name;
    unsigned at;               /* enum fb_at, more than one: inherited from the outer block */
    unsigned char least, most; /* arguments */
    bool repeats;              /* may stand more than once in a block */
    bool block;                /* has a block instead of ";" */
    /* 0, or -1 after a report. `field` is the context's struct + offset. */
    int (*set)(struct fb_apply *apply, const struct fb_setting *setting,
        const struct fb_conf_directive *directive, void *field);
    size_t offset, size; /* of the field; a size is needed only to inherit it */
    int64_t least_value, greatest_value;
    const char *initial;          /* set as if it had been written; NULL: zero, or set elsewhere */
    const fb_protocol *protocol;  /* whose directive it is, or NULL: ours */
    const fb_directive *declared; /* as the protocol declares it, or NULL */
};

/* A table ends with a row without a name. */
extern const struct fb_setting fb_core_table[];
extern const struct fb_setting fb_events_table[];
extern const struct fb_setting fb_stream_table[];

struct fb_seen {
    STAILQ_ENTRY(fb_seen) link;
    const struct fb_setting *setting;
    const struct fb_conf_directive *directive;
};

/* A block being applied. */
struct fb_frame {
    STAILQ_ENTRY(fb_frame) link; /* of the stream's servers */
    unsigned at;
    struct fb_frame *outer;
    const struct fb_conf_directive *directive; /* the block's; NULL for the main context */
    bool refused;           /* there was a mistake in it, not counting its servers */
    unsigned server_errors; /* those of its servers */
    STAILQ_HEAD(, fb_seen) seen;
    struct fb_server_settings *settings; /* of stream and server blocks */
    struct fb_server *server;            /* of a server block */
    STAILQ_HEAD(, fb_frame) servers;     /* of the stream block */
    void **confs;                        /* of the stream block: each protocol's, or NULL ... */
    bool *finished;                      /* ... and whether what was not written is set in it */
    STAILQ_HEAD(, fb_listen) listens;    /* of a server block ... */
    bool listens_unknown;                /* ... and others, which only the daemon knows */
};

/* One `listen` as it was written. */
struct fb_listen {
    STAILQ_ENTRY(fb_listen) link;
    RB_ENTRY(fb_listen) node;     /* of all of them, by address */
    struct fb_listener *listener; /* its own; NULL: a wildcard's socket takes it in */
    const struct fb_conf_word *word;
    struct fb_address address;
    struct fb_listen_options options;
    bool own_socket; /* `bind`, or an option that only a socket of its own can have */
    struct fb_server *server;
};

/* What a protocol's callback is given: where it is in the configuration. */
struct fb_conf {
    struct fb_apply *apply;
    struct fb_frame *frame; /* the server's, or the stream's */
    const fb_protocol *protocol;
    const struct fb_conf_directive *directive; /* the one that is being set; NULL in conf_done */
};

struct fb_apply {
    struct fb_cycle *cycle;
    struct fb_conf_report *report;
    const struct fb_cycle_options *options;
    struct fb_frame *frame;
    const struct fb_setting *protocol_table; /* the directives of all protocols */
    const struct fb_setting *tables[6];      /* all of them; ends with NULL */
    const struct fb_conf_word *use;          /* the word that named the mechanism, or NULL */
    const struct fb_conf_directive *stream;  /* applied when all of the main context was */
    bool cut;                                /* the text ended early, at a lexical error */
    bool lacks_module; /* one was refused: a directive that is not known may be its */
};

/* The main block, and all that lies in it. */
void fb_apply_block(struct fb_apply *apply, const struct fb_conf_block *block);
/* The directives of `directive`'s block in a frame of their own, which is then left. */
void fb_apply_inner(struct fb_apply *apply, struct fb_frame *frame, unsigned at,
    const struct fb_conf_directive *directive);
/* Sets what the frame's block has not: from the outer block, or to its initial value. */
void fb_apply_defaults(
    struct fb_apply *apply, struct fb_frame *frame, const struct fb_setting *table);
/* Sets it in the frame to its initial value, if it has one. */
void fb_apply_initial(
    struct fb_apply *apply, struct fb_frame *frame, const struct fb_setting *setting);
/* The directive as its setter is to see it: with environment variables replaced, if they are to be;
 * NULL after a report. */
const struct fb_conf_directive *fb_apply_substitute(
    struct fb_apply *apply, const struct fb_conf_directive *directive);
/* The row of that name, wherever it may stand, or NULL. */
const struct fb_setting *fb_apply_find(const struct fb_apply *apply, const char *name);
/* The directive that set it in this frame, or NULL. */
const struct fb_conf_directive *fb_frame_seen(
    const struct fb_frame *frame, const struct fb_setting *setting);

/* Whether what its block lacks is missing: no part of the block was refused or could not be read,
 * which may have been what is looked for. */
bool fb_frame_is_whole(const struct fb_apply *apply, const struct fb_frame *frame);

/* Memory of the cycle; reports where there is none. */
void *fb_apply_alloc(struct fb_apply *apply, size_t size);
/* A copy of the list with one more element, which is zeroed; NULL after a report. */
void *fb_apply_grow(struct fb_apply *apply, void *list, unsigned n, size_t size);
/* A copy of the text; NULL after a report. */
char *fb_apply_keep(struct fb_apply *apply, const char *text);
/* The word's text, relative to the configuration's directory unless it is absolute. */
const char *fb_apply_path(struct fb_apply *apply, const char *text);

/* A value's mistake: `invalid value "x" in "name" directive: TEXT`. Returns -1. */
int fb_bad_value(struct fb_apply *apply, const struct fb_conf_directive *directive, unsigned arg,
    const char *format, ...) FB_PRINTF(4, 5);
/* The same with the nearest of the names. */
int fb_bad_name(struct fb_apply *apply, const struct fb_conf_directive *directive, unsigned arg,
    const char *const *names, const char *expected);

/* Setters of one value; the field is an int64_t, or a const char *. */
#define FB_SETTER(name)                                                                            \
    int name(struct fb_apply *apply, const struct fb_setting *setting,                             \
        const struct fb_conf_directive *directive, void *field)
FB_SETTER(fb_set_flag);
FB_SETTER(fb_set_number);
FB_SETTER(fb_set_size);
FB_SETTER(fb_set_msec); /* "off" where the least value is 0 */
FB_SETTER(fb_set_string);
FB_SETTER(fb_set_path);
FB_SETTER(fb_set_nothing);
FB_SETTER(fb_set_error_log);
FB_SETTER(fb_set_error_log_rate_limit);
FB_SETTER(fb_set_include);
FB_SETTER(fb_set_env_substitution);
FB_SETTER(fb_set_load_module);
/* Setters of what only protocols have; the setting says what was declared. */
FB_SETTER(fb_set_name);
FB_SETTER(fb_set_target);
FB_SETTER(fb_set_custom);
/* Blocks */
FB_SETTER(fb_set_events);
FB_SETTER(fb_set_stream);
FB_SETTER(fb_set_server);
FB_SETTER(fb_set_listen);

/* The directives of the mechanisms as rows, whose initial values are set; NULL after a report. */
const struct fb_setting *fb_mechanism_table(struct fb_apply *apply);
/* Adds a protocol, or begins the list with those that are built in (NULL), and makes the directives
 * of all of them rows; -1 after a report. */
int protocol_add(struct fb_apply *apply, const fb_protocol *protocol);
/* The field of a protocol's directive in the frame's server or stream; NULL after a report. */
void *protocol_field(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive);
/* Checks the server's protocol and sets what was not written. */
void protocol_finish(struct fb_apply *apply, struct fb_frame *frame);
/* Declares the zone of the metrics of the server's protocol; NULL if it has none, or after a report. */
struct fb_zone *settings_protocol_metrics(struct fb_apply *apply, const fb_protocol *protocol);

/* The stream block, behind all else. */
void fb_stream_apply(struct fb_apply *apply);

/* The listeners that all `listen` directives ask for, and who serves them. */
void fb_ports_build(struct fb_apply *apply, struct fb_frame *stream);

/* What main and events leave to the end; only for a file without mistakes. */
void fb_core_finish_pid(struct fb_apply *apply);
void fb_core_finish_control(struct fb_apply *apply);
void fb_core_finish(struct fb_apply *apply);
void fb_error_log_finish(struct fb_apply *apply);
void fb_events_finish(struct fb_apply *apply);
/* Behind all of them: what is worked out. */
void fb_sizing_finish(struct fb_apply *apply);
/* What its protocols need (needs.h). */
void fb_needs_collect(struct fb_apply *apply);
