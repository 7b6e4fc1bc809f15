/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies to the command "certificates" with the report of a keeper. The keeper names files by
 * index, and its text is input: each row is read, checked and written anew, with the paths of the
 * configuration in force. */
#include "control/certificates.h"

#include <assert.h>

/* Copies a text of the row, if there is one. */
static void copy_row_text(struct json *json, struct json_value row, const char *name)
{
    char text[TLS_REPORT_TEXT];

    if (json_text(json_member(row, name), text, sizeof(text)))
        json_string(json, name, text);
    else
        json_null(json, name);
}

/* Copies a time of the row, if there is one. */
static void copy_row_time(struct json *json, struct json_value row, const char *name)
{
    int64_t seconds = json_integer(json_member(row, name), 0);

    if (seconds > 0)
        json_number(json, name, seconds);
    else
        json_null(json, name);
}

/* Returns the path of the file whose index the row has; NULL: there is no such file. */
static const char *row_path(
    const struct tls_profiles *profiles, struct json_value row, const char *name)
{
    int64_t index = json_integer(json_member(row, name), -1);

    return index >= 0 && index < profiles->file_n ? profiles->files[index].path : NULL;
}

static void write_certificate(
    const struct tls_profiles *profiles, struct json_value row, struct json *json)
{
    json_object(json, NULL);
    json_string(json, "certificate", row_path(profiles, row, "certificate"));
    json_string(json, "key", row_path(profiles, row, "key"));
    copy_row_text(json, row, "names");
    copy_row_time(json, row, "not_after");
    copy_row_time(json, row, "swapped");
    copy_row_time(json, row, "refused");
    copy_row_text(json, row, "error");
    json_close(json);
}

/* Sends the reply with the rows of the report, or without any. */
static void reply_certificates(struct control_client *client, struct json_value report)
{
    const struct generation *serving = client->control->pool->serving;
    struct json_value rows = json_member(report, "certificates"), row = { NULL, 0 };
    unsigned n = 0;
    struct json json;

    control_reply_begin(&json, true);
    json_array(&json, "certificates");
    while (serving != NULL && n++ < TLS_REPORT_MOST && (row = json_next(rows, row)).text != NULL)
        write_certificate(&serving->cycle->tls, row, &json);
    json_close(&json);
    json_number(&json, "left_out", json_integer(json_member(report, "left_out"), 0));
    control_reply_end(&json, client, false);
}

void control_certificates_handle(struct control_client *client)
{
    const struct control *control = client->control;
    const struct generation *serving = control->pool->serving;
    const char *refused;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    if (serving == NULL || serving->cycle->tls.pair_n == 0) {
        reply_certificates(client, (struct json_value) { NULL, 0 });
        return;
    }
    refused = control_is_waiting_full(client) ? "too many clients wait for an outcome, try again"
                                              : control->ops->ask_certificates(control->host);
    if (refused != NULL) {
        control_reply_error(client, refused, false);
        return;
    }
    client->told = false;
    client->waiting_for = CONTROL_WAIT_CERTIFICATES;
    control_client_set(client, CLIENT_WAITING);
}

void control_certificates_reply(struct control_client *client, const char *text, size_t n)
{
    struct json_value report = text != NULL ? json_parse(text, n) : (struct json_value) { NULL, 0 };

    assert(client->phase == CLIENT_WAITING);
    if (report.text != NULL)
        reply_certificates(client, report);
    else
        control_reply_error(client, "the keeper process has given no report, try again", false);
}
