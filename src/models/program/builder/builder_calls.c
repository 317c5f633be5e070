// program/builder/builder_calls.c — nodes that are often wanted together. See rondo/builder.h.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/builder/builder_parts.h"

enum { OPSET_MIN = 13 };

// A group of nodes that are added as one. After a failure `status` stays set and the parts that
// follow do nothing.
typedef struct group {
    rondo_builder *builder;
    const char *output;
    rondo__builder_mark mark;
    rondo_status status;
} group;

static rondo_status begin(rondo_builder *builder, const char *output, const char *call,
                          group *out_group) {
    RETURN_IF_ERROR(rondo__builder_check(builder, call));
    RETURN_IF_ERROR(rondo__builder_check_name(builder, output, call));
    if (rondo__builder_get_opset(builder) < OPSET_MIN) {
        return RONDO_FAIL_AS(call, UNSUPPORTED, "the program is of opset %d; this needs %d",
                             rondo__builder_get_opset(builder), OPSET_MIN);
    }
    *out_group = (group){builder, output, rondo__builder_get_mark(builder), RONDO_STATUS_OK};
    return RONDO_STATUS_OK;
}

static rondo_status end(group *g) {
    if (g->status != RONDO_STATUS_OK) {
        rondo__builder_take_back(g->builder, &g->mark);
    }
    return g->status;
}

// The name "<output>.<part>", to be freed; NULL after a failure.
static char *make_name(group *g, const char *part) {
    if (g->status != RONDO_STATUS_OK) {
        return NULL;
    }
    char *name = rondo__strformat("%s.%s", g->output, part);
    g->status = name != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    return name;
}

// Adds a node that makes one value, the part of this name; NULL: the output itself. Inputs that
// begin with a line break are parts.
static void add(group *g, const char *op, const char *const *inputs, size_t input_count,
                const char *part, const rondo_attribute *attribute) {
    enum { INPUTS_MAX = 5 };
    char *names[INPUTS_MAX] = {NULL};
    const char *all[INPUTS_MAX] = {NULL};
    for (size_t i = 0; i < input_count; ++i) {
        const bool is_part = inputs[i] != NULL && inputs[i][0] == '\n';
        names[i] = is_part ? make_name(g, inputs[i] + 1) : NULL;
        all[i] = is_part ? names[i] : inputs[i];
    }
    char *made = part != NULL ? make_name(g, part) : NULL;
    if (g->status == RONDO_STATUS_OK) {
        const char *output = part != NULL ? made : g->output;
        const rondo_builder_node_options options = {
            .struct_size = sizeof options,
            .attributes = attribute,
            .attribute_count = attribute != NULL,
        };
        g->status = rondo_builder_add_node(g->builder, op, all, input_count, &output, 1, &options);
    }
    rondo__free(made);
    for (size_t i = 0; i < input_count; ++i) {
        rondo__free(names[i]);
    }
}

static void add_constant(group *g, const char *part, rondo_dtype dtype, int32_t rank, size_t count,
                         const void *elements) {
    char *name = make_name(g, part);
    if (name != NULL) {
        const rondo_shape shape = {.rank = rank, .extent = {rank > 0 ? (int64_t)count : 0}};
        g->status = rondo_builder_add_constant(g->builder, name, dtype, &shape, elements);
    }
    rondo__free(name);
}

#define INPUTS(...) \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
#define PART(name) "\n" name

rondo_status rondo_builder_add_embedding(rondo_builder *builder, const char *ids, const char *table,
                                         const char *output) {
    group g;
    const rondo_attribute axis = {.name = "axis", .kind = RONDO_ATTRIBUTE_INT};
    RETURN_IF_ERROR(begin(builder, output, __func__, &g));
    add(&g, "Gather", INPUTS(table, ids), NULL, &axis);
    return end(&g);
}

rondo_status rondo_builder_add_l2_normalize(rondo_builder *builder, const char *x, int64_t axis,
                                            float epsilon, const char *output) {
    group g;
    int32_t value = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(begin(builder, output, __func__, &g));
    if (!(epsilon >= 0.0f)) {
        return RONDO_FAIL(INVALID, "epsilon is %g; it is at least 0", (double)epsilon);
    }
    if (x == NULL) {
        return RONDO_FAIL(INVALID, "x is NULL");
    }
    g.status = rondo__builder_find(builder, x, __func__, &value);
    const bool is_f32 =
        g.status == RONDO_STATUS_OK && builder->program->values[value].dtype == RONDO_DTYPE_F32;
    add(&g, "Mul", INPUTS(x, x), "squares", NULL);
    add_constant(&g, "axes", RONDO_DTYPE_I64, 1, 1, &axis);
    add(&g, "ReduceSum", INPUTS(PART("squares"), PART("axes")), "sums", NULL);
    add_constant(&g, is_f32 ? "epsilon" : "epsilon.f32", RONDO_DTYPE_F32, 0, 1, &epsilon);
    if (!is_f32) {
        add(&g, "CastLike", INPUTS(PART("epsilon.f32"), x), "epsilon", NULL);
    }
    add(&g, "Add", INPUTS(PART("sums"), PART("epsilon")), "shifted", NULL);
    add(&g, "Sqrt", INPUTS(PART("shifted")), "norms", NULL);
    add(&g, "Div", INPUTS(x, PART("norms")), NULL, NULL);
    return end(&g);
}

rondo_status rondo_builder_add_square_error_cost(rondo_builder *builder, const char *x,
                                                 const char *label, const char *output) {
    group g;
    RETURN_IF_ERROR(begin(builder, output, __func__, &g));
    add(&g, "Sub", INPUTS(x, label), "difference", NULL);
    add(&g, "Mul", INPUTS(PART("difference"), PART("difference")), NULL, NULL);
    return end(&g);
}

rondo_status rondo_builder_add_mean(rondo_builder *builder, const char *x, const char *output) {
    group g;
    const rondo_attribute keepdims = {.name = "keepdims", .kind = RONDO_ATTRIBUTE_INT};
    RETURN_IF_ERROR(begin(builder, output, __func__, &g));
    add(&g, "ReduceMean", INPUTS(x), NULL, &keepdims);
    return end(&g);
}

rondo_status rondo_builder_add_shape(rondo_builder *builder, const char *x, const char *output) {
    group g;
    RETURN_IF_ERROR(begin(builder, output, __func__, &g));
    add(&g, "Shape", INPUTS(x), NULL, NULL);
    return end(&g);
}

rondo_status rondo_builder_add_slice(rondo_builder *builder, const char *x, const int64_t *axes,
                                     const int64_t *starts, const int64_t *ends,
                                     const int64_t *steps, size_t count, const char *output) {
    group g;
    int64_t ones[RONDO_RANK_MAX];
    RETURN_IF_ERROR(begin(builder, output, __func__, &g));
    if (axes == NULL || starts == NULL || ends == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          axes == NULL     ? "axes"
                          : starts == NULL ? "starts"
                                           : "ends");
    }
    if (count > RONDO_RANK_MAX) {
        return RONDO_FAIL(INVALID, "%zu axes; a tensor has at most %d", count, RONDO_RANK_MAX);
    }
    for (size_t i = 0; i < RONDO_RANK_MAX; ++i) {
        ones[i] = 1;
    }
    add_constant(&g, "starts", RONDO_DTYPE_I64, 1, count, starts);
    add_constant(&g, "ends", RONDO_DTYPE_I64, 1, count, ends);
    add_constant(&g, "axes", RONDO_DTYPE_I64, 1, count, axes);
    add_constant(&g, "steps", RONDO_DTYPE_I64, 1, count, steps != NULL ? steps : ones);
    add(&g, "Slice", INPUTS(x, PART("starts"), PART("ends"), PART("axes"), PART("steps")), NULL,
        NULL);
    return end(&g);
}
