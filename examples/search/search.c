/* SPDX-License-Identifier: BSD-2-Clause */
/* search PATH: each line of a client is a regular expression, and the answer is the matching lines
 * of a file, and "N lines". Reading and matching are slow and run in a thread: the worker serves
 * its clients meanwhile. For trusted clients only: some expressions take all the time. */
#include <errno.h>
#include <forkbeard/forkbeard.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_MAX 255

struct search_conf {
    const char *path, *pool_name;
    const fb_pool *pool;
};

struct client {
    uint64_t began_ms; /* the search */
};

/* A thread's task, and its answer. */
struct job {
    fb_ref client; /* may have ended when there is an answer */
    const char *path;
    char pattern[PATTERN_MAX + 1];
    char *answer;
    size_t n;
};

static const fb_frame_limit limit = { .most = PATTERN_MAX, .timeout = 30000 };

/* Runs on a thread, and calls nothing of the SDK. */
static void search(void *arg)
{
    struct job *job = arg;
    FILE *answer = open_memstream(&job->answer, &job->n), *file = fopen(job->path, "re");
    char *line = NULL;
    size_t room = 0, found = 0;
    regex_t regex;

    if (answer == NULL || file == NULL) {
        if (answer != NULL)
            fprintf(answer, "error: %s\n", strerror(errno));
    } else if (strchr(job->pattern, '{') != NULL) { /* nested, these take all memory */
        fprintf(answer, "error: no counts in braces\n");
    } else if (regcomp(&regex, job->pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB) != 0) {
        fprintf(answer, "error: no regular expression\n");
    } else {
        while (getline(&line, &room, file) != -1) {
            if (regexec(&regex, line, 0, NULL, 0) == 0) {
                fputs(line, answer);
                found++;
            }
        }
        fprintf(answer, "%zu lines\n", found);
        regfree(&regex);
    }
    free(line);
    if (file != NULL)
        fclose(file);
    if (answer != NULL)
        fclose(answer);
}

/* Runs on the loop again. */
static void search_done(fb_worker *worker, void *arg)
{
    struct job *job = arg;
    fb_conn *client = fb_find(worker, job->client);
    const struct client *own;

    if (client == NULL || job->n == 0 ||
        fb_write_ref(client, job->answer, job->n, free, job->answer) != 0)
        free(job->answer);
    if (client == NULL)
        return;
    own = fb_state_of(client);
    fb_conn_logf(
        client, FB_LOG_INFO, "searched for %u ms", (unsigned)(fb_mono_ms(worker) - own->began_ms));
    fb_count_request(client);
    fb_set_idle(client, 1);
    fb_resume(client);
}

/* Takes one line; further lines wait for the reply. */
static size_t client_data(fb_conn *client, void *state, fb_bytes in)
{
    const struct search_conf *conf = fb_conf_of(client);
    struct job job = { .client = fb_ref_of(client), .path = conf->path };
    struct client *own = state;
    fb_bytes rest = in, line;

    if (!fb_frame_until(client, &rest, "\n", 1, &limit, &line))
        return 0;
    memcpy(job.pattern, line.p, line.n);
    own->began_ms = fb_mono_ms(fb_worker_of(client));
    if (job.client != 0 &&
        fb_run_in(fb_worker_of(client), conf->pool, search, search_done, &job, sizeof(job)) == 0) {
        fb_set_idle(client, 0);
        fb_stop(client);
    } else {
        fb_write(client, "error: busy\n", 12);
        fb_close(client);
    }
    return in.n - rest.n;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .data = client_data };

static int conf_done(fb_conf *conf, void *own, const void *parent)
{
    struct search_conf *search = own;

    (void)parent;
    search->pool = fb_conf_pool(conf, "search_pool", search->pool_name);
    return search->pool != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "search",
        .value = FB_VALUE_STRING,
        .flags = FB_DIRECTIVE_HANDLER | FB_DIRECTIVE_READS | FB_DIRECTIVE_REPLACED,
        .offset = offsetof(struct search_conf, path) },
    { .name = "search_pool",
        .value = FB_VALUE_STRING,
        .offset = offsetof(struct search_conf, pool_name),
        .initial = "default" },
};

FB_PROTOCOL(search) = {
    FB_PROTOCOL_HEADER,
    .name = "search",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct client),
    .conf_state = sizeof(struct search_conf),
    .ops = &ops,
    .conf_done = conf_done,
};
