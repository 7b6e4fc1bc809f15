/* SPDX-License-Identifier: BSD-2-Clause */
/* How sessions read files: `aio` and `directio_alignment`. */
#include "event/file_aio.h"
#include "features/features.h"
#include "settings/set_value.h"

#include <string.h>

/* Sets the pool of "threads=POOL"; `text` is the text behind "threads". */
static int set_aio_pool(struct apply *apply, const struct conf_directive *directive,
    const char *text, struct aio_setting *aio)
{
    const char *name = text + 1;

    aio->way = FB_AIO_THREADS;
    aio->pool = core_find_pool(&apply->cycle->core, name);
    if (*name == '\0')
        return set_bad_value(apply, directive, 0, "expected the name of a pool after \"threads=\"");
    if (aio->pool == NULL)
        return set_bad_value(
            apply, directive, 0, "there is no \"thread_pool\" of the name \"%s\"", name);
    return 0;
}

static int set_aio(struct apply *apply, const struct conf_directive *directive, void *field)
{
    static const char *const names[] = {
        [FB_AIO_OFF] = "off",
        [FB_AIO_THREADS] = "threads",
        [FB_AIO_ON] = "on",
        NULL,
    };
    const char *text = directive->args[0].text;
    size_t n = strlen(names[FB_AIO_THREADS]);
    struct aio_setting *aio = field;

    if (strncmp(text, names[FB_AIO_THREADS], n) == 0 && text[n] == '=')
        return set_aio_pool(apply, directive, text + n, aio);
    if (set_choice(apply, directive, names, "\"on\", \"threads\" or \"off\"", &aio->way) == -1)
        return -1;
    aio->pool = NULL;
    if (aio->way == FB_AIO_ON && !file_aio_built())
        return set_bad_value(
            apply, directive, 0, "this build has no kernel AIO: use \"threads\" instead");
    return 0;
}

/* The alignment of memory is a power of two. */
static int set_alignment(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const int64_t *alignment = field;

    if (set_size(apply, directive, field) == -1)
        return -1;
    if ((*alignment & (*alignment - 1)) != 0)
        return set_bad_value(apply, directive, 0, "expected a power of two");
    return 0;
}

static const struct setting rows[] = {
    { "aio", CONTEXT_SERVERS, 1, 1, .set = set_aio, SETTING_FIELD(struct server_settings, aio),
        .initial = "off" },
    { "directio_alignment", CONTEXT_SERVERS, 1, 1, .set = set_alignment,
        SETTING_FIELD(struct server_settings, directio_alignment), .least_value = 512,
        .greatest_value = 1024 * 1024, .initial = "4k" },
    { .name = NULL },
};

const struct feature files_feature = {
    .name = "files",
    .rows = rows,
};
