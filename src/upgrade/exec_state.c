/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the variable: a list of items behind ":", a character that no name of a service
 * manager has. An item is a letter for its kind, a number, mostly a descriptor, and further values
 * behind ",". */
#include "upgrade/exec_state.h"

#include "base/number.h"
#include "os/descriptor.h"
#include "process/process_ops.h"
#include "systemd/fdstore.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FORM "1" /* first item: the version of the form */

enum {
    PARENT = 'p',
    LINK = 'l',
    LOCK = 'k',
    SLOTS = 'n', /* the side, and the serial */
    SOCKET = 's',
    PASSED = 'm', /* with number and name */
    ZONE = 'z',
};

static void add_item(struct exec_state_writer *state, char kind, int fd)
{
    int *fds = realloc(state->fds, (state->fd_n + 1) * sizeof(*fds));

    assert(fd >= 0);
    if (fds != NULL) {
        state->fds = fds;
        fds[state->fd_n++] = fd;
    }
    if (fds != NULL && state->file != NULL) {
        fprintf(state->file, ":%c%d", kind, fd);
    } else if (state->file != NULL) {
        fclose(state->file);
        state->file = NULL;
    }
}

void exec_state_begin(
    struct exec_state_writer *state, int link, int lock, unsigned side, uint32_t serial)
{
    assert(side <= 1);
    *state = (struct exec_state_writer) { .fds = NULL };
    state->file = open_memstream(&state->text, &state->size);
    if (state->file == NULL)
        return;
    fprintf(state->file, "%s=%s:%c%d:%c%u,%lu", EXEC_STATE_VARIABLE, FORM, PARENT,
        (int)process_ops->self(), SLOTS, side, (unsigned long)serial);
    add_item(state, LINK, link);
    if (lock != -1)
        add_item(state, LOCK, lock);
}

void exec_state_add_socket(struct exec_state_writer *state, int fd)
{
    add_item(state, SOCKET, fd);
}

void exec_state_add_passed(struct exec_state_writer *state, const struct adopted_socket *passed)
{
    add_item(state, PASSED, passed->fd);
    if (state->file != NULL)
        fprintf(state->file, ",%d,%s", passed->number, passed->name);
}

void exec_state_add_zone(struct exec_state_writer *state, int fd)
{
    add_item(state, ZONE, fd);
}

int exec_state_end(struct exec_state_writer *state)
{
    FILE *file = state->file;

    state->file = NULL;
    return file != NULL && fclose(file) == 0 ? 0 : -1;
}

void exec_state_destroy(struct exec_state_writer *state)
{
    if (state->file != NULL)
        fclose(state->file);
    free(state->text);
    free(state->fds);
    *state = (struct exec_state_writer) { .fds = NULL };
}

/* Reading */

struct reader {
    struct exec_state *state;
    const char *wrong; /* with an item, or NULL */
};

/* Reads the number at the beginning of `rest`; *rest becomes the text behind ",", or NULL. */
static int64_t read_item_number(struct reader *reader, char **rest, int64_t most)
{
    const char *text = strsep(rest, ",");
    int64_t n = 0;

    if (text == NULL || number_parse(text, 0, most, &n) != NUMBER_OK)
        reader->wrong = "it has no number where one is expected";
    return n;
}

/* Reads a descriptor and makes it close-on-exec. */
static int read_item_descriptor(struct reader *reader, char **rest)
{
    int fd = (int)read_item_number(reader, rest, INT_MAX);

    if (reader->wrong == NULL && descriptor_set_inherited(fd, false) == -1)
        reader->wrong = "its descriptor is not open";
    return fd;
}

static void read_socket(struct reader *reader, char *rest, bool passed)
{
    struct adopted_socket one = { .from = ADOPTED_FROM_MASTER, .name = "" };

    one.fd = read_item_descriptor(reader, &rest);
    if (passed) {
        one.from = ADOPTED_FROM_MANAGER;
        one.number = (int)read_item_number(reader, &rest, INT_MAX);
        one.name = rest != NULL ? rest : "";
    }
    if (reader->wrong == NULL)
        reader->wrong = adopted_add(reader->state->sockets, &one);
}

static void read_state_item(struct reader *reader, char *item)
{
    struct exec_state *state = reader->state;
    char *rest = item + 1;
    int fd;

    switch (*item) {
    case PARENT:
        if (state->parent != 0)
            reader->wrong = "it stands there twice";
        else
            state->parent = (pid_t)read_item_number(reader, &rest, INT_MAX);
        break;
    case SLOTS:
        state->side = (unsigned)read_item_number(reader, &rest, 1);
        state->serial = (uint32_t)read_item_number(reader, &rest, UINT32_MAX - 1);
        break;
    case LINK:
        state->link = read_item_descriptor(reader, &rest);
        break;
    case LOCK:
        state->lock = read_item_descriptor(reader, &rest);
        break;
    case SOCKET:
    case PASSED:
        read_socket(reader, rest, *item == PASSED);
        break;
    case ZONE:
        fd = read_item_descriptor(reader, &rest);
        /* an unusable zone begins empty */
        if (reader->wrong == NULL && zones_adopt(&state->zones, state->sockets->arena, fd) == -1)
            descriptor_close(fd);
        break;
    default:
        reader->wrong = "it is of no known kind";
        break;
    }
}

static int refuse_item(struct log *log, const char *item, const char *wrong)
{
    log_write(log, LEVEL_EMERG, errno,
        "what the master process before has handed over (\"%s\") is not understood: %s", item,
        wrong);
    return -1;
}

/* Whether the parent process has written the text, which in all versions begins with its pid. */
static bool is_parents(struct reader *reader, char *item)
{
    bool is = item != NULL && *item == PARENT;

    if (is)
        read_state_item(reader, item);
    return is && reader->wrong == NULL && reader->state->parent > 0 &&
           reader->state->parent == process_ops->parent();
}

/* Reads the variable's value; -1 after an emerg line. */
static int read_state_text(struct exec_state *state, char *text, struct log *log)
{
    struct reader reader = { .state = state };
    const char *form = strsep(&text, ":");
    char *item;

    errno = 0;
    if (!is_parents(&reader, strsep(&text, ":"))) {
        log_write(log, LEVEL_WARN, 0,
            "the environment's " EXEC_STATE_VARIABLE
            " is not of the process that has started us, it is "
            "ignored");
        state->parent = 0;
        return 0;
    }
    if (strcmp(form, FORM) != 0)
        return refuse_item(log, form, "it has another form");
    while ((item = strsep(&text, ":")) != NULL) {
        char whole[64];

        snprintf(whole, sizeof(whole), "%s", item);
        read_state_item(&reader, item);
        if (reader.wrong != NULL)
            return refuse_item(log, whole, reader.wrong);
    }
    return state->link != -1 ? 0 : refuse_item(log, "", "it lacks the link");
}

/* Removes the variable from the environment and reads the value. */
static int take_state(struct exec_state *state, struct log *log)
{
    const char *value = getenv(EXEC_STATE_VARIABLE);
    char *text = value != NULL ? strdup(value) : NULL;
    int status = text == NULL ? 0 : read_state_text(state, text, log);

    unsetenv(EXEC_STATE_VARIABLE);
    free(text);
    assert(status == -1 || (state->link == -1) == (state->parent == 0));
    return status;
}

int exec_state_take(struct exec_state *state, struct log *log)
{
    *state = (struct exec_state) { .link = -1, .lock = -1 };
    zones_init(&state->zones);
    state->sockets = adopted_create();
    if (state->sockets == NULL) {
        log_write(log, LEVEL_EMERG, errno, "no memory for the sockets that were passed");
        return -1;
    }
    if (fdstore_adopt(state->sockets, process_ops->self(), log) == -1)
        return -1;
    return take_state(state, log);
}

void exec_state_done(struct exec_state *state)
{
    assert(state->link >= -1 && state->lock >= -1);
    zones_close(&state->zones);
    descriptor_close(state->link);
    descriptor_close(state->lock);
    state->link = state->lock = -1;
    adopted_destroy(&state->sockets);
}
