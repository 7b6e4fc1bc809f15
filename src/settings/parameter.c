/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the row of a parameter, sets the field, and reports mistakes. */
#include "settings/parameter.h"

#include "settings/set_value.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

const char *parameter_value(const char *text, const char *name)
{
    size_t n = strlen(name);

    return strncmp(text, name, n) == 0 && text[n] == '=' ? text + n + 1 : NULL;
}

const struct parameter *parameter_find(const struct parameter *rows, const char *text)
{
    for (; rows->name != NULL; rows++)
        if (rows->kind == PARAMETER_FLAG ? strcmp(text, rows->name) == 0
                                         : strncmp(text, rows->name, strlen(rows->name)) == 0)
            return rows;
    return NULL;
}

static enum number_status read_bool(const char *value, bool *field)
{
    *field = strcmp(value, "on") == 0;
    return *field || strcmp(value, "off") == 0 ? NUMBER_OK : NUMBER_MALFORMED;
}

enum number_status parameter_read(const struct parameter *row, const char *text, void *values)
{
    const char *value = text + strlen(row->name);
    void *field = (char *)values + row->offset;
    enum number_status status;
    int64_t number = 0;

    switch (row->kind) {
    case PARAMETER_FLAG:
        *(bool *)field = true;
        return NUMBER_OK;
    case PARAMETER_SWITCH:
        return read_bool(value, field);
    case PARAMETER_TEXT:
        *(const char **)field = value;
        return *value != '\0' ? NUMBER_OK : NUMBER_MALFORMED;
    case PARAMETER_SIZE:
        return number_parse_size(value, row->least, row->most, field);
    case PARAMETER_MSEC:
        return number_parse_msec(value, row->least, row->most, field);
    case PARAMETER_NUMBER:
        return number_parse(value, row->least, row->most, field);
    case PARAMETER_BYTES:
        status = number_parse_size(value, row->least, row->most, &number);
        break;
    default:
        status = number_parse(value, row->least, row->most, &number);
    }
    if (row->kind == PARAMETER_PORT)
        *(in_port_t *)field = (in_port_t)number;
    else
        *(uint32_t *)field = (uint32_t)number;
    return status;
}

/* Reports a mistake in the value of a row without a text for it. */
static int report_value(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const struct parameter *row)
{
    static const char *const expected[] = {
        [PARAMETER_SWITCH] = "\"on\" or \"off\"",
        [PARAMETER_SIZE] = "a size such as 16k or 1m",
        [PARAMETER_BYTES] = "a size such as 16k or 1m",
        [PARAMETER_MSEC] = "a time such as 30s",
        [PARAMETER_TEXT] = "a name",
    };

    if (expected[row->kind] != NULL)
        return set_bad_value(
            apply, directive, arg, "expected %s after \"%s\"", expected[row->kind], row->name);
    return set_bad_value(apply, directive, arg,
        "expected a number from %" PRId64 " to %" PRId64 " after \"%s\"", row->least, row->most,
        row->name);
}

int parameter_set(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const struct parameter *rows, const char *expected, void *values)
{
    const char *text = directive->args[arg].text;
    const struct parameter *row = parameter_find(rows, text);

    if (row != NULL && parameter_read(row, text, values) == NUMBER_OK)
        return 0;
    if (row != NULL && row->expected == NULL)
        return report_value(apply, directive, arg, row);
    return set_bad_value(
        apply, directive, arg, "expected %s", row != NULL ? row->expected : expected);
}
