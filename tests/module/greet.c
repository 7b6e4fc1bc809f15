/* SPDX-License-Identifier: BSD-2-Clause */
/* A module in an author's style; GREETING tells two builds apart. A client's lines are answered
 * with the greeting and the number of lines seen by the current load of the code. */
#include <forkbeard/forkbeard.h>
#include <stdio.h>
#include <string.h>

struct greet_conf {
    const char *mark;
    int64_t known; /* the index of a name */
};

static unsigned lines; /* a new load's begins at 0 */

static size_t greet_data(fb_conn *conn, void *state, fb_bytes in)
{
    const struct greet_conf *conf = fb_conf_of(conn);
    char text[128];

    (void)state;
    if (memchr(in.p, '\n', in.n) == NULL)
        return 0;
    snprintf(text, sizeof(text), "%s%s %u\n", GREETING, conf->mark, ++lines);
    fb_write(conn, text, strlen(text));
    fb_count_request(conn);
    return in.n;
}

static int greet_done(fb_conf *conf, void *own, const void *parent)
{
    const struct greet_conf *greet = own;

    (void)parent;
    if (strcmp(greet->mark, "forbidden") == 0)
        return fb_conf_errorf(conf, "greet_mark", "this mark is forbidden");
    return 0;
}

static const fb_directive directives[] = {
    { .name = "greet", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "greet_mark",
        .value = FB_VALUE_STRING,
        .offset = offsetof(struct greet_conf, mark),
        .initial = "!" },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .data = greet_data };

FB_PROTOCOL(greet) = {
    FB_PROTOCOL_HEADER,
    .name = "greet",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct greet_conf),
    .ops = &ops,
    .conf_done = greet_done,
};
