/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings/cycle.h"

#include "settings/apply.h"

#include <string.h>

#define DEFAULT_CONNECTIONS 512
#define DEFAULT_LOG_BURST 1000
#define DEFAULT_LOG_INTERVAL 1000
#define DEFAULT_THREADS 32
#define DEFAULT_THREAD_QUEUE 65536

static void require(struct fb_apply *apply, const struct fb_frame *frame, const char *name)
{
    const struct fb_seen *seen;

    STAILQ_FOREACH (seen, &frame->seen, link)
        if (strcmp(seen->setting->name, name) == 0)
            return;
    fb_conf_error(
        apply->report, NULL, "no \"%s\" section in configuration %s", name, apply->options->conf);
}

/* Applies what could be understood of a text. */
static void apply_text(struct fb_apply *apply, const struct fb_conf_block *block, unsigned errors)
{
    apply->cut = apply->cut || apply->report->error_n > errors;
    if (block != NULL)
        fb_apply_block(apply, block);
}

static void read_all(struct fb_apply *apply)
{
    const struct fb_cycle_options *options = apply->options;
    struct fb_conf_source *source = &apply->cycle->source;
    struct fb_frame frame;
    struct fb_conf_block *block;
    unsigned errors = apply->report->error_n;

    memset(&frame, 0, sizeof(frame));
    fb_apply_inner(apply, &frame, FB_AT_MAIN, NULL);
    apply->frame = &frame;
    if (options->globals != NULL) {
        block =
            fb_conf_parse_text(source, "command line", options->globals, strlen(options->globals));
        apply_text(apply, block, errors);
        errors = apply->report->error_n;
    }
    block = fb_conf_parse_file(source, options->conf, NULL);
    apply_text(apply, block, errors);

    if (options->only_pid) {
        if (apply->report->error_n == 0) /* else an unread one may be hidden */
            fb_core_finish_pid(apply);
        fb_core_finish_control(apply);
        return;
    }
    if (apply->stream != NULL)
        fb_stream_apply(apply);

    frame.refused = apply->report->error_n > 0;
    if (fb_frame_is_whole(apply, &frame))
        require(apply, &frame, "events");
    if (apply->report->error_n > 0)
        return;
    fb_apply_defaults(apply, &frame, fb_core_table);
    fb_core_finish(apply);
    fb_events_finish(apply);
    fb_sizing_finish(apply);
    fb_needs_collect(apply);
}

static void apply_configuration(
    struct fb_cycle *cycle, const struct fb_cycle_options *options, struct fb_conf_report *report)
{
    struct fb_apply apply = { .cycle = cycle, .report = report, .options = options };
    const struct fb_setting *mechanisms = fb_mechanism_table(&apply);

    if (mechanisms == NULL || protocol_add(&apply, NULL) == -1) /* which is table 4 */
        return;
    apply.tables[0] = fb_core_table;
    apply.tables[1] = fb_events_table;
    apply.tables[2] = mechanisms;
    apply.tables[3] = fb_stream_table;
    read_all(&apply);
}

static struct fb_cycle *create(void)
{
    struct fb_arena *arena = fb_arena_create();
    struct fb_cycle *cycle = arena == NULL ? NULL : fb_arena_alloc(arena, sizeof(*cycle));

    if (cycle == NULL) {
        fb_arena_destroy(&arena);
        return NULL;
    }
    cycle->arena = arena;
    cycle->core.log_burst = DEFAULT_LOG_BURST;
    cycle->core.log_interval = DEFAULT_LOG_INTERVAL;
    cycle->core.threads = DEFAULT_THREADS;
    cycle->core.thread_queue = DEFAULT_THREAD_QUEUE;
    cycle->core.rlimit_nofile = -1;
    cycle->core.rlimit_core = -1;
    cycle->events.worker_connections = DEFAULT_CONNECTIONS;
    STAILQ_INIT(&cycle->stream.servers);
    STAILQ_INIT(&cycle->stream.listeners);
    STAILQ_INIT(&cycle->needs.paths);
    fb_zones_init(&cycle->zones);
    SLIST_INIT(&cycle->modules);
    return cycle;
}

struct fb_cycle *fb_cycle_load(
    const struct fb_cycle_options *options, struct fb_log *log, int excerpts)
{
    struct fb_cycle *cycle = create();
    struct fb_conf_report *report =
        cycle == NULL ? NULL : fb_arena_alloc(cycle->arena, sizeof(*report));
    bool usable;

    if (report == NULL) {
        fb_log(log, FB_EMERG, 0, "no memory for the configuration");
        fb_cycle_destroy(&cycle);
        return NULL;
    }
    fb_conf_report_init(report, cycle->arena);
    fb_conf_source_init(&cycle->source, cycle->arena, report);
    cycle->source.lenient = options->testing;
    apply_configuration(cycle, options, report);
    usable = report->error_n == 0 || (options->only_pid && cycle->core.pid != NULL);
    if (!usable || (report->error_n == 0 && options->progress == NULL))
        fb_conf_report_show(report, log, excerpts);
    if (!usable)
        fb_cycle_destroy(&cycle);
    return cycle;
}

void fb_cycle_destroy(struct fb_cycle **cycle)
{
    struct fb_arena *arena;

    if (*cycle == NULL)
        return;
    while (!SLIST_EMPTY(&(*cycle)->modules)) /* they may use what was loaded before them */
        fb_module_unload(&(*cycle)->modules);
    arena = (*cycle)->arena;
    *cycle = NULL;
    fb_arena_destroy(&arena);
}
