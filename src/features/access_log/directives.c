/* SPDX-License-Identifier: BSD-2-Clause */
/* `access_log`: destinations of lines, and buffers; one path is one file, and one buffer. */
#include "features/access_log/access_log.h"

#include "base/check.h"
#include "base/number.h"
#include "features/access_log/gzip.h"
#include "features/features.h"
#include "settings/blocks.h"
#include "settings/log_targets.h"
#include "settings/parameter.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <limits.h>
#include <string.h>

#define BUFFER_DEFAULT 65536 /* with gzip= alone */
#define BUFFER_MOST (INT64_C(1) << 30)
#define TIME_MOST (INT64_C(86400000) * 365)
#define EXPECTED "buffer=SIZE, gzip[=LEVEL], flush=TIME or if=CONDITION"

/* The parameters of one directive; 0: not given. */
struct parameters {
    int64_t buffer, flush, gzip;
};

static const struct parameter parameter_rows[] = {
    { "buffer=", PARAMETER_SIZE, offsetof(struct parameters, buffer), 1, BUFFER_MOST,
        "a size between 1 and 1g" },
    { "flush=", PARAMETER_MSEC, offsetof(struct parameters, flush), 1, TIME_MOST,
        "a time between 1ms and 1y" },
    { .name = NULL },
};

static int set_gzip(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *level, struct parameters *parameters)
{
    parameters->gzip = 1;
    if (level != NULL && number_parse(level, 1, 9, &parameters->gzip) != NUMBER_OK)
        return set_bad_value(apply, directive, arg, "expected a compression level of 1 to 9");
    if (parameters->buffer == 0)
        parameters->buffer = BUFFER_DEFAULT;
    if (!access_gzip_built())
        return set_bad_value(apply, directive, arg,
            "this build cannot compress without zlib: leave the parameter out");
    return 0;
}

static int set_log_parameter(struct apply *apply, const struct conf_directive *directive,
    unsigned arg, struct access_log *log, struct parameters *parameters)
{
    const char *text = directive->args[arg].text, *level = parameter_value(text, "gzip");
    const char *condition = parameter_value(text, "if");

    if (level != NULL || strcmp(text, "gzip") == 0)
        return set_gzip(apply, directive, arg, level, parameters);
    if (condition == NULL)
        return parameter_set(apply, directive, arg, parameter_rows, EXPECTED, parameters);
    log->condition = template_of(apply, &directive->args[arg], condition);
    return log->condition == NULL ? -1 : 0;
}

/* A file shared by all directives with the path; the path of standard error is "". */
struct access_destination {
    RB_ENTRY(access_destination) node;
    const char *path;
    struct access_file *file;
};

static int compare_log_files(const struct access_destination *a, const struct access_destination *b)
{
    return strcmp(a->path, b->path);
}

RB_GENERATE_INTERNAL(access_destinations, access_destination, node, compare_log_files,
    static __attribute__((unused)))

/* The target of a path with variables only counts: workers open what the path leads to. */
static struct access_file *add_log_file(
    struct apply *apply, const struct log_target *target, const struct access_path *path)
{
    struct access_log_conf *conf = feature_conf(apply, FEATURE_ACCESS_LOG);
    struct access_file *file = apply_alloc(apply, sizeof(*file));

    if (file == NULL)
        return NULL;
    file->path = path;
    if (path == NULL) {
        file->target = log_targets_add(apply, target);
    } else {
        file->target = apply_alloc(apply, sizeof(*file->target));
        if (file->target != NULL)
            *file->target = *target;
    }
    if (file->target == NULL)
        return NULL;
    apply->cycle->stream.access_logs = true;
    file->index = conf->file_n++;
    file->next = conf->files;
    conf->files = file;
    return file;
}

/* Sets the buffer of the file; a second directive has equal values, or none. */
static int set_buffer(struct apply *apply, const struct conf_directive *directive,
    struct access_file *file, const struct parameters *parameters)
{
    const struct conf_word *path = &directive->args[0];

    if (parameters->buffer == 0 && parameters->flush > 0)
        return report_error(
            apply->report, path, "no buffer is defined for access_log \"%s\"", path->text);
    if (parameters->buffer == 0)
        return 0;
    if (file->target->path == NULL)
        return report_error(apply->report, path, "logs to %s cannot be buffered",
            file->target->syslog != NULL ? "syslog" : "standard error");
    if (file->buffer != 0 &&
        (file->buffer != (size_t)parameters->buffer || file->flush != parameters->flush ||
            file->gzip != parameters->gzip))
        return report_error(apply->report, path,
            "access_log \"%s\" already defined with conflicting parameters", path->text);
    file->buffer = (size_t)parameters->buffer;
    file->flush = parameters->flush;
    file->gzip = parameters->gzip;
    return 0;
}

/* Finds the file of an earlier directive of the path, or adds it; NULL after a report. */
static struct access_file *share_file(struct apply *apply, const struct log_target *target)
{
    struct access_log_conf *conf = feature_conf(apply, FEATURE_ACCESS_LOG);
    struct access_destination *found, *destination;

    if (target->syslog != NULL) /* a different tag or severity may be a different log */
        return add_log_file(apply, target, NULL);
    destination = apply_alloc(apply, sizeof(*destination));
    if (destination == NULL)
        return NULL;
    destination->path = target->path != NULL ? target->path : "";
    found = RB_INSERT(access_destinations, &conf->destinations, destination);
    if (found == NULL) {
        found = destination;
        found->file = add_log_file(apply, target, NULL);
    }
    return found->file;
}

/* Whether no name of the path is "." or "..": where they led would depend on a session. */
static bool is_straight(const char *path)
{
    while (*path != '\0') {
        size_t n = strcspn(path, "/");

        if ((n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        path += n + (path[n] == '/');
    }
    return true;
}

/* Returns the directory in front of all names with variables; NULL after a report. */
static const char *path_directory(
    struct apply *apply, const struct conf_directive *directive, const char *text)
{
    size_t n = strcspn(text, "$");
    char *directory;

    while (text[n - 1] != '/')
        n--;
    if (!is_straight(text + n)) {
        set_bad_value(apply, directive, 0, "\".\" and \"..\" cannot stand behind a variable");
        return NULL;
    }
    if (n == 1) {
        set_bad_value(
            apply, directive, 0, "a path with variables begins with a directory of its own");
        return NULL;
    }
    directory = apply_strdup(apply, text);
    if (directory != NULL)
        directory[n - 1] = '\0';
    return directory;
}

/* Sets a path with variables, opened by workers; -1 after a report. */
static int set_variable_path(struct apply *apply, const struct conf_directive *directive,
    struct access_log *log, const struct parameters *parameters)
{
    const struct conf_word *word = &directive->args[0];
    struct access_path *path = apply_alloc(apply, sizeof(*path));
    struct log_target target = { .fd = -1, .level = LEVEL_INFO };
    const char *text = apply_path(apply, word->text);
    const struct template *template = text == NULL ? NULL : template_of(apply, word, text);
    struct access_file *file;

    if (path == NULL || template == NULL)
        return -1;
    if (parameters->buffer > 0 || parameters->flush > 0)
        return report_error(apply->report, word, "buffered logs cannot have variables in name");
    path->format = (struct line_format) {
        .escape = LOG_ESCAPE_PATH, .parts = template->parts, .part_n = template->part_n
    };
    path->word = word;
    path->directory = path_directory(apply, directive, text);
    target.path = text;
    file = path->directory == NULL ? NULL : add_log_file(apply, &target, path);
    if (file == NULL)
        return -1;
    needs_add_path(apply, path->directory, NEEDS_TO_APPEND);
    log->file = file;
    return 0;
}

/* Sets where the lines go, of a directive whose parameters are known; -1 after a report. */
static int set_file(struct apply *apply, const struct conf_directive *directive,
    struct access_log *log, const struct parameters *parameters)
{
    struct log_target target = { .fd = -1, .level = LEVEL_INFO };
    const char *text = directive->args[0].text;
    struct access_file *file;

    if (strncmp(text, "syslog:", 7) != 0 && strchr(text, '$') != NULL)
        return set_variable_path(apply, directive, log, parameters);
    if (log_targets_find(apply, directive, &target) == -1)
        return -1;
    file = share_file(apply, &target);
    if (file == NULL || set_buffer(apply, directive, file, parameters) == -1)
        return -1;
    log->file = file;
    if (target.path != NULL)
        paths_add(apply, "access_log", PATH_LOG, target.path, &directive->args[0]);
    return 0;
}

static int access_log_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct access_logs_setting *logs = field;
    struct parameters parameters = { 0 };
    struct access_log *log;

    if (strcmp(directive->args[0].text, "off") == 0) {
        logs->off = true;
        return directive->arg_n == 1
                   ? 0
                   : set_bad_value(apply, directive, 1, "nothing stands behind \"off\"");
    }
    if (directive->arg_n < 2)
        return report_error(apply->report, &directive->args[0],
            "log format is not specified: expected the name of a \"log_format\" behind the path");
    log = apply_alloc(apply, sizeof(*log));
    if (log == NULL)
        return -1;
    for (unsigned i = 2; i < directive->arg_n; i++)
        if (set_log_parameter(apply, directive, i, log, &parameters) == -1)
            return -1;
    if (set_file(apply, directive, log, &parameters) == -1)
        return -1;
    log->named = &directive->args[1];
    if (log_format_use(apply, log->named) == -1)
        return -1;
    if (logs->first == NULL)
        logs->first = log;
    else
        logs->last->next = log;
    logs->last = log;
    return 0;
}

/* Finds the formats of a list; false after a report. */
static bool find_formats(struct apply *apply, const struct access_logs_setting *logs)
{
    bool found = true;

    for (struct access_log *log = logs->first; log != NULL; log = log->next) {
        if (log->format == NULL)
            log->format = log_format_find(apply, log->named);
        found = found && log->format != NULL;
    }
    return found;
}

/* Warns of files that clients name. */
static void warn_of_names(struct apply *apply, const struct access_path *path)
{
    const struct template names = { .parts = path->format.parts, .part_n = path->format.part_n };
    const struct variable *chosen = template_find(&names, "ssl_preread_", 0);

    if (chosen == NULL)
        chosen = template_find(&names, "ssl_server_name", 0);
    if (chosen == NULL)
        chosen = template_find(&names, "proxy_protocol_", 0);
    if (chosen != NULL)
        report_warn(apply->report, path->word,
            "clients choose $%s, and so the number of files: have a \"map\" list the names",
            chosen->name);
}

static void access_log_finish(struct apply *apply, struct scope *stream)
{
    const struct access_log_conf *conf = feature_conf(apply, FEATURE_ACCESS_LOG);
    const struct access_log_values *outer = feature_values(stream, FEATURE_ACCESS_LOG);
    const struct access_file *file;
    struct scope *scope;

    CHECK_KIND(stream, SCOPE_KIND);
    if (!apply_is_whole(apply, stream)) /* a format may stand in an unread file */
        return;
    for (file = conf->files; file != NULL; file = file->next)
        if (file->path != NULL)
            warn_of_names(apply, file->path);
    find_formats(apply, &outer->logs);
    STAILQ_FOREACH (scope, &stream->servers, link) {
        const struct access_log_values *values = feature_values(scope, FEATURE_ACCESS_LOG);
        const struct access_logs_setting *logs = &values->logs;

        if (logs->first != outer->logs.first && !find_formats(apply, logs))
            continue;
        if (logs->first != NULL && !logs->off)
            feature_add_handler(apply, scope->server, PHASE_LOG, access_log_run, logs->first);
    }
}

static const struct setting rows[] = {
    { "access_log", CONTEXT_SERVERS, 1, UCHAR_MAX, .set = access_log_set, .repeats = true,
        SETTING_FIELD(struct access_log_values, logs), .initial = "off" },
    { "log_format", CONTEXT_STREAM, 2, UCHAR_MAX, .set = log_format_set, .repeats = true,
        .unset = "none" },
    { "open_log_file_cache", CONTEXT_SERVERS, 1, 4, .set = open_log_file_cache_set,
        SETTING_FIELD(struct access_log_values, cache), .initial = "off" },
    { .name = NULL },
};

const struct feature access_log_feature = {
    .name = "access_log",
    .rows = rows,
    .server_size = sizeof(struct access_log_values),
    .conf_size = sizeof(struct access_log_conf),
    .finish = access_log_finish,
    .open = access_log_open,
    .close = access_log_close,
};
