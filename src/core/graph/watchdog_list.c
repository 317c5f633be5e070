// graph/watchdog_list.c — all watchdogs, for a graph that goes.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "graph/watchdog.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // taken before a watchdog's own
static rondo__watchdog_link *watchdogs;                   // guarded by lock

void rondo__watchdog_list_add(rondo__watchdog_link *link) {
    pthread_mutex_lock(&lock);
    link->next = watchdogs;
    watchdogs = link;
    pthread_mutex_unlock(&lock);
}

void rondo__watchdog_list_remove(rondo__watchdog_link *link) {
    pthread_mutex_lock(&lock);
    rondo__watchdog_link **at = &watchdogs;
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    pthread_mutex_unlock(&lock);
}

void rondo__watchdog_list_forget(const rondo_graph *graph) {
    pthread_mutex_lock(&lock);
    for (rondo__watchdog_link *link = watchdogs; link != NULL; link = link->next) {
        link->forget(link, graph);
    }
    pthread_mutex_unlock(&lock);
}
