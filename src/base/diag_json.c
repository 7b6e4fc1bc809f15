/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads diagnostics as JSON. A message is an object of level, text, file, line,
 * column and excerpt, which are null where it has none. */
#include "base/diag_json.h"

#include "base/log.h"

#include <assert.h>

static void write_message(struct json *json, const struct diag_message *message)
{
    bool placed = message->line != 0;

    json_object(json, NULL);
    json_string(json, "level",
        log_level_name(message->level <= LEVEL_DEBUG ? message->level : LEVEL_EMERG));
    json_string(json, "text", message->text);
    json_string(json, "file", placed ? message->file : NULL);
    if (placed) {
        json_number(json, "line", message->line);
        json_number(json, "column", message->column);
    } else {
        json_null(json, "line");
        json_null(json, "column");
    }
    json_string(json, "excerpt", message->excerpt[0] != '\0' ? message->excerpt : NULL);
    json_close(json);
}

void diag_to_json(struct json *json, const struct diag *diag)
{
    struct diag_message message;

    json_array(json, "messages");
    for (uint32_t i = 0; diag != NULL && i < diag_count(diag); i++)
        if (diag_get(diag, i, &message))
            write_message(json, &message);
    json_close(json);
}

bool diag_from_json(struct json_value messages, struct json_value *at, struct diag_message *out)
{
    char level[16];
    int known;

    *at = json_next(messages, *at);
    if (at->text == NULL)
        return false;
    json_text(json_member(*at, "level"), level, sizeof(level));
    known = log_level_parse(level);
    out->whole = 1;
    out->level = known == -1 ? LEVEL_EMERG : (uint32_t)known;
    json_text(json_member(*at, "text"), out->text, sizeof(out->text));
    json_text(json_member(*at, "excerpt"), out->excerpt, sizeof(out->excerpt));
    out->line = out->column = 0;
    if (json_text(json_member(*at, "file"), out->file, sizeof(out->file))) {
        out->line = (uint32_t)json_integer(json_member(*at, "line"), 0);
        out->column = (uint32_t)json_integer(json_member(*at, "column"), 0);
    }
    assert(out->level <= LEVEL_DEBUG);
    return true;
}

void diag_add_json(struct diag *diag, uint32_t session, struct json_value messages)
{
    struct json_value at = { NULL, 0 };
    struct diag_message message;

    while (diag != NULL && diag_from_json(messages, &at, &message))
        diag_add(diag, session,
            &(struct diag_text) {
                .level = message.level,
                .line = message.line,
                .column = message.column,
                .text = message.text,
                .text_n = -1,
                .file = message.file,
                .excerpt = message.excerpt,
            });
}
