/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the variable: a list of items behind ":", a character that no name of a service
 * manager has. An item is a letter for its kind, a number, mostly a descriptor, and further values
 * behind ",". */
#include "upgrade/exec_state.h"

#include "base/number.h"
#include "os/descriptor.h"
#include "process/process_ops.h"
#include "systemd/listen_fds.h"

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

static void add_fd(struct exec_state_writer *handover, int fd)
{
    int *fds;

    assert(fd >= 0);
    fds = realloc(handover->fds, (handover->fd_n + 1) * sizeof(*fds));

    if (fds == NULL) {
        if (handover->file != NULL)
            fclose(handover->file);
        handover->file = NULL;
        return;
    }
    handover->fds = fds;
    fds[handover->fd_n++] = fd;
}

static void add_item(struct exec_state_writer *handover, char kind, int fd)
{
    add_fd(handover, fd);
    if (handover->file != NULL)
        fprintf(handover->file, ":%c%d", kind, fd);
}

void exec_state_begin(
    struct exec_state_writer *handover, int link, int lock, unsigned side, uint32_t serial)
{
    assert(side <= 1);
    *handover = (struct exec_state_writer) { .fds = NULL };
    handover->file = open_memstream(&handover->text, &handover->size);
    if (handover->file == NULL)
        return;
    fprintf(handover->file, "%s=%s:%c%d:%c%u,%lu", EXEC_STATE_VARIABLE, FORM, PARENT,
        (int)process_ops->self(), SLOTS, side, (unsigned long)serial);
    add_item(handover, LINK, link);
    if (lock != -1)
        add_item(handover, LOCK, lock);
}

void exec_state_add_socket(struct exec_state_writer *handover, int fd)
{
    add_item(handover, SOCKET, fd);
}

void exec_state_add_passed(struct exec_state_writer *handover, const struct adopted_socket *passed)
{
    add_item(handover, PASSED, passed->fd);
    if (handover->file != NULL)
        fprintf(handover->file, ",%d,%s", passed->number, passed->name);
}

void exec_state_add_zone(struct exec_state_writer *handover, int fd)
{
    add_item(handover, ZONE, fd);
}

int exec_state_end(struct exec_state_writer *handover)
{
    FILE *file = handover->file;

    handover->file = NULL;
    return file != NULL && fclose(file) == 0 ? 0 : -1;
}

void exec_state_destroy(struct exec_state_writer *handover)
{
    if (handover->file != NULL)
        fclose(handover->file);
    free(handover->text);
    free(handover->fds);
    *handover = (struct exec_state_writer) { .fds = NULL };
}

/* Reading */

struct reader {
    struct exec_state *inheritance;
    const char *wrong; /* with an item, or NULL */
};

/* Reads the number at the beginning of `rest`; *rest becomes the text behind ",", or NULL. */
static int64_t read_number(struct reader *reader, char **rest, int64_t most)
{
    const char *text = strsep(rest, ",");
    int64_t n = 0;

    if (text == NULL || number_parse(text, 0, most, &n) != NUMBER_OK)
        reader->wrong = "it has no number where one is expected";
    return n;
}

/* Reads a descriptor and makes it close-on-exec. */
static int read_descriptor(struct reader *reader, char **rest)
{
    int fd = (int)read_number(reader, rest, INT_MAX);

    if (reader->wrong == NULL && descriptor_set_inherited(fd, false) == -1)
        reader->wrong = "its descriptor is not open";
    return fd;
}

static void read_socket(struct reader *reader, char *rest, bool passed)
{
    struct adopted_socket one = { .from = ADOPTED_FROM_MASTER, .name = "" };

    one.fd = read_descriptor(reader, &rest);
    if (passed) {
        one.from = ADOPTED_FROM_MANAGER;
        one.number = (int)read_number(reader, &rest, INT_MAX);
        one.name = rest != NULL ? rest : "";
    }
    if (reader->wrong == NULL)
        reader->wrong = adopted_add(reader->inheritance->sockets, &one);
}

static void read_zone(struct reader *reader, char *rest)
{
    struct exec_state *inheritance = reader->inheritance;
    int fd = read_descriptor(reader, &rest);

    /* an unusable zone begins empty */
    if (reader->wrong == NULL &&
        zones_adopt(&inheritance->zones, inheritance->sockets->arena, fd) == -1)
        descriptor_close(fd);
}

static void read_item(struct reader *reader, char *item)
{
    struct exec_state *inheritance = reader->inheritance;
    char *rest = item + 1;

    switch (*item) {
    case PARENT:
        if (inheritance->parent != 0)
            reader->wrong = "it stands there twice";
        else
            inheritance->parent = (pid_t)read_number(reader, &rest, INT_MAX);
        break;
    case SLOTS:
        inheritance->side = (unsigned)read_number(reader, &rest, 1);
        inheritance->serial = (uint32_t)read_number(reader, &rest, UINT32_MAX - 1);
        break;
    case LINK:
        inheritance->link = read_descriptor(reader, &rest);
        break;
    case LOCK:
        inheritance->lock = read_descriptor(reader, &rest);
        break;
    case SOCKET:
    case PASSED:
        read_socket(reader, rest, *item == PASSED);
        break;
    case ZONE:
        read_zone(reader, rest);
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

/* Whether the parent process has written the text: the first item, in all versions, is the writer's
 * pid. */
static bool is_parents(struct reader *reader, char *item)
{
    bool is = item != NULL && *item == PARENT;

    if (is)
        read_item(reader, item);
    return is && reader->wrong == NULL && reader->inheritance->parent > 0 &&
           reader->inheritance->parent == process_ops->parent();
}

/* Reads the variable's value; -1 after an emerg line. */
static int read_state(struct exec_state *inheritance, char *text, struct log *log)
{
    struct reader reader = { .inheritance = inheritance };
    const char *form = strsep(&text, ":");
    char *item;

    errno = 0;
    if (!is_parents(&reader, strsep(&text, ":"))) {
        log_write(log, LEVEL_WARN, 0,
            "the environment's " EXEC_STATE_VARIABLE
            " is not of the process that has started us, it is "
            "ignored");
        inheritance->parent = 0;
        return 0;
    }
    if (strcmp(form, FORM) != 0)
        return refuse_item(log, form, "it has another form");
    while ((item = strsep(&text, ":")) != NULL) {
        char whole[64];

        snprintf(whole, sizeof(whole), "%s", item);
        read_item(&reader, item);
        if (reader.wrong != NULL)
            return refuse_item(log, whole, reader.wrong);
    }
    return inheritance->link != -1 ? 0 : refuse_item(log, "", "it lacks the link");
}

/* Removes the variable from the environment and reads the value. */
static int take_state(struct exec_state *inheritance, struct log *log)
{
    const char *value = getenv(EXEC_STATE_VARIABLE);
    char *text = value != NULL ? strdup(value) : NULL;
    int status = text == NULL ? 0 : read_state(inheritance, text, log);

    unsetenv(EXEC_STATE_VARIABLE);
    free(text);
    assert(status == -1 || (inheritance->link == -1) == (inheritance->parent == 0));
    return status;
}

int exec_state_take(struct exec_state *inheritance, struct log *log)
{
    *inheritance = (struct exec_state) { .link = -1, .lock = -1 };
    zones_init(&inheritance->zones);
    inheritance->sockets = adopted_create();
    if (inheritance->sockets == NULL) {
        log_write(log, LEVEL_EMERG, errno, "no memory for the sockets that were passed");
        return -1;
    }
    if (listen_fds_adopt(inheritance->sockets, process_ops->self(), log) == -1)
        return -1;
    return take_state(inheritance, log);
}

void exec_state_done(struct exec_state *inheritance)
{
    assert(inheritance->link >= -1 && inheritance->lock >= -1);
    zones_close(&inheritance->zones);
    descriptor_close(inheritance->link);
    descriptor_close(inheritance->lock);
    inheritance->link = inheritance->lock = -1;
    adopted_destroy(&inheritance->sockets);
}
