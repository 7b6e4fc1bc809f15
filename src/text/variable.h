/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables: facts of a session, as text. The configuration names variables; a session works a
 * value out at the first use, once, and keeps the value until its end. Never evaluates a variable
 * not named by a directive. Invariant: a used variable has an index from 1 to `used_n`, the place
 * in the values of every session. */
#pragma once

#include "base/arena.h"
#include "base/compiler.h"
#include "text/value.h"

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stdint.h>

struct address;
struct conf_word;
struct fb_conn;
struct server;
struct template;

#define VARIABLE_VOLATILE 1u   /* worked out at each use */
#define VARIABLE_CHANGEABLE 2u /* a directive may define it once more */
#define VARIABLE_COUNTED 4u    /* a use makes workers number clients consecutively */
/* Limit of nested computations of variables, as in nginx, because of the stack. */
#define VARIABLE_DEPTH_MAX 100

/* Writes at most VARIABLE_TEXT_MAX bytes of printable ASCII, without quotes and backslashes, at
 * `p`, and returns the end. */
#define VARIABLE_TEXT_MAX 64
typedef char *variable_text(struct fb_conn *conn, char *p);
struct variable {
    RB_ENTRY(variable) node;
    const char *name;
    /* Works out the value, missing before, for a client: 0, or -1 without memory. VALUE_UNKNOWN:
     * there is none yet, ask again later. NULL: an undefined variable. */
    int (*get)(struct fb_conn *conn, const struct variable *variable, struct value *value);
    variable_text *text;       /* NULL: it has no shorter way than `get` */
    const struct template *of; /* the only text behind the value; NULL: other inputs */
    const void *arg;           /* the definer's, as is the next */
    uint64_t number;
    unsigned flags;                  /* VARIABLE_... */
    unsigned index;                  /* place in a session's values, from 1; 0: not used */
    const struct conf_word *used_at; /* place of the first use; NULL: not known */
};

/* The variables of one configuration. */
struct variables {
    RB_HEAD(variable_tree, variable) all;
    const struct variable_row *const *tables; /* variables without a definition; ends with NULL */
    unsigned used_n;
    bool uses_proxy;  /* sessions keep their PROXY headers (features/proxy_protocol/) */
    bool uses_number; /* a variable that is VARIABLE_COUNTED is used */
    char *hostname;   /* for $hostname; in the configuration's memory */
};

/* A row of the built-in variables. A name that ends with "*" stands for all with the prefix. */
struct variable_row {
    const char *name;
    int (*get)(struct fb_conn *conn, const struct variable *variable, struct value *value);
    unsigned flags;
    variable_text *text; /* the variable's, as is the number */
    uint64_t number;
};

/* variables_builtin.c: facts of every session; ends with a row without a name. */
extern const struct variable_row variables_builtin[];
/* Finds the variable, in letters of either case, or adds it with the row's getter, if any. NULL
 * without memory. */
struct variable *variables_add(
    struct variables *variables, struct arena *arena, const char *name, size_t n);
/* Gives the variable a place in the values of sessions; `where` is remembered at the first use. */
void variables_use(
    struct variables *variables, struct variable *variable, const struct conf_word *where);
/* Returns the next variable by name, or the first where `variable` is NULL; NULL: no more. */
struct variable *variables_next(struct variables *variables, struct variable *variable);
/* Returns the value in the connection's session. Missing without memory, and then the client is
 * failed: no client passes a limit without a key. Missing, and logged, beyond
 * VARIABLE_DEPTH_MAX. */
const struct value *variable_value(struct fb_conn *conn, const struct variable *variable);
/* Sets the value of a used variable, with bytes of the session's lifetime; -1 without memory. */
int variable_set(struct fb_conn *conn, const struct variable *variable, struct value value);
/* The value of a protocol's variable, found while the protocol has the client. `arg` is the
 * protocol, and `number` the place in the protocol's table. */
int variables_protocol_get(
    struct fb_conn *conn, const struct variable *variable, struct value *value);
/* Whether the variable belongs to the server's protocol. */
bool variables_protocol_has(const struct server *server, const struct variable *variable);
/* Sets the value to a text of the session's memory: 0, or -1 without memory. */
int value_printf(struct fb_conn *conn, struct value *value, const char *format, ...)
    PRINTF_FORMAT(3, 4);
/* Sets it to a copy. */
int value_copy(struct fb_conn *conn, struct value *value, const char *p, size_t n);
/* Sets the value to the text of an address, without the port. */
int value_address(struct fb_conn *conn, struct value *value, const struct address *address);
/* Sets the value to the port, or to an empty text for port 0 and a unix socket. */
int value_port(struct fb_conn *conn, struct value *value, const struct address *address);
