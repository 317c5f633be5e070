// decoder.c — see decoder.h.
//
// Two rules, by the form of the model. With caches that have room for all rows (GroupQueryAttention
// in models of onnxruntime-genai's builder) only the sum of a row of the mask counts, so prompts
// are padded on the right, the next token goes over the padding, and a mask as long as the caches
// gives all steps one shape: one plan, one graph. Plain ops (optimum's exporter) join past and new
// rows, so prompts are padded on the left, and positions count what is no padding. Their caches go
// into a window (cache_window.h) where the first step shows that the model does not mind: one that
// masks or weighs keys by where they stand, as for a sliding window, keeps growing ones.
// SPDX-License-Identifier: Apache-2.0
#include "decoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "console.h"
#include "interrupt.h"
#include "model_file.h"

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
    if (!check(decoder, cli_model_load(path, load, true, &decoder->program)) ||
        !cli_decoder_ports_find(path, decoder->program, head_size, &decoder->ports) ||
        !check(decoder, rondo_executor_create(decoder->program, decoder->device, options,
                                              &decoder->executor))) {
        return false;
    }
    decoder->form = decoder->ports.is_shared ? CLI_CACHES_SHARED : CLI_CACHES_NEW;
    return true;
}

static void free_caches(rondo_binding *caches, size_t count) {
    for (size_t i = 0; caches != NULL && i < count; ++i) {
        rondo_tensor_deinit(&caches[i].tensor);
    }
    free(caches);
}

void cli_decoder_close(cli_decoder *decoder) {
    cli_window_close(&decoder->window);
    free_caches(decoder->grown, decoder->ports.cache_count);
    free(decoder->prompt_mask);
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
        return cli_fail_memory();
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
    if (decoder->logits == NULL) {
        return cli_fail_memory();
    }
    if (count != decoder->logit_count) {
        cli_print_error("%s: output \"%s\" had %zu logits a token before, and %zu now",
                        decoder->path, decoder->ports.logits, decoder->logit_count, count);
        return false;
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

// `pasts` and `presents` are those of caches that are no states; otherwise NULL.
static bool run(cli_decoder *decoder, size_t rows, size_t columns, const size_t *at,
                const rondo_binding *pasts, rondo_binding *presents) {
    const cli_decoder_ports *ports = &decoder->ports;
    const size_t batch = decoder->batch, cache_count = pasts != NULL ? ports->cache_count : 0;
    rondo_binding *feeds = calloc(3 + cache_count, sizeof *feeds);
    rondo_binding *fetches = calloc(1 + cache_count, sizeof *fetches);
    bool is_good = (feeds != NULL && fetches != NULL) || cli_fail_memory();
    size_t count = 2;
    is_good = is_good &&
              make_feed(ports->ids, ports->ids_dtype, batch, rows, decoder->ids, &feeds[0]) &&
              make_feed(ports->mask, ports->mask_dtype, batch, columns, decoder->mask, &feeds[1]);
    if (is_good && ports->places != NULL) {
        count = 3;
        is_good =
            make_feed(ports->places, ports->places_dtype, batch, rows, decoder->places, &feeds[2]);
    }
    if (is_good) {
        fetches[0].name = ports->logits;
        for (size_t i = 0; i < cache_count; ++i) {
            feeds[count + i] = (rondo_binding){ports->caches[i].past, pasts[i].tensor};
            fetches[1 + i] = (rondo_binding){ports->caches[i].present, presents[i].tensor};
        }
        is_good = check(decoder, rondo_executor_run(decoder->executor, feeds, count + cache_count,
                                                    fetches, 1 + cache_count)) &&
                  keep_logits(decoder, &fetches[0].tensor, rows, at);
        rondo_tensor_deinit(&fetches[0].tensor);
        for (size_t i = 0; i < cache_count; ++i) {
            presents[i] = fetches[1 + i];
        }
    }
    for (size_t i = 0; i < 3 && feeds != NULL; ++i) {
        if (i < count && feeds[i].tensor.dtype != RONDO_DTYPE_I64) {
            rondo_tensor_deinit(&feeds[i].tensor);
        }
    }
    free(feeds);
    free(fetches);
    return is_good;
}

// ---- the caches ---------------------------------------------------------------------------------

static rondo_shape get_cache_shape(const cli_decoder *decoder, size_t cache, size_t rows) {
    const cli_cache *c = &decoder->ports.caches[cache];
    return (rondo_shape){.rank = 4,
                         .extent = {(int64_t)decoder->batch, c->heads, (int64_t)rows, c->width}};
}

// Makes a cache a state with room for all tokens that begins with `first`.
static bool keep_cache(const cli_decoder *decoder, size_t cache, const rondo_tensor *first) {
    const cli_cache *c = &decoder->ports.caches[cache];
    const rondo_shape shape = get_cache_shape(decoder, cache, decoder->capacity);
    const rondo_tensor most = {.dtype = c->dtype, .shape = shape};
    rondo_executor *executor = decoder->executor;
    return check(decoder, rondo_executor_bind(executor, c->present, c->past)) &&
           check(decoder, rondo_executor_reserve_variable(executor, c->past,
                                                          rondo_tensor_get_bytes(&most))) &&
           check(decoder, rondo_executor_set_variable(executor, c->past, first));
}

// Caches of `rows` zeros in host memory.
static bool make_caches(const cli_decoder *decoder, size_t rows, rondo_binding **out_caches) {
    const size_t count = decoder->ports.cache_count;
    rondo_binding *caches = calloc(count, sizeof *caches);
    bool is_good = caches != NULL || cli_fail_memory();
    for (size_t i = 0; i < count && is_good; ++i) {
        const rondo_shape shape = get_cache_shape(decoder, i, rows);
        caches[i].name = decoder->ports.caches[i].past;
        is_good = check(
            decoder, rondo_tensor_init(decoder->ports.caches[i].dtype, &shape, &caches[i].tensor));
        const size_t bytes = is_good ? rondo_tensor_get_bytes(&caches[i].tensor) : 0;
        if (bytes > 0) {
            memset(caches[i].tensor.data, 0, bytes);
        }
    }
    *out_caches = caches;
    return is_good;
}

// Room for caches that a run makes, in host memory.
static bool make_presents(const cli_decoder *decoder, rondo_binding **out_caches) {
    rondo_binding *caches = calloc(decoder->ports.cache_count, sizeof *caches);
    for (size_t i = 0; caches != NULL && i < decoder->ports.cache_count; ++i) {
        caches[i].name = decoder->ports.caches[i].present;
    }
    *out_caches = caches;
    return caches != NULL || cli_fail_memory();
}

static bool make_room(cli_decoder *decoder, const cli_ids *prompts, size_t count, size_t capacity) {
    decoder->batch = count;
    decoder->capacity = capacity;
    decoder->lengths = calloc(count, sizeof *decoder->lengths);
    decoder->ids = calloc(count * capacity, sizeof *decoder->ids);
    decoder->places = calloc(count * capacity, sizeof *decoder->places);
    decoder->mask = calloc(count * capacity, sizeof *decoder->mask);
    decoder->prompt_mask = calloc(count * capacity, sizeof *decoder->prompt_mask);
    if (decoder->lengths == NULL || decoder->ids == NULL || decoder->places == NULL ||
        decoder->mask == NULL || decoder->prompt_mask == NULL) {
        return cli_fail_memory();
    }
    for (size_t b = 0; b < count; ++b) {
        decoder->lengths[b] = prompts[b].count;
        decoder->columns =
            prompts[b].count > decoder->columns ? prompts[b].count : decoder->columns;
    }
    return true;
}

// ---- texts --------------------------------------------------------------------------------------

static bool read_prompts(cli_decoder *decoder, size_t rows) {
    const size_t count = decoder->ports.cache_count;
    rondo_binding *pasts = NULL;
    bool is_good = make_caches(decoder, decoder->ports.is_shared ? decoder->capacity : 0, &pasts);
    for (size_t i = 0; i < count && is_good && decoder->ports.is_shared; ++i) {
        is_good = keep_cache(decoder, i, &pasts[i].tensor);
    }
    if (is_good && decoder->ports.is_shared) {
        is_good = run(decoder, rows, rows, decoder->lengths, NULL, NULL);
    } else if (is_good) {
        is_good = make_presents(decoder, &decoder->grown) &&
                  run(decoder, rows, rows, NULL, pasts, decoder->grown);
    }
    free_caches(pasts, count);
    return is_good;
}

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
    memcpy(decoder->prompt_mask, decoder->mask, count * rows * sizeof *decoder->mask);
    decoder->prompt_columns = rows;
    return read_prompts(decoder, rows);
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

// The mask of caches that a window holds: the prompt's, a column for each token since, and the new
// one.
static void make_window_mask(cli_decoder *decoder) {
    const size_t columns = decoder->capacity, prompt = decoder->prompt_columns;
    for (size_t b = 0; b < decoder->batch; ++b) {
        int64_t *row = decoder->mask + b * columns;
        for (size_t i = 0; i < columns; ++i) {
            const bool is_later = i < decoder->columns || i + 1 == columns;
            row[i] = i < prompt ? decoder->prompt_mask[b * prompt + i] : is_later ? 1 : 0;
        }
    }
}

static bool step_in_window(cli_decoder *decoder) {
    cli_window *window = &decoder->window;
    make_window_mask(decoder);
    if (!run(decoder, 1, decoder->capacity, NULL, window->pasts, window->presents) ||
        !check(decoder, cli_window_keep(window, decoder->columns))) {
        return false;
    }
    decoder->columns += 1;
    return true;
}

// Whether the logits at hand are `others`, but for what another order of sums makes of them.
static bool are_alike(const cli_decoder *decoder, const float *others) {
    const double tolerance = decoder->ports.caches[0].dtype == RONDO_DTYPE_F32 ? 1e-3 : 3e-2;
    const size_t count = decoder->batch * decoder->logit_count;
    double largest = 1.0;
    for (size_t i = 0; i < count; ++i) {
        largest = fabs((double)others[i]) > largest ? fabs((double)others[i]) : largest;
    }
    for (size_t i = 0; i < count; ++i) {
        if (!(fabs((double)others[i] - (double)decoder->logits[i]) <= tolerance * largest)) {
            return false;
        }
    }
    return true;
}

// Makes the first step once more in a window. *out_fits false: the model minds, or there is no
// room. False: it failed.
static bool try_window(cli_decoder *decoder, const float *logits, bool *out_fits) {
    const cli_decoder_ports *ports = &decoder->ports;
    rondo_tensor *first = calloc(ports->cache_count, sizeof *first);
    bool has_room = first != NULL;
    for (size_t i = 0; i < ports->cache_count && has_room; ++i) {
        first[i] = decoder->grown[i].tensor;  // borrowed
    }
    has_room =
        has_room && cli_window_open(decoder->device, ports, decoder->batch, decoder->capacity - 1,
                                    first, &decoder->window) == RONDO_STATUS_OK;
    free(first);
    *out_fits = false;
    if (has_room && !step_in_window(decoder)) {
        return false;
    }
    *out_fits = has_room && are_alike(decoder, logits);
    return true;
}

// The first step, in both forms: the mask has its new column, as growing caches want it.
static bool choose_form(cli_decoder *decoder, rondo_binding *later) {
    const size_t bytes = decoder->batch * decoder->logit_count * sizeof(float);
    if (!run(decoder, 1, decoder->columns, NULL, decoder->grown, later)) {
        return false;
    }
    int64_t *mask = decoder->mask,
            *other = calloc(decoder->batch * decoder->capacity, sizeof *other);
    float *logits = malloc(bytes);
    bool is_good = (other != NULL && logits != NULL) || cli_fail_memory();
    if (is_good) {
        const size_t columns = decoder->columns;
        memcpy(logits, decoder->logits, bytes);
        decoder->mask = other;
        decoder->columns = columns - 1;
        bool is_window = false;
        is_good = try_window(decoder, logits, &is_window);
        decoder->form = is_window ? CLI_CACHES_WINDOW : CLI_CACHES_GROWING;
        decoder->columns = columns;
        memcpy(decoder->logits, logits, bytes);
        other = is_window ? mask : decoder->mask;
        decoder->mask = is_window ? decoder->mask : mask;
    }
    if (is_good && decoder->form == CLI_CACHES_GROWING) {
        cli_window_close(&decoder->window);
        for (size_t i = 0; i < decoder->ports.cache_count && is_good; ++i) {
            is_good = keep_cache(decoder, i, &later[i].tensor);
        }
    }
    free(other);
    free(logits);
    return is_good;
}

static bool step_first(cli_decoder *decoder) {
    rondo_binding *later = NULL;
    add_column(decoder);
    const bool is_good = make_presents(decoder, &later) && choose_form(decoder, later);
    free_caches(later, decoder->ports.cache_count);
    free_caches(decoder->grown, decoder->ports.cache_count);
    decoder->grown = NULL;
    return is_good;
}

static bool step_shared(cli_decoder *decoder) {
    for (size_t b = 0; b < decoder->batch; ++b) {
        for (size_t i = 0; i < decoder->capacity; ++i) {
            decoder->mask[b * decoder->capacity + i] = i < decoder->lengths[b] ? 1 : 0;
        }
    }
    return run(decoder, 1, decoder->capacity, NULL, NULL, NULL);
}

static bool step_growing(cli_decoder *decoder) {
    add_column(decoder);
    return run(decoder, 1, decoder->columns, NULL, NULL, NULL);
}

bool cli_decoder_step(cli_decoder *decoder, const int64_t *tokens) {
    for (size_t b = 0; b < decoder->batch; ++b) {
        decoder->ids[b] = tokens[b];
        decoder->places[b] = (int64_t)decoder->lengths[b];
        decoder->lengths[b] += 1;
    }
    switch (decoder->form) {
        case CLI_CACHES_SHARED:
            return step_shared(decoder);
        case CLI_CACHES_NEW:
            return step_first(decoder);
        case CLI_CACHES_WINDOW:
            return step_in_window(decoder);
        case CLI_CACHES_GROWING:
            break;
    }
    return step_growing(decoder);
}
