/* SPDX-License-Identifier: BSD-2-Clause */
/* `control` and `control_read`: the path of the control socket, by default beside the pid file, and
 * of a second socket for reading, and the rights of their files. Workers are not believed, so a
 * group of theirs is refused. */
#include "base/number.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/lookup.h"
#include "settings/parameter.h"
#include "settings/set_value.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define MODE_ALONE 0600 /* of a socket without a group, always */
#define MODE_GROUP 0660

/* Sets a mode without rights for others, whom the daemon would refuse. */
static int set_control_mode(
    struct apply *apply, const struct conf_directive *directive, unsigned arg, mode_t *mode)
{
    const char *text = strchr(directive->args[arg].text, '=') + 1;
    size_t n = strspn(text, "01234567");
    unsigned value = 0;

    for (size_t i = 0; i < n && value <= 0777; i++)
        value = value * 8 + (unsigned)(text[i] - '0');
    if (n == 0 || text[n] != '\0' || value > 0777 || (value & 07) != 0 || (value & 0600) != 0600)
        return set_bad_value(apply, directive, arg,
            "expected 0600, or 0660 for a \"group\": rights for the owner, and none for others");
    *mode = (mode_t)value;
    return 0;
}

static int set_control_group(struct apply *apply, const struct conf_directive *directive,
    unsigned arg, struct control_rights *rights)
{
    const char *text = strchr(directive->args[arg].text, '=') + 1, *wrong;
    int64_t number;

    rights->has_group = true;
    if (number_parse(text, 0, UINT_MAX - 1, &number) == NUMBER_OK) {
        rights->group = (gid_t)number;
        return 0;
    }
    wrong = lookup_group(apply, &directive->args[arg], text, &rights->group);
    return wrong == NULL ? 0 : set_bad_value(apply, directive, arg, "%s", wrong);
}

/* Sets *group to the word of the group. */
static int set_control_rights(struct apply *apply, const struct conf_directive *directive,
    struct control_rights *rights, const struct conf_word **group)
{
    const struct conf_word *mode = NULL;

    for (unsigned i = 1; i < directive->arg_n; i++) {
        const char *text = directive->args[i].text;
        int status;

        if (parameter_value(text, "mode") != NULL && mode == NULL) {
            mode = &directive->args[i];
            status = set_control_mode(apply, directive, i, &rights->mode);
        } else if (parameter_value(text, "group") != NULL && !rights->has_group) {
            *group = &directive->args[i];
            status = set_control_group(apply, directive, i, rights);
        } else {
            status = set_bad_value(apply, directive, i, "expected mode=MODE or group=NAME, once");
        }
        if (status == -1)
            return -1;
    }
    if (mode == NULL)
        rights->mode = rights->has_group ? MODE_GROUP : MODE_ALONE;
    else if (rights->mode != MODE_ALONE && !rights->has_group)
        return report_error(apply->report, mode,
            "\"%s\" lets a group use the control socket: name it with \"group=\"", mode->text);
    return 0;
}

/* Sets path and rights of either socket. */
static int set_control_socket(struct apply *apply, const struct conf_directive *directive,
    const char *expected, struct control_settings *control, const struct conf_word **group)
{
    const char *text = directive->args[0].text, *path;
    bool is_path = strncmp(text, "unix:", 5) == 0 && text[5] != '\0';

    if (!is_path && apply->options->only_pid) /* the pid is enough to send a signal */
        return 0;
    if (!is_path)
        return set_bad_value(apply, directive, 0, "expected %s", expected);
    path = apply_path(apply, text + 5);
    if (path == NULL)
        return -1;
    if (strlen(path) > CONTROL_PATH_MAX && !apply->options->only_pid)
        return set_bad_value(apply, directive, 0, "the path is longer than %d bytes: \"%s\"",
            CONTROL_PATH_MAX, path);
    control->path = path;
    paths_add(apply, apply->setting->name, PATH_CONTROL, path, &directive->args[0]);
    if (apply->options->only_pid)
        return 0;
    return set_control_rights(apply, directive, &control->rights, group);
}

int control_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct core_settings *core = field;

    if (strcmp(directive->args[0].text, "off") == 0 && directive->arg_n == 1) {
        core->control_off = true;
        return 0;
    }
    return set_control_socket(
        apply, directive, "unix:PATH or \"off\"", &core->control, &apply->control_group);
}

int control_set_read(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct core_settings *core = field;

    return set_control_socket(
        apply, directive, "unix:PATH", &core->control_read, &apply->control_read_group);
}

/* Puts the control socket beside the pid file: "x.sock" for "x.pid". */
void control_set_default(struct apply *apply)
{
    struct core_settings *core = &apply->cycle->core;
    const char *path;
    size_t n;

    assert(!core->control_off || core->control.path == NULL);
    if (core->control_off || core->control.path != NULL || core->pid == NULL)
        return;
    n = strlen(core->pid);
    if (n > 4 && strcmp(core->pid + n - 4, ".pid") == 0)
        n -= 4;
    path = apply_taken(apply, arena_printf(apply->cycle->arena, "%.*s.sock", (int)n, core->pid));
    if (path == NULL)
        return;
    if (strlen(path) <= CONTROL_PATH_MAX) {
        core->control = (struct control_settings) { .path = path, .rights.mode = MODE_ALONE };
        paths_add_default(apply, "control", PATH_CONTROL, path);
    } else {
        report_warn(apply->report, NULL,
            "\"%s\" is too long for a control socket, so there is none: set another path with "
            "\"control\"",
            path);
    }
}

/* Whether the workers are in the group, with a user of their own. */
static bool is_workers_group(const struct core_settings *core, gid_t group)
{
    bool found = core->user != NULL && core->gid == group;

    for (unsigned i = 0; core->user != NULL && i < core->group_n; i++)
        found = found || core->groups[i] == group;
    return found;
}

static void check_control_group(struct apply *apply, const struct control_settings *control,
    const char *name, const struct conf_word *group)
{
    const struct core_settings *core = &apply->cycle->core;

    if (control->rights.has_group && is_workers_group(core, control->rights.group))
        report_error(apply->report, group,
            "\"%s\" in \"%s\" directive: the workers, of user \"%s\", are in this group and could "
            "use the socket: make a group for operators alone",
            group->text, name, core->user);
}

void control_finish(struct apply *apply)
{
    const struct core_settings *core = &apply->cycle->core;

    check_control_group(apply, &core->control, "control", apply->control_group);
    check_control_group(apply, &core->control_read, "control_read", apply->control_read_group);
}
