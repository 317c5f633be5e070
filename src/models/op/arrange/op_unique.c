// op/arrange/op_unique.c — Unique: the distinct elements of a tensor, or distinct slices along an
// axis.
//
// A slice is turned into a row of sort keys; sorting the rows brings equal slices together, lowest
// index first. Each run of equal rows is a group, and the groups are what the outputs describe.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/arrange/sort_key.h"
#include "op/bounds.h"
#include "op/op.h"
#include "op/support.h"
#include "tensor/elements.h"

typedef struct unique_row {
    const uint64_t *keys;
    size_t key_count;
    int64_t index;  // of the slice
} unique_row;

typedef struct unique_group {
    int64_t first;  // lowest index of its slices
    int64_t begin;  // its rows, begin .. end - 1 of the sorted rows
    int64_t end;
} unique_group;

static rondo_status infer_unique(rondo__infer *infer) {
    rondo_shape shape = {.rank = 1, .extent = {-1}};
    if (rondo__op_find(infer->op, "axis") != NULL) {
        int32_t axis = 0;
        RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", 0),
                                               infer->inputs[0].shape.rank, &axis));
        shape = infer->inputs[0].shape;
        shape.extent[axis] = -1;
    }
    (void)rondo__infer_set_data_dependent(infer, infer->inputs[0].dtype);
    for (size_t i = 1; i < infer->output_count; ++i) {
        infer->outputs[i].dtype = RONDO_DTYPE_I64;
        (void)rondo__infer_set_rank(infer, i, 1);
    }
    return rondo__infer_set_partial(infer, 0, &shape);
}

static int compare_keys(const unique_row *a, const unique_row *b) {
    for (size_t i = 0; i < a->key_count; ++i) {
        if (a->keys[i] != b->keys[i]) {
            return a->keys[i] < b->keys[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_rows(const void *a_, const void *b_) {
    const unique_row *a = a_;
    const unique_row *b = b_;
    int order = compare_keys(a, b);
    return order != 0 ? order : a->index < b->index ? -1 : a->index > b->index;
}

static int compare_groups(const void *a_, const void *b_) {
    const unique_group *a = a_;
    const unique_group *b = b_;
    return a->first < b->first ? -1 : a->first > b->first;
}

// The input as slices [outer, extent, inner] along one axis; a flat list when there is none.
typedef struct slices {
    rondo_shape shape;
    int32_t axis;
    int64_t outer;
    int64_t extent;
    int64_t inner;
} slices;

static rondo_status get_slices(const rondo__compute *compute, slices *out_slices) {
    const rondo_tensor *input = compute->inputs[0];
    slices s = {.shape = {.rank = 1, .extent = {rondo_shape_get_count(&input->shape)}}};
    if (rondo__op_find(compute->op, "axis") != NULL) {
        s.shape = input->shape;
        RETURN_IF_ERROR(rondo__op_resolve_axis(
            compute->op, rondo__op_get_int(compute->op, "axis", 0), s.shape.rank, &s.axis));
    }
    s.outer = rondo__shape_multiply(&s.shape, 0, s.axis);
    s.extent = s.shape.extent[s.axis];
    s.inner = rondo__shape_multiply(&s.shape, s.axis + 1, s.shape.rank);
    *out_slices = s;
    return RONDO_STATUS_OK;
}

static int compare_string_addresses(const void *a, const void *b) {
    return rondo__string_compare(*(const rondo_string *const *)a, *(const rondo_string *const *)b);
}

// The sort key of a string is its rank among all of them: ranks[i] is that of element i.
static rondo_status rank_strings(const rondo_tensor *input, uint64_t *ranks) {
    const rondo_string *strings = input->data;
    size_t count = (size_t)rondo_shape_get_count(&input->shape);
    const rondo_string **sorted = rondo__calloc(count, sizeof *sorted);
    if (sorted == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        sorted[i] = &strings[i];
    }
    qsort(sorted, count, sizeof *sorted, compare_string_addresses);
    uint64_t rank = 0;
    for (size_t i = 0; i < count; ++i) {
        rank += i > 0 && rondo__string_compare(sorted[i - 1], sorted[i]) != 0;
        ranks[sorted[i] - strings] = rank;
    }
    rondo__free(sorted);
    return RONDO_STATUS_OK;
}

// Rows of one key, by each byte in which keys differ, from the low one up; `spare` is room for as
// many.
static void sort_by_bytes(unique_row *rows, unique_row *spare, int64_t count) {
    unique_row *from = rows, *to = spare;
    uint64_t differs = 0;
    for (int64_t i = 1; i < count; ++i) {
        differs |= *rows[i].keys ^ *rows[0].keys;
    }
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t places[257] = {0};
        if ((differs >> shift & 255) == 0) {
            continue;
        }
        for (int64_t i = 0; i < count; ++i) {
            ++places[(*from[i].keys >> shift & 255) + 1];
        }
        for (int k = 1; k < 256; ++k) {
            places[k] += places[k - 1];
        }
        for (int64_t i = 0; i < count; ++i) {
            to[places[*from[i].keys >> shift & 255]++] = from[i];
        }
        unique_row *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != rows) {
        memcpy(rows, from, (size_t)count * sizeof *rows);
    }
}

// Fills keys[extent][outer * inner] and the rows over them, sorted. `ranks`: of strings.
static rondo_status sort_slices(const rondo_tensor *input, const slices *s, const uint64_t *ranks,
                                uint64_t *keys, unique_row *rows) {
    const size_t key_count = (size_t)(s->outer * s->inner);
    uint64_t *key = keys;
    for (int64_t i = 0; i < s->extent; ++i) {
        rows[i] = (unique_row){.keys = key, .key_count = key_count, .index = i};
        for (int64_t o = 0; o < s->outer && key_count > 0; ++o, key += s->inner) {
            const int64_t at = (o * s->extent + i) * s->inner;
            if (ranks != NULL) {
                memcpy(key, ranks + at, (size_t)s->inner * sizeof *key);
            } else if (key_count > 1) {
                rondo__sort_keys(input, at, 1, s->inner, key);
            }
        }
    }
    if (key_count != 1) {
        qsort(rows, (size_t)s->extent, sizeof *rows, compare_rows);
        return RONDO_STATUS_OK;
    }
    if (ranks == NULL) {
        rondo__sort_keys(input, 0, 1, s->extent, keys);
    }
    unique_row *spare = rondo__calloc((size_t)s->extent, sizeof *spare);
    if (spare == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    sort_by_bytes(rows, spare, s->extent);
    rondo__free(spare);
    return RONDO_STATUS_OK;
}

static int64_t make_groups(const slices *s, const unique_row *rows, unique_group *groups) {
    int64_t count = 0;
    for (int64_t i = 0; i < s->extent; ++i) {
        if (i == 0 || compare_keys(&rows[i - 1], &rows[i]) != 0) {
            groups[count++] = (unique_group){.first = rows[i].index, .begin = i};
        }
        groups[count - 1].end = i + 1;
    }
    return count;
}

// Output `output` as a list of `count` i64; *out_list is NULL when the output is not used.
static rondo_status get_list(rondo__compute *compute, size_t output, int64_t count,
                             int64_t **out_list) {
    void *data = NULL;
    *out_list = NULL;
    if (!rondo__compute_wants_output(compute, output)) {
        return RONDO_STATUS_OK;
    }
    rondo_shape shape = {.rank = 1, .extent = {count}};
    RETURN_IF_ERROR(rondo__compute_get_output(compute, output, RONDO_DTYPE_I64, &shape, &data));
    *out_list = data;
    return RONDO_STATUS_OK;
}

static rondo_status write_outputs(rondo__compute *compute, const slices *s, const unique_row *rows,
                                  const unique_group *groups, int64_t group_count) {
    const rondo_tensor *input = compute->inputs[0];
    rondo_shape shape = s->shape;
    shape.extent[s->axis] = group_count;
    void *values = NULL;
    int64_t *first = NULL;
    int64_t *inverse = NULL;
    int64_t *counts = NULL;
    RETURN_IF_ERROR(rondo__compute_get_output(compute, 0, input->dtype, &shape, &values));
    RETURN_IF_ERROR(get_list(compute, 1, group_count, &first));
    RETURN_IF_ERROR(get_list(compute, 2, s->extent, &inverse));
    RETURN_IF_ERROR(get_list(compute, 3, group_count, &counts));
    size_t bytes = (size_t)s->inner * rondo_dtype_get_bytes(input->dtype);
    for (int64_t g = 0; g < group_count; ++g) {
        const unique_group *group = &groups[g];
        for (int64_t o = 0; bytes > 0 && o < s->outer; ++o) {
            memcpy((uint8_t *)values + (size_t)(o * group_count + g) * bytes,
                   (const uint8_t *)input->data + (size_t)(o * s->extent + group->first) * bytes,
                   bytes);
        }
        if (first != NULL) {
            first[g] = group->first;
        }
        if (counts != NULL) {
            counts[g] = group->end - group->begin;
        }
        for (int64_t i = group->begin; inverse != NULL && i < group->end; ++i) {
            inverse[rows[i].index] = g;
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_unique(rondo__compute *compute) {
    slices s;
    RETURN_IF_ERROR(get_slices(compute, &s));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    unique_row *rows = NULL;
    unique_group *groups = NULL;
    uint64_t *ranks = NULL;
    uint64_t *keys = rondo__calloc((size_t)(s.outer * s.extent * s.inner), sizeof *keys);
    if (keys == NULL) {
        return status;
    }
    rows = rondo__calloc((size_t)s.extent, sizeof *rows);
    if (rows == NULL) {
        goto free_keys;
    }
    groups = rondo__calloc((size_t)s.extent, sizeof *groups);
    if (groups == NULL) {
        goto free_rows;
    }
    if (compute->inputs[0]->dtype == RONDO_DTYPE_STRING) {
        ranks = rondo__calloc((size_t)(s.outer * s.extent * s.inner), sizeof *ranks);
        status = ranks == NULL ? RONDO_STATUS_NO_MEMORY : rank_strings(compute->inputs[0], ranks);
        if (status != RONDO_STATUS_OK) {
            goto free_groups;
        }
    }
    status = sort_slices(compute->inputs[0], &s, ranks, keys, rows);
    if (status != RONDO_STATUS_OK) {
        goto free_groups;
    }
    int64_t group_count = make_groups(&s, rows, groups);
    if (rondo__op_get_int(compute->op, "sorted", 1) == 0) {
        qsort(groups, (size_t)group_count, sizeof *groups, compare_groups);
    }
    status = write_outputs(compute, &s, rows, groups, group_count);
free_groups:
    rondo__free(ranks);
    rondo__free(groups);
free_rows:
    rondo__free(rows);
free_keys:
    rondo__free(keys);
    return status;
}

static const char *const unique_attributes[] = {"axis", "sorted", NULL};

static bool bound_unique(const rondo__bounding *b, rondo__op_bound *out_bound) {
    enum { VALUES = 0, INVERSE = 2 };
    if (!rondo__bound_axis(b, out_bound)) {
        return false;
    }
    if (b->output != VALUES) {
        const int64_t extent = out_bound->shape.extent[out_bound->axis];
        *out_bound = (rondo__op_bound){.shape = {.rank = 1, .extent = {extent}},
                                       .axis = b->output == INVERSE ? -1 : 0};
    }
    return true;
}

const rondo__op_def rondo__op_table_unique[] = {
    RONDO_OP_ROW(OP, Unique, 11, RONDO_OP_OPSET_MAX, 1, 1, 1, 4, .flags = RONDO__OP_NATIVE_HALF,
                 .attributes = unique_attributes, .infer = infer_unique, .compute = compute_unique,
                 .strings = RONDO__INPUT_0, .bound = bound_unique),
    {0},
};
