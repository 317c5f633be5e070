// random/generator_group.c — the locks of generators: one for all those that a graph uses together.
//
// A replay needs all generators of its graph at once, and to take sixteen locks one after another
// cost more than all the rest of it. So generators are put into groups, and a group has one lock:
//
//      created:                     1      2      3      4          a group each
//      a graph of {2, 3} replays:   1      2 <--- 3      4          3 follows 2
//      a graph of {1, 3} replays:   1 <--- 2 <--- 3      4          and all of them 1
//
// Groups only grow, by the first replay of a graph whose generators are in several: the one with
// the higher number follows the other, under its own lock and no other's, so that nobody waits for
// a lock while holding one. Numbers go down along the arrows, so there are no rings, whoever unites
// what meanwhile. A group that follows another one is never left by that; whoever waited for its
// lock finds that it follows, and goes on to the next. Each generator remembers the last group that
// was found for it (`group`), which at rest is the one whose lock counts.
//
// A replay takes one lock, and looks at each generator whether it still is in that group. That
// order of locks is no question any more is the other gain: graphs with the same generators, also
// inside of each other, take the same lock.
//
// What it costs: threads whose generators were ever used together wait for each other's launches,
// even if they do not share one now.
//
// What was rejected: a word for each generator that one thread takes with an exchange (5 to 6 ns
// each by estimate, where this takes 1 to 2, and a waiting thread would spin through another's
// launch); uniting at the end of the capture (also graphs that are never replayed would).
#include "base/error.h"
#include "base/memory.h"
#include "random/random_internal.h"

rondo__random_group *rondo__random_group_create(uint32_t number) {
    rondo__random_group *group = rondo__calloc(1, sizeof *group);
    if (group != NULL) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
        pthread_mutex_init(&group->lock, &attributes);
        pthread_mutexattr_destroy(&attributes);
        atomic_init(&group->reference_count, 1);
        group->number = number;
    }
    return group;
}

void rondo__random_group_release(rondo__random_group *group) {
    while (group != NULL &&
           atomic_fetch_sub_explicit(&group->reference_count, 1, memory_order_acq_rel) == 1) {
        rondo__random_group *followed = group->followed;
        pthread_mutex_destroy(&group->lock);
        rondo__free(group);
        group = followed;
    }
}

rondo__random_group *rondo__generator_lock(rondo_generator *generator) {
    rondo__random_group *group = atomic_load_explicit(&generator->group, memory_order_acquire);
    for (;;) {
        pthread_mutex_lock(&group->lock);
        rondo__random_group *followed = group->followed;
        if (__builtin_expect(followed == NULL, 1)) {
            group->depth += 1;
            return group;
        }
        pthread_mutex_unlock(&group->lock);
        // Only ever forward: who comes late with an old answer changes nothing.
        if (atomic_compare_exchange_strong(&generator->group, &group, followed)) {
            group = followed;
        }
    }
}

void rondo__random_group_unlock(rondo__random_group *group) {
    group->depth -= 1;
    pthread_mutex_unlock(&group->lock);
}

void rondo__generator_unlock(rondo_generator *generator) {
    rondo__random_group_unlock(atomic_load_explicit(&generator->group, memory_order_relaxed));
}

static rondo__random_group *find_group(rondo_generator *generator) {
    rondo__random_group *group = rondo__generator_lock(generator);
    rondo__random_group_unlock(group);
    return group;
}

// Neither group goes: the generators keep theirs, and so all that those follow.
rondo_status rondo__generator_unite(rondo_generator *a, rondo_generator *b) {
    rondo__random_group *winner = find_group(a);
    rondo__random_group *loser = find_group(b);
    rondo_status status = RONDO_STATUS_OK;
    if (winner == loser) {
        return status;
    }
    if (winner->number > loser->number) {
        rondo__random_group *higher = winner;
        winner = loser;
        loser = higher;
    }
    pthread_mutex_lock(&loser->lock);
    if (loser->depth > 0) {
        // This thread uses a generator of it further up, and counts on its lock.
        status = RONDO_FAIL_AS("rondo_graph_replay", STATE,
                               "generators %u and %u are used together for the first time, by a "
                               "replay inside a function that rondo_generator_launch calls for one "
                               "of them or for one used with them; replay the graph once before",
                               (unsigned)a->number, (unsigned)b->number);
    } else if (loser->followed == NULL) {
        atomic_fetch_add_explicit(&winner->reference_count, 1, memory_order_relaxed);
        loser->followed = winner;
    }
    pthread_mutex_unlock(&loser->lock);
    return status;
}
