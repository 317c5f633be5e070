// sweep/suite_track.h — what a case of the conformance suite has made and not given back.
//
// Included before everything else in the suite's files when they are built for the sweep: the
// public calls that make and destroy go through these, so that a case that stopped in its middle
// leaves a list of its objects, and the sweep can show that every one can still be destroyed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include "rondo/rondo.h"

rondo_status suite_track_open_device(const char *name, rondo_device **out_device);
void suite_track_retain_device(rondo_device *device);
void suite_track_release_device(rondo_device *device);
rondo_status suite_track_allocate(rondo_device *device, rondo_memory_kind kind, size_t bytes,
                                  void **out_address);
void suite_track_free(rondo_device *device, void *address);
rondo_status suite_track_create_stream(rondo_device *device, const rondo_stream_options *options,
                                       rondo_stream **out_stream);
rondo_status suite_track_wrap_stream(rondo_device *device, void *native, rondo_stream **out_stream);
void suite_track_destroy_stream(rondo_stream *stream);
rondo_status suite_track_create_event(rondo_device *device, uint32_t flags,
                                      rondo_event **out_event);
void suite_track_destroy_event(rondo_event *event);
rondo_status suite_track_create_graph(rondo_device *device, const rondo_graph_options *options,
                                      rondo_graph **out_graph);
rondo_status suite_track_clone_graph(rondo_graph *graph, const char *label,
                                     rondo_graph **out_clone);
void suite_track_destroy_graph(rondo_graph *graph);
rondo_status suite_track_create_cache(rondo_device *device,
                                      const rondo_graph_cache_options *options,
                                      rondo_graph_cache **out_cache);
void suite_track_destroy_cache(rondo_graph_cache *cache);
rondo_status suite_track_create_stepper(rondo_device *device, const rondo_stepper_options *options,
                                        rondo_stepper **out_stepper);
void suite_track_destroy_stepper(rondo_stepper *stepper);
rondo_status suite_track_create_learned(rondo_device *device, const rondo_learned_options *options,
                                        const rondo_argument *arguments, size_t argument_count,
                                        rondo_learned_function function, void *user_data,
                                        rondo_learned **out_learned);
void suite_track_destroy_learned(rondo_learned *learned);
rondo_status suite_track_create_pool(rondo_device *device, const rondo_pool_options *options,
                                     rondo_pool **out_pool);
void suite_track_retain_pool(rondo_pool *pool);
void suite_track_release_pool(rondo_pool *pool);
rondo_status suite_track_pool_allocate(rondo_pool *pool, rondo_stream *stream, size_t bytes,
                                       void **out_address);
rondo_status suite_track_pool_free(rondo_pool *pool, void *address);
rondo_status suite_track_create_arena(rondo_device *device, const rondo_arena_options *options,
                                      rondo_arena **out_arena);
void suite_track_retain_arena(rondo_arena *arena);
void suite_track_release_arena(rondo_arena *arena);
rondo_status suite_track_create_generator(rondo_device *device, uint64_t seed,
                                          rondo_generator **out_generator);
void suite_track_retain_generator(rondo_generator *generator);
void suite_track_release_generator(rondo_generator *generator);
int suite_track_create_thread(pthread_t *out_thread, const pthread_attr_t *attributes,
                              void *(*function)(void *), void *argument);
int suite_track_join_thread(pthread_t thread, void **out_result);

// True when the case made a thread, joined or not.
bool suite_track_has_made_threads(void);
// Joins the threads and destroys the objects that are left, users before what they use.
void suite_track_unwind(void);

#ifndef SUITE_TRACK_PLAIN
#define rondo_device_open(name, out) suite_track_open_device(name, out)
#define rondo_device_retain(device) suite_track_retain_device(device)
#define rondo_device_release(device) suite_track_release_device(device)
#define rondo_memory_allocate(device, kind, bytes, out) \
    suite_track_allocate(device, kind, bytes, out)
#define rondo_memory_free(device, address) suite_track_free(device, address)
#define rondo_stream_create(device, options, out) suite_track_create_stream(device, options, out)
#define rondo_stream_wrap(device, native, out) suite_track_wrap_stream(device, native, out)
#define rondo_stream_destroy(stream) suite_track_destroy_stream(stream)
#define rondo_event_create(device, flags, out) suite_track_create_event(device, flags, out)
#define rondo_event_destroy(event) suite_track_destroy_event(event)
#define rondo_graph_create(device, options, out) suite_track_create_graph(device, options, out)
#define rondo_graph_clone(graph, label, out) suite_track_clone_graph(graph, label, out)
#define rondo_graph_destroy(graph) suite_track_destroy_graph(graph)
#define rondo_graph_cache_create(device, options, out) \
    suite_track_create_cache(device, options, out)
#define rondo_graph_cache_destroy(cache) suite_track_destroy_cache(cache)
#define rondo_stepper_create(device, options, out) suite_track_create_stepper(device, options, out)
#define rondo_stepper_destroy(stepper) suite_track_destroy_stepper(stepper)
#define rondo_learned_create(device, options, arguments, count, function, data, out) \
    suite_track_create_learned(device, options, arguments, count, function, data, out)
#define rondo_learned_destroy(learned) suite_track_destroy_learned(learned)
#define rondo_pool_create(device, options, out) suite_track_create_pool(device, options, out)
#define rondo_pool_retain(pool) suite_track_retain_pool(pool)
#define rondo_pool_release(pool) suite_track_release_pool(pool)
#define rondo_pool_allocate(pool, stream, bytes, out) \
    suite_track_pool_allocate(pool, stream, bytes, out)
#define rondo_pool_free(pool, address) suite_track_pool_free(pool, address)
#define rondo_arena_create(device, options, out) suite_track_create_arena(device, options, out)
#define rondo_arena_retain(arena) suite_track_retain_arena(arena)
#define rondo_arena_release(arena) suite_track_release_arena(arena)
#define rondo_generator_create(device, seed, out) suite_track_create_generator(device, seed, out)
#define rondo_generator_retain(generator) suite_track_retain_generator(generator)
#define rondo_generator_release(generator) suite_track_release_generator(generator)
#define pthread_create(out, attributes, function, argument) \
    suite_track_create_thread(out, attributes, function, argument)
#define pthread_join(thread, out) suite_track_join_thread(thread, out)
#endif
