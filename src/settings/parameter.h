/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of directives, as rows of a table: "NAME" alone, or "NAME=value". Private to settings/
 * and features/. */
#pragma once

#include "base/number.h"
#include "settings/setting.h"

enum parameter_kind {
    PARAMETER_FLAG,   /* a bool, by the name alone */
    PARAMETER_SWITCH, /* a bool, by "on" or "off" */
    PARAMETER_COUNT,  /* uint32_t or int, as the next */
    PARAMETER_BYTES,  /* a size */
    PARAMETER_PORT,   /* in_port_t */
    PARAMETER_NUMBER, /* int64_t, as the next two */
    PARAMETER_SIZE,
    PARAMETER_MSEC,
    PARAMETER_TEXT, /* const char *, not empty */
};

/* Tables end with a row without a name. */
struct parameter {
    const char *name; /* ends with "=" where a value follows */
    enum parameter_kind kind;
    size_t offset;        /* of the field */
    int64_t least, most;  /* values */
    const char *expected; /* end of a report of a mistake, after "expected "; NULL: by the kind */
};

/* Returns the value of the parameter "NAME=value"; NULL for a different parameter. */
const char *parameter_value(const char *text, const char *name);
/* Returns the row of the parameter, or NULL. */
const struct parameter *parameter_find(const struct parameter *rows, const char *text);
/* Sets the field of the row's parameter. */
enum number_status parameter_read(const struct parameter *row, const char *text, void *values);
/* Sets the parameter of the argument: 0, or -1 after a report, with `expected` of an unknown
 * parameter. */
int parameter_set(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const struct parameter *rows, const char *expected, void *values);
