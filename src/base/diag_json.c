/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads diagnostics as JSON. A message is an object of level, text, file, line,
 * column and excerpt, which are null where it has none. */
#include "base/diag_json.h"

#include "base/log.h"

#include <assert.h>

static void write_message(struct fb_json *json, const struct fb_told_line *message)
{
    bool placed = message->line != 0;

    fb_json_object(json, NULL);
    fb_json_string(
        json, "level", fb_level_name(message->level <= FB_DEBUG ? message->level : FB_EMERG));
    fb_json_string(json, "text", message->text);
    fb_json_string(json, "file", placed ? message->file : NULL);
    if (placed) {
        fb_json_number(json, "line", message->line);
        fb_json_number(json, "column", message->column);
    } else {
        fb_json_null(json, "line");
        fb_json_null(json, "column");
    }
    fb_json_string(json, "excerpt", message->excerpt[0] != '\0' ? message->excerpt : NULL);
    fb_json_close(json);
}

void diag_to_json(struct fb_json *json, const struct fb_told *diag)
{
    struct fb_told_line message;

    fb_json_array(json, "messages");
    for (uint32_t i = 0; diag != NULL && i < fb_told_n(diag); i++)
        if (fb_told_get(diag, i, &message))
            write_message(json, &message);
    fb_json_close(json);
}

bool diag_from_json(
    struct fb_json_value messages, struct fb_json_value *at, struct fb_told_line *out)
{
    char level[16];
    int known;

    *at = fb_json_next(messages, *at);
    if (at->text == NULL)
        return false;
    fb_json_text(fb_json_member(*at, "level"), level, sizeof(level));
    known = fb_level_parse(level);
    out->whole = 1;
    out->level = known == -1 ? FB_EMERG : (uint32_t)known;
    fb_json_text(fb_json_member(*at, "text"), out->text, sizeof(out->text));
    fb_json_text(fb_json_member(*at, "excerpt"), out->excerpt, sizeof(out->excerpt));
    out->line = out->column = 0;
    if (fb_json_text(fb_json_member(*at, "file"), out->file, sizeof(out->file))) {
        out->line = (uint32_t)fb_json_integer(fb_json_member(*at, "line"), 0);
        out->column = (uint32_t)fb_json_integer(fb_json_member(*at, "column"), 0);
    }
    assert(out->level <= FB_DEBUG);
    return true;
}

void diag_add_json(struct fb_told *diag, uint32_t session, struct fb_json_value messages)
{
    struct fb_json_value at = { NULL, 0 };
    struct fb_told_line message;

    while (diag != NULL && diag_from_json(messages, &at, &message))
        fb_told_add(diag, session,
            &(struct fb_telling) {
                .level = message.level,
                .line = message.line,
                .column = message.column,
                .text = message.text,
                .text_n = -1,
                .file = message.file,
                .excerpt = message.excerpt,
            });
}
