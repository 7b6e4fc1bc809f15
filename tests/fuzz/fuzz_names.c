/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of servers of names: a byte for the type of the question, then the message. Reads stay
 * within bounds, and every name in the result is a valid question. */
#include "fuzz/fuzz.h"

#include "names/message.h"

#include <stdlib.h>
#include <string.h>

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_name(const char *name)
{
    require(strlen(name) < MESSAGE_NAME && (strcmp(name, ".") == 0 || message_is_name(name)));
}

static void check_items(const struct message *message)
{
    require(message->n > 0 && message->n <= MESSAGE_ITEMS && message->text_n <= MESSAGE_TEXT);
    for (unsigned i = 0; i < message->n; i++) {
        require(message->items[i].ttl <= MESSAGE_TTL_MOST);
        require(message->items[i].ttl >= message->ttl);
        if (message->type == MESSAGE_SRV || message->type == MESSAGE_PTR) {
            require(message->items[i].name < message->text_n);
            check_name(message->text + message->items[i].name);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint16_t types[] = { MESSAGE_A, MESSAGE_PTR, MESSAGE_AAAA, MESSAGE_SRV };
    static struct message message;
    enum message_status status;
    uint8_t *copy;

    if (size == 0)
        return 0;
    copy = malloc(size - 1 > 0 ? size - 1 : 1); /* a sanitizer knows where it ends */
    require(copy != NULL);
    memcpy(copy, data + 1, size - 1);
    memset(&message, 0xaa, sizeof(message));
    status = message_read(copy, size - 1, types[data[0] % 4], &message);
    require(message_why(status) != NULL);
    if (status == MESSAGE_FOUND) {
        check_name(message.canonical);
        check_items(&message);
    }
    free(copy);
    return 0;
}
