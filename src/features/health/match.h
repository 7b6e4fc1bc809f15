/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of a server's reply: pure functions of the received bytes. */
#pragma once

#include "settings/setting.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>

struct fb_conn;
struct regex;

/* Bytes, which may contain a NUL. */
struct match_bytes {
    const char *p; /* NULL: the block has none */
    size_t n;
};

struct match {
    STAILQ_ENTRY(match) link;
    const char *name;
    struct match_bytes send;
    struct match_bytes expect; /* begins the answer */
    const struct regex *regex; /* found in the answer; NULL: none */
};

STAILQ_HEAD(match_list, match);

enum match_result {
    MATCH_FOUND,
    MATCH_MORE, /* bytes that follow may decide */
    MATCH_NEVER,
};

/* Whether the server has to answer at all. */
bool match_expects(const struct match *match);
/* Compares all that has been received, for the connection, whose log a failed expression uses. */
enum match_result match_test(
    const struct match *match, struct fb_conn *conn, const char *p, size_t n);

int match_set(struct apply *apply, const struct conf_directive *directive, void *field);
/* Returns the block of the name, from any place; NULL: none so far. */
const struct match *match_find(const struct match_list *list, const char *name);
