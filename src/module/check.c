/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks a protocol's descriptor and copies it. Structs of any version contain their size, and
 * fields are only appended: nothing beyond the size is read, and no pointer used unchecked. A wrong
 * descriptor is a message, never an assertion. */
#include "module/module.h"

#include "base/compiler.h"
#include "shm/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The smallest structs of ABI 1: up to the last field of its first version. */
#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))
#define PROTOCOL_LEAST END_OF(fb_protocol, worker_stop)
#define DIRECTIVE_LEAST END_OF(fb_directive, args_most)
#define OPS_LEAST END_OF(fb_ops, closed)
#define VARIABLE_LEAST END_OF(fb_variable_definition, value)
/* The smallest table of a worker's callbacks, of which API 4 has the first. */
#define WORKER_OPS_LEAST END_OF(fb_worker_ops, timer)
/* Limits of a sound descriptor: greater values are garbage. */
#define SIZE_MOST 65536
/* Bytes of a connection's state. Each worker reserves the states of all its connections. */
#define CONN_STATE_MOST (16 * 1024 * 1024)
#define DIRECTIVES_MOST 1000
#define VARIABLES_MOST 1000

#define PATH_FLAGS (FB_DIRECTIVE_READS | FB_DIRECTIVE_WRITES)

#define NAME_MOST 31 /* the name of a map's zone is a protocol's and the map's */

/* The binary contract with modules. */
#if UINTPTR_MAX == UINT64_MAX
static_assert(PROTOCOL_LEAST == 96 && DIRECTIVE_LEAST == 72 && OPS_LEAST == 80,
    "ABI 1 begins with the first fields, whatever is appended");
static_assert(offsetof(fb_ops, closed) == 72 && sizeof(fb_ops) == 96 &&
                  offsetof(fb_directive, initial) == 40 && offsetof(fb_directive, set) == 56 &&
                  sizeof(fb_directive) == 72,
    "layout of ABI 1");
static_assert(offsetof(fb_protocol, name) == 16 && offsetof(fb_protocol, ops) == 64 &&
                  offsetof(fb_protocol, needs) == 96 && offsetof(fb_protocol, worker_ops) == 120 &&
                  offsetof(fb_protocol, conf_accepted) == 144 &&
                  offsetof(fb_protocol, variables) == 160 && sizeof(fb_protocol) == 176,
    "layout of ABI 1");
static_assert(offsetof(fb_file_read, error) == 24 && sizeof(fb_file_read) == 32 &&
                  sizeof(fb_metric) == 16 && sizeof(fb_item) == 40 &&
                  sizeof(fb_frame_limit) == 16 && sizeof(fb_frame_layout) == 32 &&
                  sizeof(fb_bytes) == 16 && offsetof(fb_map_options, memory) == 32 &&
                  offsetof(fb_pipe_options, timeout) == 8,
    "layout of ABI 1");
static_assert(offsetof(fb_connect_options, key) == 48 &&
                  offsetof(fb_connect_options, flags) == 88 && sizeof(fb_connect_options) == 136 &&
                  offsetof(fb_pipe_options, buffer) == 40 && sizeof(fb_pipe_options) == 56,
    "layout of API 4");
static_assert(sizeof(fb_variable_definition) == 24 && offsetof(fb_stream, pass) == 56 &&
                  offsetof(fb_stream, tlvs) == 64 && offsetof(fb_upstreams, end) == 32 &&
                  sizeof(fb_try) == 32 && offsetof(fb_upstreams, probed) == 56 &&
                  sizeof(fb_probe) == 48 && sizeof(fb_health_options) == 32,
    "layout of API 4");
static_assert(offsetof(fb_ops, tls_started) == 88 && sizeof(fb_tls_options) == 32 &&
                  offsetof(fb_tls, verify_text) == 40 && sizeof(fb_tls) == 136,
    "layout of API 4");
static_assert(sizeof(fb_map_cursor) == 16 && sizeof(fb_name_record) == 40 &&
                  sizeof(fb_names) == 56 && sizeof(fb_resolve_options) == 40,
    "layout of API 4");
#endif

const char *module_text(char text[MODULE_TEXT], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(text, MODULE_TEXT, format, args);
    va_end(args);
    return text;
}

bool module_is_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    return n > 0 && n <= NAME_MOST && s[n] == '\0';
}

/* Copies a struct of any version: missing fields become zero, unknown fields are left out. */
static void copy_struct(void *own, size_t own_size, const void *other, size_t size)
{
    assert(other != NULL && size <= SIZE_MOST);
    memset(own, 0, own_size);
    memcpy(own, other, size < own_size ? size : own_size);
}

static fb_variable_definition variable_at(const fb_protocol *protocol, uint32_t i)
{
    const char *table = (const char *)protocol->variables;
    fb_variable_definition variable;

    assert(i < protocol->variable_n && protocol->variable_size >= VARIABLE_LEAST);
    copy_struct(&variable, sizeof(variable), table + (size_t)i * protocol->variable_size,
        protocol->variable_size);
    return variable;
}

static fb_directive directive_at(const fb_protocol *protocol, uint32_t i)
{
    const char *table = (const char *)protocol->directives;
    fb_directive directive;

    assert(i < protocol->directive_n && protocol->directive_size >= DIRECTIVE_LEAST);
    copy_struct(&directive, sizeof(directive), table + (size_t)i * protocol->directive_size,
        protocol->directive_size);
    return directive;
}

/* Checks the size field of a struct; `begin` is the right initializer. */
static const char *check_struct_size(
    const char *what, const char *begin, size_t size, size_t least, char *text)
{
    if (size >= least && size <= SIZE_MOST)
        return NULL;
    return module_text(
        text, "gives %s an impossible size, %zu bytes: begin with %s", what, size, begin);
}

static const char *check_sizes(const fb_protocol *protocol, char *text)
{
    const char *wrong;

    if (protocol->abi != FB_ABI)
        return module_text(text,
            "was built for ABI %" PRIu32
            ", this forkbeard has ABI %u: build it again with this version's headers",
            protocol->abi, FB_ABI);
    wrong = check_struct_size(
        "fb_protocol", "FB_PROTOCOL_HEADER", protocol->size, PROTOCOL_LEAST, text);
    if (wrong == NULL)
        wrong = check_struct_size(
            "fb_directive", "FB_PROTOCOL_HEADER", protocol->directive_size, DIRECTIVE_LEAST, text);
    if (wrong != NULL)
        return wrong;
    if (protocol->conn_state > CONN_STATE_MOST)
        return module_text(text,
            "wants %" PRIu32 " bytes of conn_state for a connection, and %d are the most: take "
            "large buffers from fb_alloc()",
            protocol->conn_state, CONN_STATE_MOST);
    return NULL;
}

static const char *check_ops(const fb_protocol *protocol, char *text)
{
    const char *wrong;
    fb_ops ops;

    if (protocol->ops == NULL)
        return module_text(text, "has no callbacks: \"ops\" is NULL");
    wrong =
        check_struct_size("fb_ops", ".size = sizeof(fb_ops)", protocol->ops->size, OPS_LEAST, text);
    if (wrong != NULL)
        return wrong;
    copy_struct(&ops, sizeof(ops), protocol->ops, protocol->ops->size);
    if (ops.opened == NULL && ops.data == NULL && ops.eof == NULL && ops.writable == NULL &&
        ops.timer == NULL && ops.draining == NULL && ops.message == NULL && ops.answered == NULL &&
        ops.closed == NULL)
        return module_text(text, "has no callbacks: set at least one callback in fb_ops");
    return NULL;
}

static const char *check_worker_ops(const fb_protocol *protocol, char *text)
{
    if (protocol->worker_ops == NULL)
        return NULL;
    return check_struct_size("fb_worker_ops", ".size = sizeof(fb_worker_ops)",
        protocol->worker_ops->size, WORKER_OPS_LEAST, text);
}

static const char *check_protocol_name(const fb_protocol *protocol, char *text)
{
    if (protocol->name == NULL)
        return module_text(text, "has no protocol name: set \"name\"");
    if (!module_is_name(protocol->name))
        return module_text(text,
            "has the protocol name \"%.64s\": use 1 to %d letters, digits and \"_\"",
            protocol->name, NAME_MOST);
    return NULL;
}

/* Checks that the value lies within conf_state, aligned. */
static const char *check_directive_place(
    const fb_protocol *protocol, const fb_directive *directive, char *text)
{
    uint64_t width = sizeof(int64_t);

    static_assert(sizeof(int64_t) >= sizeof(void *), "a pointer takes no more room than a number");
    if (directive->value == FB_VALUE_NONE)
        return NULL;
    if (directive->value == FB_VALUE_CUSTOM)
        width = directive->room;
    if (directive->offset + width > protocol->conf_state)
        return module_text(text,
            "has the value of \"%s\" outside of conf_state: %" PRIu64 " bytes at %" PRIu32
            " of %" PRIu32,
            directive->name, width, directive->offset, protocol->conf_state);
    if (directive->value != FB_VALUE_CUSTOM && directive->offset % sizeof(int64_t) != 0)
        return module_text(text, "has the value of \"%s\" at an odd place: offset %" PRIu32,
            directive->name, directive->offset);
    return NULL;
}

static const char *check_directive_value(const fb_directive *directive, char *text)
{
    const char *name = directive->name;

    switch (directive->value) {
    case FB_VALUE_NUMBER:
    case FB_VALUE_SIZE:
    case FB_VALUE_MSEC:
        if (directive->least > directive->greatest)
            return module_text(text,
                "has a directive \"%s\" without a possible value: the least, %" PRId64
                ", is above the greatest, %" PRId64,
                name, directive->least, directive->greatest);
        return NULL;
    case FB_VALUE_NAME:
        if (directive->names == NULL || directive->names[0] == NULL)
            return module_text(
                text, "has a directive \"%s\" of names without any: set \"names\"", name);
        return NULL;
    case FB_VALUE_CUSTOM:
        if (directive->set == NULL)
            return module_text(
                text, "has a directive \"%s\" of FB_VALUE_CUSTOM without \"set\"", name);
        if (directive->args_least > directive->args_most)
            return module_text(text,
                "has a directive \"%s\" with at least %" PRIu32 " and at most %" PRIu32
                " arguments",
                name, directive->args_least, directive->args_most);
        return NULL;
    default:
        return NULL;
    }
}

static const char *check_directive(const fb_protocol *protocol, uint32_t i, char *text)
{
    const fb_directive directive = directive_at(protocol, i);
    const char *wrong;

    if (directive.name == NULL)
        return module_text(text, "has a directive without a name, number %" PRIu32, i);
    if (!module_is_name(directive.name))
        return module_text(text, "has a directive \"%.64s\": use 1 to %d letters, digits and \"_\"",
            directive.name, NAME_MOST);
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(directive_at(protocol, j).name, directive.name) == 0)
            return module_text(text, "has the directive \"%s\" twice", directive.name);
    if (directive.value > FB_VALUE_TLS ||
        (directive.flags & ~(FB_DIRECTIVE_HANDLER | FB_DIRECTIVE_REPLACED | PATH_FLAGS)) != 0)
        return module_text(text,
            "has a directive \"%s\" of a kind that is not known (value %" PRIu32 ", flags %#" PRIx32
            "): is it built for a newer forkbeard?",
            directive.name, directive.value, directive.flags);
    if ((directive.flags & PATH_FLAGS) != 0 && directive.value != FB_VALUE_STRING)
        return module_text(text,
            "has a directive \"%s\" with a path that is not its value: FB_DIRECTIVE_READS and "
            "FB_DIRECTIVE_WRITES are for FB_VALUE_STRING",
            directive.name);
    if ((directive.flags & PATH_FLAGS) == 0 && (directive.flags & FB_DIRECTIVE_REPLACED) != 0)
        return module_text(text,
            "has a directive \"%s\" with FB_DIRECTIVE_REPLACED, and neither FB_DIRECTIVE_READS nor "
            "FB_DIRECTIVE_WRITES",
            directive.name);
    wrong = check_directive_value(&directive, text);
    return wrong != NULL ? wrong : check_directive_place(protocol, &directive, text);
}

static const char *check_directives(const fb_protocol *protocol, char *text)
{
    const char *handler = NULL, *wrong;

    if (protocol->directive_n > DIRECTIVES_MOST ||
        (protocol->directive_n > 0 && protocol->directives == NULL))
        return module_text(text,
            "has an impossible number of directives, %" PRIu32 ": use FB_PROTOCOL_DIRECTIVES()",
            protocol->directive_n);
    for (uint32_t i = 0; i < protocol->directive_n; i++) {
        const fb_directive directive = directive_at(protocol, i);

        wrong = check_directive(protocol, i, text);
        if (wrong != NULL)
            return wrong;
        if (!(directive.flags & FB_DIRECTIVE_HANDLER))
            continue;
        if (handler != NULL)
            return module_text(text,
                "has more than one handler directive, \"%s\" and \"%s\": FB_DIRECTIVE_HANDLER "
                "is for the directive that gives the protocol a server",
                handler, directive.name);
        handler = directive.name;
    }
    if (handler == NULL)
        return module_text(text, "has no handler directive: FB_DIRECTIVE_HANDLER is for the "
                                 "directive that gives the protocol a server");
    return NULL;
}

static const char *check_metrics(const fb_protocol *protocol, char *text)
{
    if (protocol->metric_n > SHM_METRICS_MAX ||
        (protocol->metric_n > 0 && protocol->metrics == NULL))
        return module_text(text,
            "has an impossible number of metrics, %" PRIu32 ": use FB_PROTOCOL_METRICS()",
            protocol->metric_n);
    for (uint32_t i = 0; i < protocol->metric_n; i++) {
        const fb_metric *metric = &protocol->metrics[i];

        if (metric->name == NULL || !module_is_name(metric->name))
            return module_text(text,
                "has a metric without a proper name, number %" PRIu32
                ": use 1 to %d letters, digits and \"_\"",
                i, NAME_MOST);
        if (metric->kind > FB_GAUGE)
            return module_text(text,
                "has a metric \"%s\" of a kind that is not known (%" PRIu32
                "): is it built for a newer forkbeard?",
                metric->name, metric->kind);
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(protocol->metrics[j].name, metric->name) == 0)
                return module_text(text, "has the metric \"%s\" twice", metric->name);
    }
    return NULL;
}

static const char *check_variable(const fb_protocol *protocol, uint32_t i, char *text)
{
    const fb_variable_definition variable = variable_at(protocol, i);
    size_t n = strlen(protocol->name);

    if (variable.name == NULL)
        return module_text(text, "has a variable without a name, number %" PRIu32, i);
    if (strncmp(variable.name, protocol->name, n) != 0 || variable.name[n] != '_' ||
        !module_is_name(variable.name + n + 1))
        return module_text(text,
            "has a variable \"%.80s\": the name is \"%s_\", and 1 to %d letters, digits and \"_\"",
            variable.name, protocol->name, NAME_MOST);
    if ((variable.flags & ~FB_VARIABLE_VOLATILE) != 0)
        return module_text(text,
            "has a variable \"%s\" with unknown flags (%#" PRIx32
            "): is it built for a newer forkbeard?",
            variable.name, variable.flags);
    if (variable.value == NULL && variable.flags != 0)
        return module_text(text,
            "has a variable \"%s\" without \"value\": FB_VARIABLE_VOLATILE needs a \"value\"",
            variable.name);
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(variable_at(protocol, j).name, variable.name) == 0)
            return module_text(text, "has the variable \"%s\" twice", variable.name);
    return NULL;
}

static const char *check_variables(const fb_protocol *protocol, char *text)
{
    const char *wrong = NULL;

    if (protocol->variable_n == 0)
        return NULL;
    if (protocol->variable_n > VARIABLES_MOST || protocol->variables == NULL ||
        protocol->variable_size < VARIABLE_LEAST || protocol->variable_size > SIZE_MOST)
        return module_text(text,
            "has an impossible table, %" PRIu32 " variables of %" PRIu32
            " bytes: use FB_PROTOCOL_VARIABLES()",
            protocol->variable_n, protocol->variable_size);
    for (uint32_t i = 0; i < protocol->variable_n && wrong == NULL; i++)
        wrong = check_variable(protocol, i, text);
    return wrong;
}

static const char *check_needs(const fb_protocol *protocol, char *text)
{
    if ((protocol->flags & ~(uint64_t)(FB_TAKES_FOREIGN | FB_KEEPS_TLS)) != 0)
        return module_text(text,
            "has unknown flags (flags %#" PRIx64 "): is it built for a newer forkbeard?",
            protocol->flags);
    if ((protocol->needs & ~(uint64_t)MODULE_NEEDS) != 0)
        return module_text(text,
            "has unknown needs (needs %#" PRIx64 "): is it built for a newer forkbeard?",
            protocol->needs);
    return NULL;
}

const char *module_check(const fb_protocol *protocol, char text[MODULE_TEXT])
{
    static const char *(*const checks[])(
        const fb_protocol *protocol, char *text) = { check_protocol_name, check_ops,
        check_worker_ops, check_directives, check_metrics, check_variables, check_needs };
    const char *wrong = check_sizes(protocol, text);
    fb_protocol own; /* with the fields that the protocol's version lacked */

    if (wrong == NULL)
        copy_struct(&own, sizeof(own), protocol, protocol->size);
    for (size_t i = 0; i < countof(checks) && wrong == NULL; i++)
        wrong = checks[i](&own, text);
    assert(wrong == NULL || wrong == text);
    return wrong;
}

/* Copies the table, whose rows may have a different size; NULL without memory. */
static const fb_variable_definition *copy_variables(struct arena *arena, const fb_protocol *copy)
{
    fb_variable_definition *variables =
        arena_alloc(arena, (copy->variable_n + 1) * sizeof(*variables));

    for (uint32_t i = 0; variables != NULL && i < copy->variable_n; i++)
        variables[i] = variable_at(copy, i);
    return variables;
}

const fb_protocol *module_copy(struct arena *arena, const fb_protocol *protocol)
{
    uint32_t n = protocol->directive_n;
    fb_protocol *copy = arena_alloc(arena, sizeof(*copy));
    fb_directive *directives = arena_alloc(arena, (n + 1) * sizeof(*directives));
    fb_ops *ops = arena_alloc(arena, sizeof(*ops));
    fb_worker_ops *worker_ops = arena_alloc(arena, sizeof(*worker_ops));

    assert(protocol->abi == FB_ABI && protocol->size >= PROTOCOL_LEAST);
    assert(protocol->ops != NULL && protocol->ops->size >= OPS_LEAST);
    if (copy == NULL || directives == NULL || ops == NULL || worker_ops == NULL)
        return NULL;
    copy_struct(copy, sizeof(*copy), protocol, protocol->size);
    copy_struct(ops, sizeof(*ops), protocol->ops, protocol->ops->size);
    copy->variables = copy_variables(arena, copy);
    if (copy->variables == NULL)
        return NULL;
    copy->variable_size = sizeof(*copy->variables);
    for (uint32_t i = 0; i < n; i++)
        directives[i] = directive_at(protocol, i);
    if (protocol->size <= offsetof(fb_protocol, output_limit)) /* knows no limit, and has none */
        copy->output_limit = UINT64_MAX;
    copy->size = sizeof(*copy);
    copy->directive_size = sizeof(*directives);
    copy->directives = directives;
    ops->size = sizeof(*ops);
    copy->ops = ops;
    if (copy->worker_ops != NULL) {
        copy_struct(worker_ops, sizeof(*worker_ops), copy->worker_ops, copy->worker_ops->size);
        worker_ops->size = sizeof(*worker_ops);
        copy->worker_ops = worker_ops;
    }
    return copy;
}
