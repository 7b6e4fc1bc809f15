/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps, filters, sorts and prints rows. A column is a row of the table `columns`. */
#include "cli/session_rows.h"

#include "base/number.h"
#include "cli/reply_template.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum column_kind { COLUMN_TEXT, COLUMN_NUMBER, COLUMN_BYTES, COLUMN_TIME };

/* Members are those of worker/session_row.c. */
static const struct column {
    const char *name, *heading, *member;
    enum column_kind kind;
} columns[SESSION_COLUMNS] = {
    { "client", "CLIENT", "client", COLUMN_TEXT },
    { "listen", "LISTEN", "listen", COLUMN_TEXT },
    { "protocol", "PROTOCOL", "protocol", COLUMN_TEXT },
    { "upstream", "UPSTREAM", "upstream", COLUMN_TEXT },
    { "age", "AGE", "age_ms", COLUMN_TIME },
    { "idle", "IDLE", "idle_ms", COLUMN_TIME },
    { "received", "RECEIVED", "received", COLUMN_BYTES },
    { "sent", "SENT", "sent", COLUMN_BYTES },
    { "rate", "BYTES/S", "rate", COLUMN_BYTES },
    { "worker", "WORKER", "worker", COLUMN_NUMBER },
    { "session", "SESSION", "session", COLUMN_NUMBER },
    { "state", "STATE", "state", COLUMN_TEXT },
    { "waits_for", "WAITS FOR", "waits_for", COLUMN_TEXT },
};
#define COLUMN_NAMES                                                                               \
    "client, listen, protocol, upstream, age, idle, received, sent, rate, worker, session, state " \
    "or waits_for"
enum { CLIENT_COLUMN = 0, AGE_COLUMN = 4, RECEIVED_COLUMN = 6, SENT_COLUMN = 7 };

/* Returns the column with the name of n bytes, or -1. */
static int find_column(const char *name, size_t n)
{
    for (int i = 0; i < SESSION_COLUMNS; i++)
        if (strlen(columns[i].name) == n && strncmp(columns[i].name, name, n) == 0)
            return i;
    return -1;
}

/* Reads the number of a filter: bytes, a time or a plain number; false: it is none. */
static bool read_filter_number(const struct column *column, const char *text, int64_t *number)
{
    switch (column->kind) {
    case COLUMN_TIME:
        return number_parse_msec(text, 0, INT64_MAX / 2, number) == NUMBER_OK;
    case COLUMN_BYTES:
        return number_parse_size(text, 0, INT64_MAX / 2, number) == NUMBER_OK;
    default:
        return number_parse(text, 0, INT64_MAX / 2, number) == NUMBER_OK;
    }
}

static int check_filter(const char *filter, struct log *log)
{
    size_t n = strcspn(filter, "=");
    int column = filter[n] == '=' ? find_column(filter, n) : -1;
    int64_t number;

    if (column == -1)
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"sessions %s\", expected column=text with a column of " COLUMN_NAMES,
            filter);
    else if (columns[column].kind != COLUMN_TEXT &&
             !read_filter_number(&columns[column], filter + n + 1, &number))
        log_write(log, LEVEL_EMERG, 0, "invalid option: \"sessions %s\", expected %s", filter,
            columns[column].kind == COLUMN_TIME    ? "a time, as 30s"
            : columns[column].kind == COLUMN_BYTES ? "a number of bytes, as 64k"
                                                   : "a number");
    else
        return 0;
    return -1;
}

/* Finds a column of --sort or --by; `otherwise` without the option; -2 after an emerg line. */
static int option_column(const char *option, const char *name, int otherwise, struct log *log)
{
    int column = name != NULL ? find_column(name, strlen(name)) : otherwise;

    if (name == NULL || column != -1)
        return column;
    log_write(
        log, LEVEL_EMERG, 0, "invalid option: \"%s %s\", expected " COLUMN_NAMES, option, name);
    return -2;
}

int session_rows_init(struct session_rows *rows, const struct cmdline *cmdline, struct log *log)
{
    bool has_argument = cmdline->argument != NULL; /* the word before the others */

    *rows = (struct session_rows) { .filters = cmdline->more - has_argument,
        .filter_n = cmdline->more_n + has_argument };
    rows->by = option_column("--by", cmdline->by, -1, log);
    rows->sort = option_column("--sort", cmdline->sort, AGE_COLUMN, log);
    if (rows->by == -2 || rows->sort == -2)
        return -1;
    if (rows->by >= 0 && columns[rows->by].kind != COLUMN_TEXT) {
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"--by %s\", expected a column of texts, as client", cmdline->by);
        return -1;
    }
    for (unsigned i = 0; i < rows->filter_n; i++)
        if (check_filter(rows->filters[i], log) == -1)
            return -1;
    return 0;
}

static void free_row(struct session_row *row)
{
    for (int i = 0; i < SESSION_COLUMNS; i++)
        if (columns[i].kind == COLUMN_TEXT)
            free(row->values[i].text);
}

void session_rows_free(struct session_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        free_row(&rows->list[i]);
    free(rows->list);
    rows->list = NULL;
    rows->n = rows->size = 0;
}

/* Copies a string without anything that a terminal acts on, or "-"; NULL without memory. */
static char *copy_escaped(struct json_value value)
{
    char raw[256], escaped[sizeof(raw) * JSON_ESCAPED_MAX], piece[JSON_ESCAPED_MAX];
    const char *s = raw;
    size_t used = 0;

    if (!json_text(value, raw, sizeof(raw)))
        strcpy(raw, "-");
    while (*s != '\0') {
        size_t n = json_escape(&s, piece);

        memcpy(escaped + used, piece, n);
        used += n;
    }
    escaped[used] = '\0';
    return strdup(escaped);
}

/* Whether a number is at least the filter's, or a text begins with the filter's. */
static bool passes_filter(const struct session_row *row, const char *filter)
{
    size_t n = strcspn(filter, "=");
    int column = find_column(filter, n);
    const char *wanted = filter + n + 1;
    int64_t least = 0;

    assert(column != -1);
    if (columns[column].kind == COLUMN_TEXT)
        return strncmp(row->values[column].text, wanted, strlen(wanted)) == 0;
    read_filter_number(&columns[column], wanted, &least);
    return columns[column].kind == COLUMN_NUMBER ? row->values[column].number == least
                                                 : row->values[column].number >= least;
}

/* Reads a row; false without memory. */
static bool read_row(struct json_value line, struct session_row *row)
{
    bool whole = true;

    for (int i = 0; i < SESSION_COLUMNS; i++) {
        struct json_value value = json_member(line, columns[i].member);

        if (columns[i].kind != COLUMN_TEXT)
            row->values[i].number = json_integer(value, 0);
        else
            whole &= (row->values[i].text = copy_escaped(value)) != NULL;
    }
    return whole;
}

static bool make_row_room(struct session_rows *rows)
{
    size_t size = rows->size > 0 ? 2 * rows->size : 256;
    struct session_row *larger;

    if (rows->n < rows->size)
        return rows->n < SESSION_ROWS_MAX;
    larger = realloc(rows->list, size * sizeof(*larger));
    if (larger == NULL)
        return false;
    rows->list = larger;
    rows->size = size;
    return true;
}

void session_rows_add(struct session_rows *rows, struct json_value line)
{
    struct session_row row;
    bool wanted = read_row(line, &row);

    if (!wanted)
        rows->left_out++;
    for (unsigned i = 0; wanted && i < rows->filter_n; i++)
        wanted = passes_filter(&row, rows->filters[i]);
    if (wanted && make_row_room(rows)) {
        rows->list[rows->n++] = row;
        return;
    }
    rows->left_out += wanted;
    free_row(&row);
}

/* ---- Order ---- */

/* Compares by the rows' column: numbers the greatest first, texts as in a dictionary. */
static int compare_rows(const void *a, const void *b)
{
    const struct session_row *one = a, *other = b;
    int column = one->sort;

    if (columns[column].kind == COLUMN_TEXT)
        return strcmp(one->values[column].text, other->values[column].text);
    return (one->values[column].number < other->values[column].number) -
           (one->values[column].number > other->values[column].number);
}

static void sort_rows(struct session_row *list, size_t n, int column)
{
    for (size_t i = 0; i < n; i++)
        list[i].sort = column;
    if (n > 0)
        qsort(list, n, sizeof(*list), compare_rows);
}

/* ---- The table ---- */

static void format_value(const struct session_row *row, int column, char text[REPLY_TEXT_MAX])
{
    if (columns[column].kind == COLUMN_TEXT)
        snprintf(text, REPLY_TEXT_MAX, "%s", row->values[column].text);
    else if (columns[column].kind == COLUMN_TIME)
        reply_format_age(row->values[column].number, text);
    else
        snprintf(text, REPLY_TEXT_MAX, "%" PRId64, row->values[column].number);
}

static void print_cell(int column, int width, const char *text, FILE *out)
{
    if (column == SESSION_COLUMNS - 1)
        fprintf(out, "%s\n", text);
    else
        fprintf(out, "%*s  ", columns[column].kind == COLUMN_TEXT ? -width : width, text);
}

static void print_table(const struct session_rows *rows, FILE *out)
{
    int widths[SESSION_COLUMNS];
    char text[REPLY_TEXT_MAX];

    for (int i = 0; i < SESSION_COLUMNS; i++) {
        widths[i] = (int)strlen(columns[i].heading);
        for (size_t k = 0; k < rows->n; k++) {
            format_value(&rows->list[k], i, text);
            if ((int)strlen(text) > widths[i])
                widths[i] = (int)strlen(text);
        }
        print_cell(i, widths[i], columns[i].heading, out);
    }
    for (size_t k = 0; k < rows->n; k++)
        for (int i = 0; i < SESSION_COLUMNS; i++) {
            format_value(&rows->list[k], i, text);
            print_cell(i, widths[i], text, out);
        }
}

static void print_json_line(struct json *json, FILE *out)
{
    size_t n;
    char *line;

    json_close(json);
    line = json_end(json, &n);
    if (line != NULL)
        fwrite(line, 1, n, out);
    free(line);
}

static void json_value_of(struct json *json, const struct session_row *row, int column)
{
    if (columns[column].kind == COLUMN_TEXT)
        json_string(json, columns[column].member, row->values[column].text);
    else
        json_number(json, columns[column].member, row->values[column].number);
}

static void print_json_rows(const struct session_rows *rows, FILE *out)
{
    struct json json;

    for (size_t k = 0; k < rows->n; k++) {
        json_begin(&json);
        json_object(&json, NULL);
        for (int i = 0; i < SESSION_COLUMNS; i++)
            json_value_of(&json, &rows->list[k], i);
        print_json_line(&json, out);
    }
}

/* ---- Groups ---- */

/* Adds up neighbours with one value of --by, in the first row of each group. */
static size_t add_up_rows(struct session_rows *rows)
{
    enum { N = AGE_COLUMN }; /* the number of sessions, in the place of an age */
    size_t groups = 0;

    for (size_t k = 0; k < rows->n; k++) {
        struct session_row *row = &rows->list[k], *group = &rows->list[groups];

        if (groups > 0 && compare_rows(&rows->list[groups - 1], row) == 0) {
            group = &rows->list[groups - 1];
            group->values[N].number++;
            group->values[RECEIVED_COLUMN].number += row->values[RECEIVED_COLUMN].number;
            group->values[SENT_COLUMN].number += row->values[SENT_COLUMN].number;
            continue;
        }
        if (group != row) { /* what is behind the groups is freed with the rest */
            struct session_row kept = *group;

            *group = *row;
            *row = kept;
        }
        group->values[N].number = 1;
        groups++;
    }
    return groups;
}

/* Cuts ports off: a client is an address. */
static void cut_ports(struct session_rows *rows)
{
    for (size_t k = 0; k < rows->n; k++) {
        char *text = rows->list[k].values[CLIENT_COLUMN].text, *colon = strrchr(text, ':');

        if (colon != NULL && colon[1] != '\0' &&
            strspn(colon + 1, "0123456789") == strlen(colon + 1))
            *colon = '\0';
    }
}

static void print_groups(struct session_rows *rows, bool as_json, FILE *out)
{
    size_t groups;
    struct json json;
    char text[REPLY_TEXT_MAX];

    if (rows->by == CLIENT_COLUMN)
        cut_ports(rows);
    sort_rows(rows->list, rows->n, rows->by);
    groups = add_up_rows(rows);
    sort_rows(rows->list, groups, AGE_COLUMN);
    if (!as_json)
        fprintf(out, "%9s  %15s  %15s  %s\n", "SESSIONS", "RECEIVED", "SENT",
            columns[rows->by].heading);
    for (size_t k = 0; k < groups; k++) {
        const struct session_row *row = &rows->list[k];

        if (as_json) {
            json_begin(&json);
            json_object(&json, NULL);
            json_value_of(&json, row, rows->by);
            json_number(&json, "sessions", row->values[AGE_COLUMN].number);
            json_value_of(&json, row, RECEIVED_COLUMN);
            json_value_of(&json, row, SENT_COLUMN);
            print_json_line(&json, out);
            continue;
        }
        format_value(row, rows->by, text);
        fprintf(out, "%9" PRId64 "  %15" PRId64 "  %15" PRId64 "  %s\n",
            row->values[AGE_COLUMN].number, row->values[RECEIVED_COLUMN].number,
            row->values[SENT_COLUMN].number, text);
    }
}

void session_rows_print(struct session_rows *rows, bool as_json, FILE *out)
{
    if (rows->by != -1) {
        print_groups(rows, as_json, out);
        return;
    }
    sort_rows(rows->list, rows->n, rows->sort);
    if (as_json)
        print_json_rows(rows, out);
    else
        print_table(rows, out);
}
