/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the variable: a list of items behind ":", a character that no name of a service
 * manager has. An item is a letter for its kind, a number, mostly a descriptor, and further values
 * behind ",". */
#include "upgrade/exec_state.h"

#include "base/number.h"
#include "keeper/ticket_memory.h"
#include "os/descriptor.h"
#include "pool/layout.h"
#include "process/process_ops.h"
#include "systemd/fdstore.h"
#include "tls/engine.h"

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
    PASSED = 'm',  /* with number and name */
    TICKETS = 't', /* with the version of the layout */
    ZONE = 'z',
};

/* Adds a descriptor; false without memory. */
static bool add_item(struct exec_state_writer *state, FILE *file, char kind, int fd)
{
    int *fds = realloc(state->fds, (state->fd_n + 1) * sizeof(*fds));

    assert(fd >= 0);
    if (fds == NULL)
        return false;
    state->fds = fds;
    fds[state->fd_n++] = fd;
    fprintf(file, ":%c%d", kind, fd);
    return true;
}

int exec_state_write(struct exec_state_writer *state, const struct pool *pool, int lock, int link)
{
    const struct cycle *cycle = pool->serving->cycle;
    unsigned side = 1 - pool->shared->half;
    const struct adopted_socket *passed;
    const struct listener *listener;
    const struct zone *zone;
    FILE *file;
    bool ok;

    assert(side <= 1 && link != -1);
    *state = (struct exec_state_writer) { .fds = NULL };
    file = open_memstream(&state->text, &state->size);
    if (file == NULL)
        return -1;
    fprintf(file, "%s=%s:%c%d:%c%u,%lu", EXEC_STATE_VARIABLE, FORM, PARENT,
        (int)process_ops->self(), SLOTS, side, (unsigned long)shared_serial(pool->shared));
    ok = add_item(state, file, LINK, link) && (lock == -1 || add_item(state, file, LOCK, lock));
    STAILQ_FOREACH (passed, &pool->adopted->sockets, link)
        if (passed->fd != -1) {
            ok = add_item(state, file, PASSED, passed->fd) && ok;
            fprintf(file, ",%d,%s", passed->number, passed->name);
        }
    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        for (unsigned i = listener->kept_n; i < listener->fd_n; i++)
            if (listener->fds[i] != -1)
                ok = add_item(state, file, SOCKET, listener->fds[i]) && ok;
    STAILQ_FOREACH (zone, &cycle->zones, link)
        ok = add_item(state, file, ZONE, zone->segment.fd) && ok;
    if (pool->tickets != -1) {
        ok = add_item(state, file, TICKETS, pool->tickets) && ok;
        fprintf(file, ",%d", TLS_TICKETS_LAYOUT);
    }
    return fclose(file) == 0 && ok ? 0 : -1;
}

void exec_state_destroy(struct exec_state_writer *state)
{
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
        reader->wrong = "a number is missing";
    return n;
}

/* Reads a descriptor and makes it close-on-exec. */
static int read_item_descriptor(struct reader *reader, char **rest)
{
    int fd = (int)read_item_number(reader, rest, INT_MAX);

    if (reader->wrong == NULL && descriptor_set_inherited(fd, false) == -1)
        reader->wrong = "the descriptor is not open";
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

/* Unusable memory is not taken, and new memory is made. */
static void read_tickets(struct reader *reader, char *rest)
{
    struct exec_state *state = reader->state;
    int fd = read_item_descriptor(reader, &rest);
    uint32_t layout = (uint32_t)read_item_number(reader, &rest, UINT32_MAX);

    if (reader->wrong != NULL)
        return;
    if (state->tickets == -1 && ticket_memory_fits(fd, layout))
        state->tickets = fd;
    else
        descriptor_close(fd);
}

static void read_state_item(struct reader *reader, char *item)
{
    struct exec_state *state = reader->state;
    char *rest = item + 1;
    int fd;

    switch (*item) {
    case PARENT:
        if (state->parent != 0)
            reader->wrong = "the item stands there twice";
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
    case TICKETS:
        read_tickets(reader, rest);
        break;
    case ZONE:
        fd = read_item_descriptor(reader, &rest);
        /* an unusable zone begins empty */
        if (reader->wrong == NULL && zones_adopt(&state->zones, state->sockets->arena, fd) == -1)
            descriptor_close(fd);
        break;
    default:
        reader->wrong = "the kind is unknown";
        break;
    }
}

static int refuse_item(struct log *log, const char *item, const char *wrong)
{
    log_write(log, LEVEL_EMERG, errno,
        "an item of the former master process (\"%s\") is not understood: %s", item, wrong);
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
            " is not of the parent process, and is ignored");
        state->parent = 0;
        return 0;
    }
    if (strcmp(form, FORM) != 0)
        return refuse_item(log, form, "the form is different");
    while ((item = strsep(&text, ":")) != NULL) {
        char whole[64];

        snprintf(whole, sizeof(whole), "%s", item);
        read_state_item(&reader, item);
        if (reader.wrong != NULL)
            return refuse_item(log, whole, reader.wrong);
    }
    return state->link != -1 ? 0 : refuse_item(log, "", "the link is missing");
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
    *state = (struct exec_state) { .link = -1, .lock = -1, .tickets = -1 };
    zones_init(&state->zones);
    state->sockets = adopted_create();
    if (state->sockets == NULL) {
        log_write(log, LEVEL_EMERG, errno, "no memory for the passed sockets");
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
    descriptor_close(state->tickets);
    state->link = state->lock = state->tickets = -1;
    adopted_destroy(&state->sockets);
}
