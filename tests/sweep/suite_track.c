// The list of what a case has made; see suite_track.h.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#define SUITE_TRACK_PLAIN
#include "backend/backend.h"
#include "cache/background.h"
#include "cache/cache_object.h"
#include "device/scope_list.h"
#include "graph/graph_object.h"
#include "learn/learned.h"
#include "rondo/pool.h"
#include "suite_track.h"

// In the order in which they are given back when a case stopped in its middle: whoever uses comes
// before what is used.
typedef enum kind {
    KIND_THREAD,
    KIND_CACHE,
    KIND_STEPPER,
    KIND_LEARNED,
    KIND_GRAPH,
    KIND_POOL_BLOCK,
    KIND_LATE_BLOCK,  // freed in a capture, whose failure would undo that, or in vain
    KIND_POOL,
    KIND_ARENA,
    KIND_GENERATOR,
    KIND_EVENT,
    KIND_STREAM,
    KIND_MEMORY,
    KIND_DEVICE,
    KIND_COUNT,
} kind;

typedef struct object {
    struct object *next;
    kind kind;
    void *address;
    void *owner;  // of memory its device, of a block its pool
    pthread_t thread;
    int reference_count;
} object;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object *objects;  // guarded by lock; latest first

static bool has_made_threads;  // guarded by lock

bool suite_track_has_made_threads(void) {
    pthread_mutex_lock(&lock);
    bool has_made = has_made_threads;
    pthread_mutex_unlock(&lock);
    return has_made;
}

static object **find(kind wanted, const void *address) {
    object **link = &objects;
    while (*link != NULL && ((*link)->kind != wanted || (*link)->address != address)) {
        link = &(*link)->next;
    }
    return link;
}

static void add(object wanted) {
    pthread_mutex_lock(&lock);
    object **link = find(wanted.kind, wanted.address);
    has_made_threads = has_made_threads || wanted.kind == KIND_THREAD;
    if (*link != NULL && wanted.kind != KIND_THREAD) {
        ++(*link)->reference_count;
    } else {
        object *entry = malloc(sizeof *entry);
        if (entry == NULL) {
            abort();
        }
        *entry = wanted;
        entry->reference_count = 1;
        entry->next = objects;
        objects = entry;
    }
    pthread_mutex_unlock(&lock);
}

static void drop(kind wanted, const void *address) {
    pthread_mutex_lock(&lock);
    object **link = find(wanted, address);
    object *entry = *link;
    if (entry != NULL && --entry->reference_count == 0) {
        *link = entry->next;
        free(entry);
    }
    pthread_mutex_unlock(&lock);
}

// Whether a call that runs a function of the program holds it, so that it is not destroyed.
static bool *get_hold(kind what, void *address) {
    switch (what) {
        case KIND_STREAM:
            return &((rondo_stream *)address)->is_lent;
        case KIND_GRAPH:
            return &((rondo_graph *)address)->is_in_step;
        case KIND_CACHE:
            return &((rondo_graph_cache *)address)->is_in_step;
        case KIND_LEARNED:
            return &((rondo_learned *)address)->is_running;
        default:
            return NULL;
    }
}

// It is about to be destroyed, which a call that holds it refuses.
static void drop_unless_held(kind what, void *address) {
    const bool is_background =
        what == KIND_CACHE && address != NULL &&
        rondo__background_is_here(((rondo_graph_cache *)address)->background);
    if (address != NULL && !*get_hold(what, address) && !is_background) {
        drop(what, address);
    }
}

// ---- the calls --------------------------------------------------------------------------------

rondo_status suite_track_open_device(const char *name, rondo_device **out_device) {
    rondo_status status = rondo_device_open(name, out_device);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_DEVICE, .address = *out_device});
    }
    return status;
}

void suite_track_retain_device(rondo_device *device) {
    rondo_device_retain(device);
    add((object){.kind = KIND_DEVICE, .address = device});
}

void suite_track_release_device(rondo_device *device) {
    drop(KIND_DEVICE, device);
    rondo_device_release(device);
}

rondo_status suite_track_allocate(rondo_device *device, rondo_memory_kind memory_kind, size_t bytes,
                                  void **out_address) {
    rondo_status status = rondo_memory_allocate(device, memory_kind, bytes, out_address);
    if (status == RONDO_STATUS_OK && *out_address != NULL) {
        add((object){.kind = KIND_MEMORY, .address = *out_address, .owner = device});
    }
    return status;
}

void suite_track_free(rondo_device *device, void *address) {
    drop(KIND_MEMORY, address);
    rondo_memory_free(device, address);
}

rondo_status suite_track_create_stream(rondo_device *device, const rondo_stream_options *options,
                                       rondo_stream **out_stream) {
    rondo_status status = rondo_stream_create(device, options, out_stream);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_STREAM, .address = *out_stream});
    }
    return status;
}

rondo_status suite_track_wrap_stream(rondo_device *device, void *native,
                                     rondo_stream **out_stream) {
    rondo_status status = rondo_stream_wrap(device, native, out_stream);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_STREAM, .address = *out_stream});
    }
    return status;
}

void suite_track_destroy_stream(rondo_stream *stream) {
    drop_unless_held(KIND_STREAM, stream);
    rondo_stream_destroy(stream);
}

rondo_status suite_track_create_event(rondo_device *device, uint32_t flags,
                                      rondo_event **out_event) {
    rondo_status status = rondo_event_create(device, flags, out_event);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_EVENT, .address = *out_event});
    }
    return status;
}

void suite_track_destroy_event(rondo_event *event) {
    drop(KIND_EVENT, event);
    rondo_event_destroy(event);
}

rondo_status suite_track_create_graph(rondo_device *device, const rondo_graph_options *options,
                                      rondo_graph **out_graph) {
    rondo_status status = rondo_graph_create(device, options, out_graph);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_GRAPH, .address = *out_graph});
    }
    return status;
}

rondo_status suite_track_clone_graph(rondo_graph *graph, const char *label,
                                     rondo_graph **out_clone) {
    rondo_status status = rondo_graph_clone(graph, label, out_clone);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_GRAPH, .address = *out_clone});
    }
    return status;
}

void suite_track_destroy_graph(rondo_graph *graph) {
    drop_unless_held(KIND_GRAPH, graph);
    rondo_graph_destroy(graph);
}

rondo_status suite_track_create_cache(rondo_device *device,
                                      const rondo_graph_cache_options *options,
                                      rondo_graph_cache **out_cache) {
    rondo_status status = rondo_graph_cache_create(device, options, out_cache);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_CACHE, .address = *out_cache});
    }
    return status;
}

void suite_track_destroy_cache(rondo_graph_cache *cache) {
    drop_unless_held(KIND_CACHE, cache);
    rondo_graph_cache_destroy(cache);
}

rondo_status suite_track_create_stepper(rondo_device *device, const rondo_stepper_options *options,
                                        rondo_stepper **out_stepper) {
    rondo_status status = rondo_stepper_create(device, options, out_stepper);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_STEPPER, .address = *out_stepper});
    }
    return status;
}

void suite_track_destroy_stepper(rondo_stepper *stepper) {
    drop(KIND_STEPPER, stepper);
    rondo_stepper_destroy(stepper);
}

rondo_status suite_track_create_learned(rondo_device *device, const rondo_learned_options *options,
                                        const rondo_argument *arguments, size_t argument_count,
                                        rondo_learned_function function, void *user_data,
                                        rondo_learned **out_learned) {
    rondo_status status = rondo_learned_create(device, options, arguments, argument_count, function,
                                               user_data, out_learned);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_LEARNED, .address = *out_learned});
    }
    return status;
}

void suite_track_destroy_learned(rondo_learned *learned) {
    drop_unless_held(KIND_LEARNED, learned);
    rondo_learned_destroy(learned);
}

rondo_status suite_track_create_pool(rondo_device *device, const rondo_pool_options *options,
                                     rondo_pool **out_pool) {
    rondo_status status = rondo_pool_create(device, options, out_pool);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_POOL, .address = *out_pool});
    }
    return status;
}

void suite_track_retain_pool(rondo_pool *pool) {
    rondo_pool_retain(pool);
    add((object){.kind = KIND_POOL, .address = pool});
}

static uint64_t count_live(rondo_pool *pool) {
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    return rondo_pool_get_stats(pool, &stats) == RONDO_STATUS_OK ? stats.live_count : 0;
}

static bool is_held(const rondo_pool *pool) {
    pthread_mutex_lock(&lock);
    bool is = *find(KIND_POOL, pool) != NULL;
    pthread_mutex_unlock(&lock);
    return is;
}

// Late blocks of the pool; or all that is listed, where it has no block any more.
static void forget_blocks(const rondo_pool *pool, bool takes_all) {
    pthread_mutex_lock(&lock);
    for (object **link = &objects; *link != NULL;) {
        object *entry = *link;
        bool is_block =
            entry->kind == KIND_LATE_BLOCK || (takes_all && entry->kind == KIND_POOL_BLOCK);
        if (is_block && entry->owner == pool) {
            *link = entry->next;
            free(entry);
        } else {
            link = &entry->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

void suite_track_release_pool(rondo_pool *pool) {
    drop(KIND_POOL, pool);
    if (pool != NULL && !is_held(pool)) {
        forget_blocks(pool, count_live(pool) == 0);
    }
    rondo_pool_release(pool);
}

rondo_status suite_track_pool_allocate(rondo_pool *pool, rondo_stream *stream, size_t bytes,
                                       void **out_address) {
    rondo_status status = rondo_pool_allocate(pool, stream, bytes, out_address);
    if (status == RONDO_STATUS_OK && *out_address != NULL) {
        drop(KIND_LATE_BLOCK, *out_address);
        add((object){.kind = KIND_POOL_BLOCK, .address = *out_address, .owner = pool});
    }
    return status;
}

rondo_status suite_track_pool_free(rondo_pool *pool, void *address) {
    drop(KIND_POOL_BLOCK, address);
    uint64_t live_count = pool != NULL ? count_live(pool) : 0;
    // With the last block of a pool that was released, the pool goes.
    bool is_end = pool != NULL && live_count <= 1 && !is_held(pool);
    rondo_status status = rondo_pool_free(pool, address);
    if (status == RONDO_STATUS_OK) {
        drop(KIND_LATE_BLOCK, address);
    }
    if (status == RONDO_STATUS_OK && is_end) {
        forget_blocks(pool, true);
        return status;
    }
    bool has_failed = status != RONDO_STATUS_OK && status != RONDO_STATUS_NO_MEMORY;
    if (!has_failed && address != NULL && count_live(pool) == live_count) {
        add((object){.kind = KIND_LATE_BLOCK, .address = address, .owner = pool});
    }
    return status;
}

rondo_status suite_track_create_arena(rondo_device *device, const rondo_arena_options *options,
                                      rondo_arena **out_arena) {
    rondo_status status = rondo_arena_create(device, options, out_arena);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_ARENA, .address = *out_arena});
    }
    return status;
}

void suite_track_retain_arena(rondo_arena *arena) {
    rondo_arena_retain(arena);
    add((object){.kind = KIND_ARENA, .address = arena});
}

void suite_track_release_arena(rondo_arena *arena) {
    drop(KIND_ARENA, arena);
    rondo_arena_release(arena);
}

rondo_status suite_track_create_generator(rondo_device *device, uint64_t seed,
                                          rondo_generator **out_generator) {
    rondo_status status = rondo_generator_create(device, seed, out_generator);
    if (status == RONDO_STATUS_OK) {
        add((object){.kind = KIND_GENERATOR, .address = *out_generator});
    }
    return status;
}

void suite_track_retain_generator(rondo_generator *generator) {
    rondo_generator_retain(generator);
    add((object){.kind = KIND_GENERATOR, .address = generator});
}

void suite_track_release_generator(rondo_generator *generator) {
    drop(KIND_GENERATOR, generator);
    rondo_generator_release(generator);
}

int suite_track_create_thread(pthread_t *out_thread, const pthread_attr_t *attributes,
                              void *(*function)(void *), void *argument) {
    int code = pthread_create(out_thread, attributes, function, argument);
    if (code == 0) {
        add((object){.kind = KIND_THREAD, .thread = *out_thread});
    }
    return code;
}

int suite_track_join_thread(pthread_t thread, void **out_result) {
    pthread_mutex_lock(&lock);
    for (object **link = &objects; *link != NULL; link = &(*link)->next) {
        object *entry = *link;
        if (entry->kind == KIND_THREAD && pthread_equal(entry->thread, thread)) {
            *link = entry->next;
            free(entry);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return pthread_join(thread, out_result);
}

// ---- giving back ------------------------------------------------------------------------------

static void give_back(const object *entry) {
    switch (entry->kind) {
        case KIND_THREAD:
            pthread_join(entry->thread, NULL);
            break;
        case KIND_CACHE:
            rondo_graph_cache_destroy(entry->address);
            break;
        case KIND_LEARNED:
            rondo_learned_destroy(entry->address);
            break;
        case KIND_STEPPER:
            rondo_stepper_destroy(entry->address);
            break;
        case KIND_GRAPH:
            rondo_graph_destroy(entry->address);
            break;
        case KIND_POOL_BLOCK:
        case KIND_LATE_BLOCK:
            (void)rondo_pool_free(entry->owner, entry->address);
            break;
        case KIND_POOL:
            rondo_pool_release(entry->address);
            break;
        case KIND_ARENA:
            rondo_arena_release(entry->address);
            break;
        case KIND_GENERATOR:
            rondo_generator_release(entry->address);
            break;
        case KIND_EVENT:
            rondo_event_destroy(entry->address);
            break;
        case KIND_STREAM:
            rondo_stream_destroy(entry->address);
            break;
        case KIND_MEMORY:
            rondo_memory_free(entry->owner, entry->address);
            break;
        case KIND_DEVICE:
            rondo_device_release(entry->address);
            break;
        default:
            break;
    }
}

static object *take(kind wanted) {
    pthread_mutex_lock(&lock);
    object **link = &objects;
    while (*link != NULL && (*link)->kind != wanted) {
        link = &(*link)->next;
    }
    object *entry = *link;
    if (entry != NULL) {
        *link = entry->next;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

// A use of memory whose declaration failed is for its stream to finish.
static void wait_for_streams(void) {
    for (const object *entry = objects; entry != NULL; entry = entry->next) {
        if (entry->kind == KIND_STREAM) {
            rondo_status status = rondo_stream_synchronize(entry->address);
            (void)status;  // broken or recording, perhaps
        }
    }
}

// A case that stopped inside of a function that a call ran has left that call, which holds them.
static void end_calls(void) {
    for (const object *entry = objects; entry != NULL; entry = entry->next) {
        if (entry->kind == KIND_DEVICE) {
            const rondo_device *device = entry->address;
            for (rondo__scope *scope = device->scope_list; scope != NULL; scope = scope->next) {
                if (scope->body != NULL) {
                    rondo__scope_let_go_of_body(scope->body);
                }
            }
        }
        bool *is_held = get_hold(entry->kind, entry->address);
        if (is_held != NULL) {
            *is_held = false;
        }
    }
}

void suite_track_unwind(void) {
    end_calls();
    for (int i = 0; i < KIND_COUNT; ++i) {
        if (i == KIND_GRAPH + 1) {
            wait_for_streams();
        }
        object *entry;
        while ((entry = take((kind)i)) != NULL) {
            for (int j = 0; j < entry->reference_count; ++j) {
                give_back(entry);
            }
            free(entry);
        }
    }
}
