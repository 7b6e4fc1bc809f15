/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and replies to questions. Every message has the greatest serial of the sender's worker
 * slots; slots of a later upgrade begin behind the serial. Received numbers are checked by the
 * pool, as a worker's are; only their range is checked here. */
#include "upgrade/inboxes.h"

#include "os/descriptor.h"
#include "pool/outbox.h"
#include "pool/worker.h"
#include "shm/slot.h"
#include "upgrade/upgrade.h"
#include "worker/messages.h"

#include <assert.h>
#include <errno.h>

/* Whether workers of both processes exchange messages. A line is logged where forms differ; a new
 * process without a sent form is waited for. */
static bool is_understood(struct upgrade *upgrade)
{
    struct upgrade_inboxes *inboxes = &upgrade->inboxes;

    CHECK_KIND(upgrade, UPGRADE_KIND);
    assert(inboxes->form == 0 || upgrade->phase != UPGRADE_NONE);
    if (upgrade->link.fd == -1 || inboxes->form == MESSAGES_FORM)
        return upgrade->link.fd != -1;
    if (inboxes->refused || (inboxes->form == 0 && upgrade->phase >= UPGRADE_STARTING))
        return false;
    inboxes->refused = true;
    log_write(upgrade->log, LEVEL_NOTICE, 0,
        "workers of process %d and of this process exchange no messages: the forms of "
        "messages differ (%d, here %d)",
        (int)upgrade->other, (int)inboxes->form, MESSAGES_FORM);
    return false;
}

static void begin_message(struct upgrade *upgrade, struct json *json)
{
    upgrade_link_begin(json);
    json_number(json, "serial", shared_serial(upgrade->pool->shared));
}

int upgrade_ask_inboxes(struct upgrade *upgrade, uint32_t incarnation, uint32_t asker)
{
    struct json json;
    int status;

    assert(incarnation != asker);
    if (!is_understood(upgrade)) {
        errno = ENOTCONN;
        return -1;
    }
    assert(upgrade->inboxes.form == MESSAGES_FORM);
    begin_message(upgrade, &json);
    if (incarnation == POOL_ASK_ALL) {
        json_bool(&json, "workers_wanted", true);
    } else {
        json_number(&json, "inbox_wanted", incarnation);
        json_number(&json, "asker", asker);
    }
    status = upgrade_link_send(&upgrade->link, &json, -1);
    if (status == -1)
        errno = EAGAIN;
    return status;
}

void upgrade_tell_gone(struct upgrade *upgrade, uint32_t incarnation)
{
    struct json json;

    CHECK_KIND(upgrade, UPGRADE_KIND);
    if (upgrade->link.fd == -1 || upgrade->inboxes.form != MESSAGES_FORM)
        return;
    begin_message(upgrade, &json);
    json_number(&json, "gone", incarnation);
    upgrade_link_tell(upgrade, &json, -1);
}

static void reply_workers(struct upgrade *upgrade)
{
    uint32_t own[SLOT_MAX];
    unsigned n = pool_others_list_own(upgrade->pool, own);
    struct json json;

    assert(n <= SLOT_MAX);
    begin_message(upgrade, &json);
    json_array(&json, "workers");
    for (unsigned i = 0; i < n; i++)
        json_number(&json, NULL, own[i]);
    json_close(&json);
    upgrade_link_tell(upgrade, &json, -1);
}

static void reply_inbox(struct upgrade *upgrade, uint32_t incarnation, uint32_t asker)
{
    bool found = pool_worker_of_incarnation(upgrade->pool, incarnation) != NULL;
    int fd = pool_others_find_inbox(upgrade->pool, incarnation);
    struct json json;

    assert(found || fd == -1);
    begin_message(upgrade, &json);
    json_number(&json, "inbox", incarnation);
    json_number(&json, "asker", asker);
    json_bool(&json, "found", found);
    upgrade_link_tell(upgrade, &json, fd);
}

/* A number of the message, or `otherwise`. */
static uint32_t message_number(struct json_value message, const char *name, uint32_t otherwise)
{
    int64_t number = json_integer(json_member(message, name), -1);

    return number >= 0 && number < UINT32_MAX ? (uint32_t)number : otherwise;
}

static void read_workers(struct upgrade *upgrade, struct json_value list)
{
    struct json_value worker = { NULL, 0 };
    uint32_t others[SLOT_MAX];
    unsigned n = 0;

    while (n < SLOT_MAX && (worker = json_next(list, worker)).text != NULL) {
        int64_t number = json_integer(worker, -1);

        if (number >= 0 && number < UINT32_MAX)
            others[n++] = (uint32_t)number;
    }
    pool_others_came(upgrade->pool, others, n);
}

bool upgrade_inboxes_handle(struct upgrade *upgrade, struct json_value message, int fd)
{
    uint32_t wanted = message_number(message, "inbox_wanted", UINT32_MAX);
    uint32_t inbox = message_number(message, "inbox", UINT32_MAX);
    uint32_t gone = message_number(message, "gone", UINT32_MAX);
    uint32_t asker = message_number(message, "asker", 0);
    struct json_value workers = json_member(message, "workers");

    assert(upgrade->phase != UPGRADE_NONE);
    if (json_member(message, "inboxes").text != NULL)
        upgrade->inboxes.form = message_number(message, "inboxes", 0);
    if (json_member(message, "serial").text == NULL)
        return false;
    if (upgrade->inboxes.form == MESSAGES_FORM) {
        shared_note_serial(upgrade->pool->shared, message_number(message, "serial", 0));
        if (json_is_true(json_member(message, "workers_wanted")))
            reply_workers(upgrade);
        if (workers.text != NULL)
            read_workers(upgrade, workers);
        if (wanted != UINT32_MAX)
            reply_inbox(upgrade, wanted, asker);
        if (inbox != UINT32_MAX)
            pool_others_inbox_came(
                upgrade->pool, inbox, asker, json_is_true(json_member(message, "found")), fd);
        if (gone != UINT32_MAX)
            pool_others_note_gone(upgrade->pool, gone);
    }
    descriptor_close(fd);
    return true;
}

void upgrade_inboxes_end(struct upgrade *upgrade)
{
    assert(upgrade->link.fd == -1);
    if (upgrade->inboxes.form == MESSAGES_FORM)
        pool_others_end(upgrade->pool);
    upgrade->inboxes = (struct upgrade_inboxes) { .form = 0 };
}
