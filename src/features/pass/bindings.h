/* SPDX-License-Identifier: BSD-2-Clause */
/* The listen addresses of a configuration, each with the server that gets the clients. */
#pragma once

#include "net/address.h"

struct apply;
struct binding;

/* A binding by its address. */
struct binding_place {
    struct binding *binding;
    bool takes_ipv4; /* a wildcard of IPv6 with a socket that receives IPv4, too */
};

/* The bindings of a configuration, sorted by their addresses. */
struct binding_list {
    struct binding_place *places;
    unsigned n;
};

/* Lists all bindings, once the listeners are known; -1 after a report. */
int pass_bindings_list(struct apply *apply, struct binding_list *list);
/* Sorts the list by the addresses. */
void pass_bindings_sort(struct binding_list *list);
/* Returns the binding for the clients of the address; NULL: no listener there. */
struct binding *pass_bindings_find(const struct binding_list *list, const struct address *address);
