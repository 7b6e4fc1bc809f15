/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of mechanisms, made of mechanisms.def. Nothing but a row there names a mechanism. */
#include "event/mechanism.h"

#include "event/loop.h"
#include "os/descriptor.h"

#include <string.h>

const struct mechanism *const mechanism_table[] = {
#define MECHANISM(name) &mechanism_##name,
#include "event/mechanisms.def"
#undef MECHANISM
    NULL,
};

static_assert(countof(mechanism_table) <= MECHANISMS_MAX + 1, "the settings have room for all");

bool mechanism_available(const struct mechanism *mechanism)
{
    int fd;

    if (mechanism->available != NULL)
        return mechanism->available();
    if (mechanism->open == NULL)
        return true;
    fd = mechanism->open();
    descriptor_close(fd);
    return fd != -1;
}

const struct mechanism *mechanism_find(const char *name)
{
    for (const struct mechanism *const *m = mechanism_table; *m != NULL; m++)
        if (name == NULL ? !(*m)->by_use_alone && mechanism_available(*m)
                         : strcmp((*m)->name, name) == 0)
            return *m;
    return NULL;
}

struct mechanism_values mechanism_defaults(const struct mechanism *mechanism)
{
    struct mechanism_values values;

    for (int i = 0; i < MECHANISM_OPTIONS; i++)
        values.of[i] = mechanism->options[i].initial;
    return values;
}

void mechanism_check(const struct mechanism *mechanism)
{
    assert(mechanism->name != NULL && mechanism->io != NULL);
    assert(mechanism->state_size > 0);
    assert(mechanism->add != NULL && mechanism->del != NULL);
    assert(mechanism->del_conn != NULL);
    assert((mechanism->add_listener != NULL) == (mechanism->del_listener != NULL));
    assert(mechanism->notify != NULL && mechanism->process_events != NULL);
    for (int i = 0; i < MECHANISM_OPTIONS; i++) {
        const struct mechanism_option *option = &mechanism->options[i];

        assert(option->least <= option->initial && option->initial <= option->greatest);
        assert(option->name == NULL || i == 0 || option[-1].name != NULL);
    }
}
