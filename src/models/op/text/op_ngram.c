// op/text/op_ngram.c — TfIdfVectorizer: which n-grams of a pool occur in a sequence of integers or
// strings.
//
// Strings are numbered first: each distinct one of the pool by its place in alphabetical order, any
// other one by -1, which is no number of the pool.
//
// The pool lists its 1-grams, then its 2-grams, ...; ngram_counts says where each length starts.
// An n-gram may be spread: its elements lie 1, 2, ... max_skip_count + 1 places apart.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"
#include "op/support.h"
#include "tensor/elements.h"

typedef struct gram {
    const int64_t *items;
    int64_t length;
    int64_t column;  // of the output
    float weight;
} gram;

typedef struct gram_options {
    const int64_t *pool;  // integers; NULL: words
    char *const *words;
    const int64_t *starts, *columns;
    const float *weights;  // NULL: all 1
    size_t pool_count, start_count, column_count;
    int64_t length_min, length_max, skip_max;
    int64_t width;  // columns of the output
} gram_options;

static rondo_status check_ngram(const rondo__op *op) {
    const char *mode = rondo__op_get_string(op, "mode", "");
    if (strcmp(mode, "TF") != 0 && strcmp(mode, "IDF") != 0 && strcmp(mode, "TFIDF") != 0) {
        return rondo__op_fail_unsupported(op, "attribute mode");
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_options(const rondo__op *op, gram_options *out_options) {
    gram_options o = {0};
    size_t weight_count = 0;
    RETURN_IF_ERROR(check_ngram(op));
    o.pool = rondo__op_get_ints(op, "pool_int64s", &o.pool_count);
    const rondo__attribute *words = rondo__op_find(op, "pool_strings");
    if (words != NULL && words->kind == RONDO__ATTRIBUTE_STRINGS) {
        if (o.pool_count > 0) {
            return RONDO_OP_FAIL(op, BAD_DATA, "pool_int64s and pool_strings are both given");
        }
        o.pool = NULL;
        o.words = words->strings;
        o.pool_count = words->count;
    }
    o.starts = rondo__op_get_ints(op, "ngram_counts", &o.start_count);
    o.columns = rondo__op_get_ints(op, "ngram_indexes", &o.column_count);
    o.weights = rondo__op_get_floats(op, "weights", &weight_count);
    o.length_min = rondo__op_get_int(op, "min_gram_length", 1);
    o.length_max = rondo__op_get_int(op, "max_gram_length", 1);
    o.skip_max = rondo__op_get_int(op, "max_skip_count", 0);
    if (o.length_min < 1 || o.length_max < o.length_min || o.skip_max < 0 ||
        (uint64_t)o.length_max > o.start_count || o.column_count == 0 ||
        (o.weights != NULL && weight_count != o.column_count)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "gram lengths, counts, indexes and weights do not fit");
    }
    for (size_t i = 0; i < o.column_count; ++i) {
        if (o.columns[i] < 0 || o.columns[i] == INT64_MAX) {
            return RONDO_OP_FAIL(op, BAD_DATA, "entry %zu of ngram_indexes is %lld", i,
                                 (long long)o.columns[i]);
        }
        o.width = o.columns[i] + 1 > o.width ? o.columns[i] + 1 : o.width;
    }
    // Every length has whole n-grams, and there is a column for each.
    size_t grams = 0;
    for (size_t i = 0; i < o.start_count; ++i) {
        uint64_t begin = (uint64_t)o.starts[i];
        uint64_t end = i + 1 < o.start_count ? (uint64_t)o.starts[i + 1] : o.pool_count;
        if (begin > end || end > o.pool_count || (end - begin) % (i + 1) != 0) {
            return RONDO_OP_FAIL(op, BAD_DATA, "entry %zu of ngram_counts is %lld", i,
                                 (long long)o.starts[i]);
        }
        grams += (size_t)((end - begin) / (i + 1));
    }
    if (grams != o.column_count) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%zu n-grams have %zu indexes", grams, o.column_count);
    }
    *out_options = o;
    return RONDO_STATUS_OK;
}

static rondo_status infer_ngram(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    rondo_dtype dtype = infer->inputs[0].dtype;
    gram_options options;
    RETURN_IF_ERROR(read_options(infer->op, &options));
    bool fits = options.words != NULL ? dtype == RONDO_DTYPE_STRING
                                      : dtype == RONDO_DTYPE_I32 || dtype == RONDO_DTYPE_I64;
    if (!fits) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    if (x->rank != 1 && x->rank != 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the input has rank %d, not 1 or 2", x->rank);
    }
    rondo_shape shape = *x;
    shape.extent[x->rank - 1] = options.width;
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &shape);
}

static int compare_grams(const void *a_, const void *b_) {
    const gram *a = a_;
    const gram *b = b_;
    if (a->length != b->length) {
        return a->length < b->length ? -1 : 1;
    }
    for (int64_t i = 0; i < a->length; ++i) {
        if (a->items[i] != b->items[i]) {
            return a->items[i] < b->items[i] ? -1 : 1;
        }
    }
    return 0;
}

// Lists the pool's n-grams, sorted.
static void list_grams(const gram_options *o, gram *grams) {
    size_t count = 0;
    for (size_t i = 0; i < o->start_count; ++i) {
        size_t end = i + 1 < o->start_count ? (size_t)o->starts[i + 1] : o->pool_count;
        for (size_t at = (size_t)o->starts[i]; at < end; at += i + 1) {
            grams[count] = (gram){.items = o->pool + at,
                                  .length = (int64_t)i + 1,
                                  .column = o->columns[count],
                                  .weight = o->weights != NULL ? o->weights[count] : 1.0f};
            ++count;
        }
    }
    qsort(grams, count, sizeof *grams, compare_grams);
}

// ---- strings as numbers

static int compare_words(const void *a_, const void *b_) {
    const rondo_string *a = a_;
    const rondo_string *b = b_;
    return rondo__string_compare(a, b);
}

static int64_t find_word(const rondo_string *sorted, size_t count, const rondo_string *word) {
    const rondo_string *found = bsearch(word, sorted, count, sizeof *sorted, compare_words);
    return found != NULL ? found - sorted : -1;
}

// Lists the distinct words of the pool in order.
static size_t sort_words(const gram_options *o, rondo_string *sorted) {
    size_t count = 0;
    for (size_t i = 0; i < o->pool_count; ++i) {
        sorted[i] = rondo__string_from_text(o->words[i]);
    }
    qsort(sorted, o->pool_count, sizeof *sorted, compare_words);
    for (size_t i = 0; i < o->pool_count; ++i) {
        if (count == 0 || rondo__string_compare(&sorted[count - 1], &sorted[i]) != 0) {
            sorted[count++] = sorted[i];
        }
    }
    return count;
}

// Numbers the words of the pool and the elements of the input: fills pool[pool_count] and
// elements[].
static rondo_status number_words(const gram_options *o, const rondo_tensor *input, int64_t *pool,
                                 int64_t *elements) {
    rondo_string *sorted = rondo__calloc(o->pool_count, sizeof *sorted);
    if (sorted == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t count = sort_words(o, sorted);
    for (size_t i = 0; i < o->pool_count; ++i) {
        rondo_string word = rondo__string_from_text(o->words[i]);
        pool[i] = find_word(sorted, count, &word);
    }
    for (int64_t i = 0; i < rondo_shape_get_count(&input->shape); ++i) {
        elements[i] = find_word(sorted, count, (const rondo_string *)input->data + i);
    }
    rondo__free(sorted);
    return RONDO_STATUS_OK;
}

// ---- counting

typedef enum ngram_mode { MODE_TF, MODE_IDF, MODE_TFIDF } ngram_mode;

// Counts one sequence into its row of the output.
static void count_row(const gram_options *o, const gram *grams, ngram_mode mode,
                      const int64_t *elements, int64_t extent, int64_t *window, float *row) {
    for (int64_t length = o->length_min; length <= o->length_max && length <= extent; ++length) {
        // Elements that are alone cannot be spread.
        int64_t skips = length == 1 ? 0 : o->skip_max;
        for (int64_t skip = 0; skip <= skips && skip < extent; ++skip) {
            int64_t span = (length - 1) * (skip + 1);
            for (int64_t start = 0; start + span < extent; ++start) {
                for (int64_t k = 0; k < length; ++k) {
                    window[k] = elements[start + k * (skip + 1)];
                }
                gram wanted = {.items = window, .length = length};
                const gram *found =
                    bsearch(&wanted, grams, o->column_count, sizeof *grams, compare_grams);
                if (found == NULL) {
                    continue;
                }
                float *cell = &row[found->column];
                *cell = mode == MODE_IDF  ? found->weight
                        : mode == MODE_TF ? *cell + 1.0f
                                          : *cell + found->weight;
            }
        }
    }
}

static rondo_status compute_ngram(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    gram_options options;
    RETURN_IF_ERROR(read_options(compute->op, &options));
    const char *text = rondo__op_get_string(compute->op, "mode", "");
    ngram_mode mode = strcmp(text, "TF") == 0    ? MODE_TF
                      : strcmp(text, "IDF") == 0 ? MODE_IDF
                                                 : MODE_TFIDF;
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    size_t bytes = rondo_tensor_get_bytes(&compute->outputs[0]);
    if (bytes == 0) {
        return RONDO_STATUS_OK;
    }
    memset(output, 0, bytes);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    size_t count = (size_t)rondo_shape_get_count(&input->shape);
    int64_t *window = rondo__calloc((size_t)options.length_max, sizeof *window);
    int64_t *elements = rondo__calloc(count, sizeof *elements);
    int64_t *pool = rondo__calloc(options.pool_count, sizeof *pool);
    gram *grams = rondo__calloc(options.column_count, sizeof *grams);
    if (window == NULL || elements == NULL || pool == NULL || grams == NULL) {
        goto free_lists;
    }
    status = RONDO_STATUS_OK;
    if (options.words != NULL) {
        status = number_words(&options, input, pool, elements);
        options.pool = pool;
    } else {
        rondo__convert_elements(input->dtype, input->data, RONDO_DTYPE_I64, elements, count);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    list_grams(&options, grams);
    int64_t extent = input->shape.extent[input->shape.rank - 1];
    int64_t rows = input->shape.rank == 2 ? input->shape.extent[0] : 1;
    for (int64_t row = 0; row < rows; ++row) {
        count_row(&options, grams, mode, elements + row * extent, extent, window,
                  (float *)output + row * options.width);
    }

free_lists:
    rondo__free(window);
    rondo__free(elements);
    rondo__free(pool);
    rondo__free(grams);
    return status;
}

static const char *const ngram_attributes[] = {
    "max_gram_length", "max_skip_count", "min_gram_length", "mode",    "ngram_counts",
    "ngram_indexes",   "pool_int64s",    "pool_strings",    "weights", NULL};

const rondo__op_def rondo__op_table_ngram[] = {
    RONDO_OP_ROW(OP, TfIdfVectorizer, 9, RONDO_OP_OPSET_MAX, 1, 1, 1, 1,
                 .capture = RONDO__CAPTURE_YES, .attributes = ngram_attributes,
                 .infer = infer_ngram, .compute = compute_ngram, .check = check_ngram,
                 .strings = RONDO__INPUT_0),
    {0},
};
