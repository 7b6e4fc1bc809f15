/* SPDX-License-Identifier: BSD-2-Clause */
/* return TEXT: sends the text and closes. */
#include <forkbeard/forkbeard.h>
#include <string.h>

struct return_conf {
    const char *text;
};

static int return_opened(fb_conn *conn, void *state)
{
    const struct return_conf *conf = fb_conf_of(conn);

    (void)state;
    fb_write(conn, conf->text, strlen(conf->text));
    fb_count_request(conn);
    fb_close(conn);
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = return_opened };

static const fb_directive directives[] = {
    { .name = "return",
        .value = FB_VALUE_STRING,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct return_conf, text) },
};

/* clang-format off */
FB_PROTOCOL(return) = {
    /* clang-format on */
    FB_PROTOCOL_HEADER,
    .name = "return",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct return_conf),
    .ops = &ops,
};
