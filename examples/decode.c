// A language model continues texts, with its caches of keys and values in the executor's memory.
//
//   build/examples/example_decode [--device NAME] [--count N] [--head-size N]
//       [--top-k K] [--top-p P] [--seed N] MODEL.onnx IDS...
//
// MODEL is what the builders of onnxruntime-genai and optimum write, each IDS a prompt as 3,14,15.
// The likeliest token is taken, or with --top-k or --top-p one is drawn. The two builders need two
// rules. Caches that have room for all rows from the start (GroupQueryAttention): prompts are
// padded on the right, only the sum of a row of attention_mask counts, and a mask as long as the
// caches gives all steps one shape, so one plan and one graph. Caches that a Concat makes longer:
// prompts are padded on the left, and position_ids count what is no padding.
// `rondo decode` is the same with names of ports from genai_config.json and other types of logits.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/models.h>

enum { TEXT_MAX = 16, CAPACITY_MAX = 4096 };

typedef struct options {
    const char *device, *path;
    int64_t count, head_size, top_k;
    double top_p;
    uint64_t seed;
} options;

typedef struct decoder {
    rondo_program *program;
    rondo_executor *executor;
    bool is_shared, has_places;
    int64_t batch, capacity, columns;
    int64_t length[TEXT_MAX];
    int64_t *ids, *places, *mask;
} decoder;

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

static void fail(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(EXIT_FAILURE);
}

// ---- the model ----------------------------------------------------------------------------------

// Whether a node takes the cache of keys or values as one that has room for new rows.
static bool has_room(const rondo_program *program, const char *past) {
    for (size_t n = 0; n < rondo_program_get_node_count(program); ++n) {
        rondo_program_node node = {.struct_size = sizeof node};
        check(rondo_program_get_node(program, n, &node));
        if (strcmp(node.op, "GroupQueryAttention") == 0 &&
            (strcmp(rondo_program_get_node_input(program, n, 3), past) == 0 ||
             strcmp(rondo_program_get_node_input(program, n, 4), past) == 0)) {
            return true;
        }
    }
    return false;
}

// past_key_values.N.key and .value become present.N.key and .value where they lie.
static void bind_cache(decoder *d, const rondo_port *past, const options *o) {
    char present[256];
    rondo_shape shape = {.rank = 4,
                         .extent = {d->batch, past->extent[1], d->capacity,
                                    past->extent[3] > 0 ? past->extent[3] : o->head_size}};
    rondo_tensor cache = {.dtype = past->dtype, .shape = shape};
    if (shape.extent[3] <= 0) {
        fail("the model does not say how wide a head is: give --head-size");
    }
    d->is_shared = has_room(d->program, past->name);
    snprintf(present, sizeof present, "present%s", strchr(past->name, '.'));
    check(rondo_executor_bind(d->executor, present, past->name));
    check(rondo_executor_reserve_variable(d->executor, past->name, rondo_tensor_get_bytes(&cache)));
    shape.extent[2] = d->is_shared ? d->capacity : 0;
    check(rondo_tensor_init(past->dtype, &shape, &cache));
    if (d->is_shared) {
        memset(cache.data, 0, rondo_tensor_get_bytes(&cache));
    }
    check(rondo_executor_set_variable(d->executor, past->name, &cache));
    rondo_tensor_deinit(&cache);
}

static void open_decoder(decoder *d, const options *o) {
    rondo_device *device;
    check(rondo_device_open(o->device, &device));
    check(rondo_program_load_onnx(o->path, &d->program));
    check(rondo_executor_create(d->program, device, NULL, &d->executor));
    rondo_device_release(device);
    for (size_t i = 0; i < rondo_program_get_input_count(d->program); ++i) {
        rondo_port port = {.struct_size = sizeof port};
        check(rondo_program_get_input(d->program, i, &port));
        d->has_places = d->has_places || strcmp(port.name, "position_ids") == 0;
        if (strncmp(port.name, "past_key_values.", 16) == 0) {
            bind_cache(d, &port, o);
        }
    }
    d->ids = calloc((size_t)(d->batch * d->capacity), sizeof(int64_t));
    d->places = calloc((size_t)(d->batch * d->capacity), sizeof(int64_t));
    d->mask = calloc((size_t)(d->batch * d->capacity), sizeof(int64_t));
    if (d->ids == NULL || d->places == NULL || d->mask == NULL) {
        fail("out of memory");
    }
}

static void close_decoder(decoder *d) {
    rondo_executor_destroy(d->executor);
    rondo_program_destroy(d->program);
    free(d->ids), free(d->places), free(d->mask);
}

// ---- one run ------------------------------------------------------------------------------------

static rondo_binding make_feed(const char *name, int64_t batch, int64_t columns, int64_t *numbers) {
    const rondo_shape shape = {.rank = 2, .extent = {batch, columns}};
    return (rondo_binding){name, {.dtype = RONDO_DTYPE_I64, .shape = shape, .data = numbers}};
}

// The logits [batch, rows, vocabulary], to be freed.
static rondo_tensor run(decoder *d, int64_t rows, int64_t columns) {
    const rondo_binding feeds[] = {make_feed("input_ids", d->batch, rows, d->ids),
                                   make_feed("attention_mask", d->batch, columns, d->mask),
                                   make_feed("position_ids", d->batch, rows, d->places)};
    rondo_binding fetch = {.name = "logits"};
    check(rondo_executor_run(d->executor, feeds, d->has_places ? 3 : 2, &fetch, 1));
    if (fetch.tensor.dtype != RONDO_DTYPE_F32 || fetch.tensor.shape.rank != 3 ||
        fetch.tensor.shape.extent[1] != rows) {
        fail("the logits are not of f32 and all tokens; `rondo decode` takes others");
    }
    return fetch.tensor;
}

static rondo_tensor read_prompts(decoder *d, const int64_t *prompts) {
    const int64_t rows = d->columns;
    for (int64_t b = 0; b < d->batch; ++b) {
        const int64_t begin = d->is_shared ? 0 : rows - d->length[b];
        for (int64_t i = 0; i < rows; ++i) {
            const bool is_token = i >= begin && i < begin + d->length[b];
            d->ids[b * rows + i] = is_token ? prompts[b * CAPACITY_MAX + i - begin] : 0;
            d->mask[b * rows + i] = is_token;
            d->places[b * rows + i] = is_token ? i - begin : d->is_shared ? i : 1;
        }
    }
    return run(d, rows, rows);
}

static rondo_tensor add_tokens(decoder *d, const int64_t *tokens) {
    const int64_t columns = d->is_shared ? d->capacity : d->columns + 1;
    for (int64_t b = d->batch - 1; b >= 0; --b) {
        int64_t *row = d->mask + b * columns;
        d->ids[b] = tokens[b];
        d->places[b] = d->length[b]++;
        if (!d->is_shared) {  // the rows move apart, from the last on
            memmove(row, d->mask + b * d->columns, (size_t)d->columns * sizeof *row);
            row[d->columns] = 1;
        }
        for (int64_t i = 0; i < columns && d->is_shared; ++i) {
            row[i] = i < d->length[b];
        }
    }
    d->columns = columns;
    return run(d, 1, columns);
}

// ---- the next token -----------------------------------------------------------------------------

static const float *g_logits;

static int compare(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return g_logits[a] != g_logits[b] ? (g_logits[a] < g_logits[b] ? 1 : -1) : (a > b) - (a < b);
}

// The `most` likeliest tokens in order.
static void sort_largest(int64_t *order, int64_t count, int64_t most) {
    for (int64_t i = 0, kept = 0; i < count; ++i) {
        int64_t at = kept < most ? kept++ : most;
        for (; most < count && at > 0 && compare(&i, &order[at - 1]) < 0; --at) {
            if (at < most) {
                order[at] = order[at - 1];
            }
        }
        if (at < most) {
            order[at] = i;
        }
    }
    if (most == count) {
        qsort(order, (size_t)count, sizeof *order, compare);
    }
}

// The likeliest token, or one of the likeliest, drawn by their shares.
static int64_t choose(const options *o, const float *logits, int64_t count, int64_t text,
                      int64_t step) {
    const bool is_sampled = o->top_k > 0 || o->top_p < 1.0;
    int64_t *order = malloc((size_t)count * sizeof *order);
    if (order == NULL) {
        fail("out of memory");
    }
    const int64_t most = !is_sampled ? 1 : o->top_k > 0 && o->top_k < count ? o->top_k : count;
    g_logits = logits;
    sort_largest(order, count, most);
    double sum = 0.0, kept = 0.0, before = 0.0;
    int64_t end = 0, i = 0;
    for (i = 0; i < most; ++i) {
        sum += exp((double)logits[order[i]] - (double)logits[order[0]]);
    }
    while (end < most && kept < o->top_p * sum) {
        kept += exp((double)logits[order[end++]] - (double)logits[order[0]]);
    }
    uint32_t words[4];
    rondo_random_philox(o->seed, (uint64_t)text, (uint64_t)step, words);
    const double point = ((words[0] >> 5) * 67108864.0 + (words[1] >> 6)) / 9007199254740992.0;
    for (i = 0; i + 1 < end; ++i) {
        before += exp((double)logits[order[i]] - (double)logits[order[0]]);
        if (before > point * kept) {
            break;
        }
    }
    const int64_t token = order[i];
    free(order);
    return token;
}

// ---- the whole ----------------------------------------------------------------------------------

static void read_ids(decoder *d, const char *text, int64_t *prompt) {
    int64_t *length = &d->length[d->batch++];
    for (char *end = NULL; *text != '\0'; text = *end == ',' ? end + 1 : end) {
        prompt[(*length)++] = strtoll(text, &end, 10);
        if (end == text || *length > CAPACITY_MAX / 2) {
            fail("a prompt is a list of ids, as 3,14,15");
        }
    }
    d->columns = *length > d->columns ? *length : d->columns;
}

static void read_arguments(int argc, char **argv, options *o, decoder *d, int64_t *prompts) {
    for (int i = 1; i < argc; ++i) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        const bool is_option = strncmp(argv[i], "--", 2) == 0;
        if (strcmp(argv[i], "--device") == 0) {
            o->device = value;
        } else if (strcmp(argv[i], "--count") == 0) {
            o->count = strtoll(value, NULL, 10);
        } else if (strcmp(argv[i], "--head-size") == 0) {
            o->head_size = strtoll(value, NULL, 10);
        } else if (strcmp(argv[i], "--top-k") == 0) {
            o->top_k = strtoll(value, NULL, 10);
        } else if (strcmp(argv[i], "--top-p") == 0) {
            o->top_p = strtod(value, NULL);
        } else if (strcmp(argv[i], "--seed") == 0) {
            o->seed = strtoull(value, NULL, 10);
        } else if (o->path == NULL && !is_option) {
            o->path = argv[i];
        } else if (d->batch < TEXT_MAX && !is_option) {
            read_ids(d, argv[i], prompts + d->batch * CAPACITY_MAX);
        }
        i += is_option ? 1 : 0;
    }
    if (o->path == NULL || d->columns == 0 || o->count < 1 || o->count > CAPACITY_MAX / 2) {
        fail("usage: decode [OPTION VALUE]... MODEL.onnx IDS...");
    }
    d->capacity = d->columns + o->count;
}

int main(int argc, char **argv) {
    static int64_t prompts[TEXT_MAX * CAPACITY_MAX], made[TEXT_MAX * CAPACITY_MAX];
    options o = {.device = "host", .count = 32, .top_p = 1.0};
    decoder d = {0};
    int64_t tokens[TEXT_MAX] = {0};
    read_arguments(argc, argv, &o, &d, prompts);
    open_decoder(&d, &o);
    for (int64_t step = 0; step < o.count; ++step) {
        rondo_tensor logits = step == 0 ? read_prompts(&d, prompts) : add_tokens(&d, tokens);
        const int64_t rows = logits.shape.extent[1], count = logits.shape.extent[2];
        for (int64_t b = 0; b < d.batch; ++b) {
            const int64_t last = step == 0 && d.is_shared ? d.length[b] - 1 : rows - 1;
            const float *row = (const float *)logits.data + (b * rows + last) * count;
            tokens[b] = choose(&o, row, count, b, step);
            made[b * CAPACITY_MAX + step] = tokens[b];
        }
        rondo_tensor_deinit(&logits);
    }
    for (int64_t b = 0; b < d.batch; ++b) {
        for (int64_t i = 0; i < o.count; ++i) {
            printf("%s%lld", i > 0 ? "," : "", (long long)made[b * CAPACITY_MAX + i]);
        }
        printf("\n");
    }
    close_decoder(&d);
    return EXIT_SUCCESS;
}
