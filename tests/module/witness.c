/* SPDX-License-Identifier: BSD-2-Clause */
/* A module that logs the servers with a configuration in force: "witness NAME". The hooks log
 * whether they run in the reading process of the configuration. */
#include <forkbeard/forkbeard.h>

#include <stddef.h>
#include <unistd.h>

struct conf {
    const char *name;
    int64_t reader; /* the process that has read it */
};

static const fb_directive directives[] = {
    { .name = "witness",
        .value = FB_VALUE_STRING,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct conf, name) },
};

static int note_reader(fb_conf *conf, void *own, const void *parent)
{
    (void)conf;
    (void)parent;
    ((struct conf *)own)->reader = getpid();
    return 0;
}

static void log_hook(fb_master *master, const struct conf *conf, const char *what)
{
    fb_master_logf(master, FB_LOG_NOTICE, "witness: %s is %s%s", conf->name, what,
        conf->reader == getpid() ? "" : " in another process");
}

static void log_accepted(fb_master *master, const void *own)
{
    log_hook(master, own, "accepted");
}

static void log_gone(fb_master *master, const void *own)
{
    log_hook(master, own, "gone");
}

static int accept_all(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = accept_all };

FB_PROTOCOL(witness) = {
    FB_PROTOCOL_HEADER,
    .name = "witness",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct conf),
    .ops = &ops,
    .conf_done = note_reader,
    .conf_accepted = log_accepted,
    .conf_gone = log_gone,
};
