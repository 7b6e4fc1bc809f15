/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes as /proc shows them. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Waits for a child with a deadline: the exit code, or 128 and the number of the signal. */
int proc_wait(pid_t pid);
/* Waits for all of our children to end. */
void proc_reap_orphans(void);
/* Fails if this process has a child. */
void proc_check_childless(void);

/* The state's letter as in ps; 0: no process. */
char proc_state(pid_t pid);
pid_t proc_parent(pid_t pid);
/* Children still running, by pid; at most `max`. */
unsigned proc_children(pid_t parent, pid_t *list, unsigned max);
unsigned proc_child_n(pid_t parent);
bool proc_has(const pid_t *list, unsigned n, pid_t pid);

/* Children with the title in the command line. */
unsigned proc_titled(pid_t parent, const char *title, pid_t *list, unsigned max);

/* Open descriptors. */
unsigned proc_descriptors(pid_t pid);
/* A file of /proc/PID with blanks for zeros, valid until the next call; "" after the process's
 * end. */
const char *proc_text(pid_t pid, const char *name);
/* The target of a link of /proc/PID; valid until the next call. */
const char *proc_link(pid_t pid, const char *name);

/* A set of ports. */
struct proc_ports {
    uint8_t bits[8192];
};

static inline bool proc_ports_have(const struct proc_ports *ports, in_port_t port)
{
    return (ports->bits[port / 8] >> port % 8 & 1) != 0;
}

/* Adds the ports of the clients whose connections to the port `server` the process holds. */
void proc_add_clients(pid_t pid, in_port_t server, struct proc_ports *ports);
/* The server's end of a client's IPv4 connection, once accepted: a number by which the holding
 * process can be found among a process's children. 0: none. */
unsigned long proc_connection(int client);
/* Whether the server has received all that the client of an IPv4 connection has sent. */
bool proc_has_received(int client);
pid_t proc_holder(pid_t parent, unsigned long connection);
/* proc_holder() of proc_connection(). */
pid_t proc_server_of(pid_t parent, int client);

/* Stops the process, and returns when stopped. */
void proc_freeze(pid_t pid);
