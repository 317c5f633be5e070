// decoder.c — see decoder.h.
//
// Two rules, by the form of the model. With caches that have room for all rows (GroupQueryAttention
// in models of onnxruntime-genai's builder) only the sum of a row of the mask counts, so prompts
// are padded on the right, the next token goes over the padding, and a mask as long as the caches
// gives all steps one shape: one plan, one graph. Plain ops (optimum's exporter) join past and new
// rows, so prompts are padded on the left, positions count what is no padding, and each step has
// longer caches than the one before.
// SPDX-License-Identifier: Apache-2.0
#include "decoder.h"

#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "console.h"
#include "interrupt.h"

static bool fail_memory(void) {
    cli_print_error("out of memory");
    return false;
}

static bool check(const cli_decoder *decoder, rondo_status status) {
    if (status == RONDO_STATUS_CANCELLED && cli_interrupt_came()) {
        return false;
    }
    if (status != RONDO_STATUS_OK) {
        cli_fail_about(decoder->path, "");
    }
    return status == RONDO_STATUS_OK;
}

bool cli_decoder_open(const char *path, const char *device, const rondo_load_options *load,
                      const rondo_executor_options *options, int64_t head_size,
                      cli_decoder *decoder) {
    *decoder = (cli_decoder){.path = path};
    if (rondo_device_open(device, &decoder->device) != RONDO_STATUS_OK) {
        cli_fail_with_record();
        return false;
    }
    if (!check(decoder, rondo_program_load_onnx_with(path, load, &decoder->program)) ||
        !cli_decoder_ports_find(path, decoder->program, head_size, &decoder->ports) ||
        !check(decoder, rondo_executor_create(decoder->program, decoder->device, options,
                                              &decoder->executor))) {
        return false;
    }
    for (size_t i = 0; i < decoder->ports.cache_count; ++i) {
        const cli_cache *cache = &decoder->ports.caches[i];
        if (!check(decoder, rondo_executor_bind(decoder->executor, cache->present, cache->past))) {
            return false;
        }
    }
    return true;
}

void cli_decoder_close(cli_decoder *decoder) {
    rondo_executor_destroy(decoder->executor);
    rondo_program_destroy(decoder->program);
    rondo_device_release(decoder->device);
    cli_decoder_ports_free(&decoder->ports);
    free(decoder->lengths);
    free(decoder->ids);
    free(decoder->places);
    free(decoder->mask);
    free(decoder->logits);
}

// ---- one run ------------------------------------------------------------------------------------

// A tensor [batch, columns] of what the port holds; the bytes are new where that is no I64.
static bool make_feed(const char *name, rondo_dtype dtype, size_t batch, size_t columns,
                      int64_t *numbers, rondo_binding *out_feed) {
    const rondo_shape shape = {.rank = 2, .extent = {(int64_t)batch, (int64_t)columns}};
    *out_feed = (rondo_binding){name, {.dtype = RONDO_DTYPE_I64, .shape = shape, .data = numbers}};
    if (dtype == RONDO_DTYPE_I64) {
        return true;
    }
    out_feed->tensor = (rondo_tensor){0};
    if (rondo_tensor_init(RONDO_DTYPE_I64, &shape, &out_feed->tensor) != RONDO_STATUS_OK) {
        return fail_memory();
    }
    memcpy(out_feed->tensor.data, numbers, batch * columns * sizeof *numbers);
    return cli_cast(name, dtype, &out_feed->tensor);
}

// Keeps the logits of each text's last token; `at` says where it stands, NULL: at the end.
static bool keep_logits(cli_decoder *decoder, rondo_tensor *all, size_t rows, const size_t *at) {
    const rondo_shape *shape = &all->shape;
    const bool has_rows = shape->rank == 3 && shape->extent[0] == (int64_t)decoder->batch &&
                          (shape->extent[1] == (int64_t)rows || shape->extent[1] == 1);
    if (!has_rows || shape->extent[2] < 1) {
        char text[96];
        cli_print_error("%s: output \"%s\" has shape %s, not [batch, tokens, logits]",
                        decoder->path, decoder->ports.logits,
                        rondo_shape_format(shape, text, sizeof text));
        return false;
    }
    if (!cli_cast(decoder->ports.logits, RONDO_DTYPE_F32, all)) {
        return false;
    }
    const size_t count = (size_t)shape->extent[2], kept = (size_t)shape->extent[1];
    if (decoder->logits == NULL) {
        decoder->logits = malloc(decoder->batch * count * sizeof(float));
        decoder->logit_count = count;
    }
    if (decoder->logits == NULL || count != decoder->logit_count) {
        return fail_memory();
    }
    for (size_t b = 0; b < decoder->batch; ++b) {
        const size_t place = at != NULL ? at[b] - 1 : rows - 1;
        if (kept == 1 && place != rows - 1) {
            cli_print_error(
                "%s: the model gives logits of the last column alone: texts of one "
                "run must be equally long",
                decoder->path);
            return false;
        }
        memcpy(decoder->logits + b * count,
               (const float *)all->data + (b * kept + (kept == 1 ? 0 : place)) * count,
               count * sizeof(float));
    }
    return true;
}

static bool run(cli_decoder *decoder, size_t rows, size_t columns, const size_t *at) {
    const cli_decoder_ports *ports = &decoder->ports;
    rondo_binding feeds[3] = {0}, fetch = {.name = ports->logits};
    const size_t batch = decoder->batch;
    size_t count = 2;
    bool is_good =
        make_feed(ports->ids, ports->ids_dtype, batch, rows, decoder->ids, &feeds[0]) &&
        make_feed(ports->mask, ports->mask_dtype, batch, columns, decoder->mask, &feeds[1]);
    if (is_good && ports->places != NULL) {
        count = 3;
        is_good =
            make_feed(ports->places, ports->places_dtype, batch, rows, decoder->places, &feeds[2]);
    }
    is_good = is_good &&
              check(decoder, rondo_executor_run(decoder->executor, feeds, count, &fetch, 1)) &&
              keep_logits(decoder, &fetch.tensor, rows, at);
    rondo_tensor_deinit(&fetch.tensor);
    for (size_t i = 0; i < 3; ++i) {
        if (feeds[i].tensor.dtype != RONDO_DTYPE_I64) {
            rondo_tensor_deinit(&feeds[i].tensor);
        }
    }
    return is_good;
}

// ---- the caches ---------------------------------------------------------------------------------

static bool make_cache(const cli_decoder *decoder, const cli_cache *cache) {
    rondo_tensor first = {0};
    rondo_shape shape = {.rank = 4,
                         .extent = {(int64_t)decoder->batch, cache->heads,
                                    (int64_t)decoder->capacity, cache->width}};
    const rondo_tensor most = {.dtype = cache->dtype, .shape = shape};
    shape.extent[2] = decoder->ports.is_shared ? shape.extent[2] : 0;
    bool is_good = check(decoder, rondo_executor_reserve_variable(decoder->executor, cache->past,
                                                                  rondo_tensor_get_bytes(&most))) &&
                   check(decoder, rondo_tensor_init(cache->dtype, &shape, &first));
    if (is_good && rondo_tensor_get_bytes(&first) > 0) {
        memset(first.data, 0, rondo_tensor_get_bytes(&first));
    }
    is_good = is_good &&
              check(decoder, rondo_executor_set_variable(decoder->executor, cache->past, &first));
    rondo_tensor_deinit(&first);
    return is_good;
}

static bool make_room(cli_decoder *decoder, const cli_ids *prompts, size_t count, size_t capacity) {
    decoder->batch = count;
    decoder->capacity = capacity;
    decoder->lengths = calloc(count, sizeof *decoder->lengths);
    decoder->ids = calloc(count * capacity, sizeof *decoder->ids);
    decoder->places = calloc(count * capacity, sizeof *decoder->places);
    decoder->mask = calloc(count * capacity, sizeof *decoder->mask);
    if (decoder->lengths == NULL || decoder->ids == NULL || decoder->places == NULL ||
        decoder->mask == NULL) {
        return fail_memory();
    }
    for (size_t b = 0; b < count; ++b) {
        decoder->lengths[b] = prompts[b].count;
        decoder->columns =
            prompts[b].count > decoder->columns ? prompts[b].count : decoder->columns;
    }
    for (size_t i = 0; i < decoder->ports.cache_count; ++i) {
        if (!make_cache(decoder, &decoder->ports.caches[i])) {
            return false;
        }
    }
    return true;
}

// ---- texts --------------------------------------------------------------------------------------

bool cli_decoder_begin(cli_decoder *decoder, const cli_ids *prompts, size_t count,
                       size_t capacity) {
    const bool is_shared = decoder->ports.is_shared;
    if (!make_room(decoder, prompts, count, capacity)) {
        return false;
    }
    const size_t rows = decoder->columns;
    for (size_t b = 0; b < count; ++b) {
        const size_t begin = is_shared ? 0 : rows - prompts[b].count;
        for (size_t i = 0; i < rows; ++i) {
            const bool is_token = i >= begin && i - begin < prompts[b].count;
            decoder->ids[b * rows + i] = is_token ? prompts[b].list[i - begin] : 0;
            decoder->mask[b * rows + i] = is_token ? 1 : 0;
            decoder->places[b * rows + i] =
                is_token ? (int64_t)(i - begin) : (is_shared ? (int64_t)i : 1);
        }
    }
    return run(decoder, rows, rows, is_shared ? decoder->lengths : NULL);
}

// Moves the rows of the mask apart, so that each has one more column, of ones.
static void add_column(cli_decoder *decoder) {
    const size_t columns = decoder->columns;
    for (size_t b = decoder->batch; b-- > 0;) {
        int64_t *row = decoder->mask + b * (columns + 1);
        memmove(row, decoder->mask + b * columns, columns * sizeof *row);
        row[columns] = 1;
    }
    decoder->columns += 1;
}

bool cli_decoder_step(cli_decoder *decoder, const int64_t *tokens) {
    const bool is_shared = decoder->ports.is_shared;
    for (size_t b = 0; b < decoder->batch; ++b) {
        decoder->ids[b] = tokens[b];
        decoder->places[b] = (int64_t)decoder->lengths[b];
        decoder->lengths[b] += 1;
    }
    if (!is_shared) {
        add_column(decoder);
        return run(decoder, 1, decoder->columns, NULL);
    }
    for (size_t b = 0; b < decoder->batch; ++b) {
        for (size_t i = 0; i < decoder->capacity; ++i) {
            decoder->mask[b * decoder->capacity + i] = i < decoder->lengths[b] ? 1 : 0;
        }
    }
    return run(decoder, 1, decoder->capacity, NULL);
}
