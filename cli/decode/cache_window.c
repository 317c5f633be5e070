// cache_window.c — see cache_window.h.
// SPDX-License-Identifier: Apache-2.0
#include "cache_window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPSET = 24 };  // of TensorScatter

#define TRY(call)                        \
    do {                                 \
        const rondo_status tried = call; \
        if (tried != RONDO_STATUS_OK) {  \
            return tried;                \
        }                                \
    } while (0)

static rondo_shape get_shape(const cli_window *w, size_t cache, size_t rows) {
    const cli_cache *c = &w->ports->caches[cache];
    return (rondo_shape){.rank = 4,
                         .extent = {(int64_t)w->batch, c->heads, (int64_t)rows, c->width}};
}

static rondo_port make_port(const char *name, rondo_dtype dtype, const rondo_shape *shape) {
    rondo_port port = {.struct_size = sizeof port, .name = name, .dtype = dtype};
    port.rank = shape->rank;
    memcpy(port.extent, shape->extent, (size_t)shape->rank * sizeof shape->extent[0]);
    return port;
}

// past[:, :, slot] = present[:, :, last]
static rondo_status add_cache(cli_window *w, rondo_builder *b, size_t cache) {
    const cli_cache *c = &w->ports->caches[cache];
    char row[32], next[32];
    const rondo_shape here = get_shape(w, cache, w->rows), there = get_shape(w, cache, w->rows + 1);
    const rondo_port past = make_port(c->past, c->dtype, &here);
    const rondo_port present = make_port(c->present, c->dtype, &there);
    const rondo_attribute axis = {.name = "axis", .kind = RONDO_ATTRIBUTE_INT, .int_value = 2};
    const rondo_builder_node_options options = {
        .struct_size = sizeof options, .attributes = &axis, .attribute_count = 1};
    (void)snprintf(row, sizeof row, "row %zu", cache);
    (void)snprintf(next, sizeof next, "next %zu", cache);
    TRY(rondo_builder_add_variable(b, &past, NULL));
    TRY(rondo_builder_add_input(b, &present));
    TRY(rondo_builder_add_node(b, "Gather", (const char *[]){c->present, "last"}, 2,
                               (const char *[]){row}, 1, &options));
    TRY(rondo_builder_add_node(b, "TensorScatter", (const char *[]){c->past, row, "slot"}, 3,
                               (const char *[]){next}, 1, &options));
    return rondo_builder_set_update(b, c->past, next);
}

static rondo_status build(cli_window *w, rondo_builder *b) {
    const int64_t last = (int64_t)w->rows;
    const rondo_shape one = {.rank = 1, .extent = {1}};
    const rondo_shape batch = {.rank = 1, .extent = {(int64_t)w->batch}};
    const rondo_port slot = make_port("slot", RONDO_DTYPE_I64, &batch);
    TRY(rondo_builder_add_input(b, &slot));
    TRY(rondo_builder_add_constant(b, "last", RONDO_DTYPE_I64, &one, &last));
    for (size_t i = 0; i < w->ports->cache_count; ++i) {
        TRY(add_cache(w, b, i));
    }
    return rondo_builder_finish(b, &w->program);
}

// The cache's first rows, in rows of `to` that are zero behind them.
static void spread(const rondo_tensor *from, const rondo_tensor *to) {
    const size_t width = (size_t)to->shape.extent[3] * rondo_dtype_get_bytes(to->dtype);
    const size_t have = (size_t)from->shape.extent[2] * width;
    const size_t room = (size_t)to->shape.extent[2] * width;
    const size_t parts = (size_t)(to->shape.extent[0] * to->shape.extent[1]);
    memset(to->data, 0, parts * room);
    for (size_t part = 0; part < parts; ++part) {
        memcpy((char *)to->data + part * room, (const char *)from->data + part * have, have);
    }
}

static rondo_status begin_cache(cli_window *w, rondo_device *device, size_t cache,
                                const rondo_tensor *first) {
    const cli_cache *c = &w->ports->caches[cache];
    const rondo_shape here = get_shape(w, cache, w->rows), there = get_shape(w, cache, w->rows + 1);
    rondo_tensor all;
    TRY(rondo_tensor_init(c->dtype, &here, &all));
    spread(first, &all);
    const rondo_status status = rondo_executor_set_variable(w->executor, c->past, &all);
    rondo_tensor_deinit(&all);
    TRY(status);
    w->presents[cache].name = c->present;
    TRY(rondo_tensor_init_device(device, c->dtype, &there, &w->presents[cache].tensor));
    w->pasts[cache].name = c->past;
    return rondo_executor_get_variable(w->executor, c->past, &w->pasts[cache].tensor);
}

rondo_status cli_window_open(rondo_device *device, const cli_decoder_ports *ports, size_t batch,
                             size_t rows, const rondo_tensor *first, cli_window *out_window) {
    cli_window *w = out_window;
    rondo_builder *b = NULL;
    const rondo_builder_options options = {.struct_size = sizeof options, .opset = OPSET};
    *w = (cli_window){.ports = ports, .batch = batch, .rows = rows};
    w->pasts = calloc(ports->cache_count, sizeof *w->pasts);
    w->presents = calloc(ports->cache_count, sizeof *w->presents);
    if (w->pasts == NULL || w->presents == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = rondo_builder_create(&options, &b);
    status = status == RONDO_STATUS_OK ? build(w, b) : status;
    rondo_builder_destroy(b);
    TRY(status);
    TRY(rondo_executor_create(w->program, device, NULL, &w->executor));
    for (size_t i = 0; i < ports->cache_count; ++i) {
        TRY(begin_cache(w, device, i, &first[i]));
    }
    return RONDO_STATUS_OK;
}

rondo_status cli_window_keep(cli_window *w, size_t row) {
    const size_t count = w->ports->cache_count;
    const rondo_shape shape = {.rank = 1, .extent = {(int64_t)w->batch}};
    rondo_binding *feeds = calloc(count + 1, sizeof *feeds);
    rondo_tensor slot;
    rondo_status status =
        feeds != NULL ? rondo_tensor_init(RONDO_DTYPE_I64, &shape, &slot) : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        for (size_t b = 0; b < w->batch; ++b) {
            ((int64_t *)slot.data)[b] = (int64_t)row;
        }
        memcpy(feeds, w->presents, count * sizeof *feeds);
        feeds[count] = (rondo_binding){"slot", slot};
        status = rondo_executor_run(w->executor, feeds, count + 1, NULL, 0);
        rondo_tensor_deinit(&slot);
    }
    free(feeds);
    return status;
}

void cli_window_close(cli_window *w) {
    for (size_t i = 0; w->ports != NULL && i < w->ports->cache_count; ++i) {
        if (w->pasts != NULL) {
            rondo_tensor_deinit(&w->pasts[i].tensor);
        }
        if (w->presents != NULL) {
            rondo_tensor_deinit(&w->presents[i].tensor);
        }
    }
    free(w->pasts);
    free(w->presents);
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    *w = (cli_window){0};
}
