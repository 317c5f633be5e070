// op/text/op_string.c — ops on text: RegexFullMatch, StringConcat, StringNormalizer, StringSplit.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/broadcast.h"
#include "op/op.h"
#include "op/support.h"
#include "op/text/characters.h"
#include "op/text/regex.h"
#include "tensor/elements.h"

static rondo_status check_strings(const rondo__infer *infer) {
    for (size_t i = 0; i < infer->input_count; ++i) {
        if (infer->inputs[i].dtype != RONDO_DTYPE_STRING) {
            return rondo__op_fail_dtype(infer->op, i, infer->inputs[i].dtype);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- StringConcat -----------------------------------------------------------------------------

static rondo_status infer_concat(rondo__infer *infer) {
    rondo_shape shape;
    RETURN_IF_ERROR(check_strings(infer));
    RETURN_IF_ERROR(rondo__broadcast_inputs(infer, &shape));
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_STRING, &shape);
}

static rondo_status join(rondo__compute *compute, const rondo_string *a, const rondo_string *b,
                         rondo_string *out_joined) {
    char *text;
    if (!rondo__add_size(a->size, b->size, &out_joined->size)) {
        return RONDO_OP_FAIL(compute->op, NO_MEMORY, "a string does not fit the address space");
    }
    RETURN_IF_ERROR(rondo__compute_new_text(compute, out_joined->size, &text));
    if (a->size > 0) {
        memcpy(text, a->data, a->size);
    }
    if (b->size > 0) {
        memcpy(text + a->size, b->data, b->size);
    }
    out_joined->data = text;
    return RONDO_STATUS_OK;
}

static rondo_status compute_concat(rondo__compute *compute) {
    const rondo_string *a = compute->inputs[0]->data;
    const rondo_string *b = compute->inputs[1]->data;
    const rondo_shape *operands[2] = {&compute->inputs[0]->shape, &compute->inputs[1]->shape};
    void *output;
    rondo__broadcast walk;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    rondo__broadcast_init(&walk, &compute->inferred[0].shape, operands, 2);
    rondo_string *to = output;
    for (int64_t row = 0; row < walk.row_count; ++row) {
        for (int64_t i = 0; i < walk.row_length; ++i) {
            RETURN_IF_ERROR(join(compute, &a[walk.offset[0] + i * walk.row_stride[0]],
                                 &b[walk.offset[1] + i * walk.row_stride[1]], to++));
        }
        rondo__broadcast_advance(&walk);
    }
    return RONDO_STATUS_OK;
}

// ---- StringNormalizer -------------------------------------------------------------------------

typedef enum case_action { CASE_NONE, CASE_LOWER, CASE_UPPER, CASE_UNKNOWN } case_action;

static case_action get_action(const rondo__op *op) {
    static const char *const names[] = {"NONE", "LOWER", "UPPER"};
    const char *text = rondo__op_get_string(op, "case_change_action", "NONE");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        if (strcmp(text, names[i]) == 0) {
            return (case_action)i;
        }
    }
    return CASE_UNKNOWN;
}

// Letters pair up the same in nearly all languages; these have an i of their own.
static rondo_status check_normalizer(const rondo__op *op) {
    static const char *const others[] = {"tr", "az", "lt"};
    const char *locale = rondo__op_get_string(op, "locale", "en_US");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; ++i) {
        if (strncmp(locale, others[i], 2) == 0 && strchr("_-.", locale[2]) != NULL) {
            return rondo__op_fail_unsupported(op, "attribute locale: its upper and lower case");
        }
    }
    return get_action(op) == CASE_UNKNOWN
               ? rondo__op_fail_unsupported(op, "attribute case_change_action")
               : RONDO_STATUS_OK;
}

static rondo_status infer_normalizer(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    RETURN_IF_ERROR(check_normalizer(infer->op));
    RETURN_IF_ERROR(check_strings(infer));
    if (x->rank != 1 && (x->rank != 2 || x->extent[0] != 1)) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the input has shape %s, not [C] or [1, C]",
                             rondo_shape_format(x, text, sizeof text));
    }
    return rondo__infer_set_data_dependent(infer, RONDO_DTYPE_STRING);
}

// `string` in lower or upper case, as text of the compute.
static rondo_status change_case(rondo__compute *compute, const rondo__letters *letters,
                                case_action action, const rondo_string *string,
                                rondo_string *out_changed) {
    char *text;
    size_t bytes;
    // The other case of a letter may be longer, by at most one more byte for each that it has.
    if (!rondo__mul_size(string->size, 2, &bytes)) {
        return RONDO_OP_FAIL(compute->op, NO_MEMORY, "a string does not fit the address space");
    }
    RETURN_IF_ERROR(rondo__compute_new_text(compute, bytes + RONDO__UTF8_MAX, &text));
    size_t size = 0;
    for (size_t at = 0; at < string->size && size <= bytes;) {
        uint32_t character;
        at += rondo__string_read(string, at, &character);
        character = action == CASE_LOWER ? rondo__letters_lower(letters, character)
                                         : rondo__letters_upper(letters, character);
        size += rondo__string_write(character, text + size);
    }
    *out_changed = (rondo_string){.data = text, .size = size};
    return RONDO_STATUS_OK;
}

typedef struct normalizer {
    case_action action;   // of what comes out
    case_action compare;  // of both sides when stop words are looked for
    rondo__letters letters;
    size_t stop_count;
    rondo_string *stops;
} normalizer;

static rondo_status normalizer_init(rondo__compute *compute, normalizer *out_normalizer) {
    const rondo__op *op = compute->op;
    const rondo__attribute *words = rondo__op_find(op, "stopwords");
    normalizer n = {.action = get_action(op)};
    if (rondo__op_get_int(op, "is_case_sensitive", 0) == 0) {
        n.compare = n.action == CASE_UPPER ? CASE_UPPER : CASE_LOWER;
    }
    size_t count = words != NULL && words->kind == RONDO__ATTRIBUTE_STRINGS ? words->count : 0;
    n.stops = rondo__calloc(count, sizeof *n.stops);
    if (n.stops == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = rondo__letters_init(op, &n.letters);
    for (; n.stop_count < count && status == RONDO_STATUS_OK; ++n.stop_count) {
        rondo_string *stop = &n.stops[n.stop_count];
        *stop = rondo__string_from_text(words->strings[n.stop_count]);
        if (n.compare != CASE_NONE) {
            status = change_case(compute, &n.letters, n.compare, stop, stop);
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo__letters_deinit(&n.letters);
        rondo__free(n.stops);
        return status;
    }
    *out_normalizer = n;
    return RONDO_STATUS_OK;
}

// Appends the string to out_kept unless it is a stop word.
static rondo_status keep_string(rondo__compute *compute, const normalizer *n,
                                const rondo_string *string, rondo_string *kept,
                                size_t *in_out_count) {
    rondo_string compared = *string;
    rondo_string result = *string;
    if (n->compare != CASE_NONE && n->stop_count > 0) {
        RETURN_IF_ERROR(change_case(compute, &n->letters, n->compare, string, &compared));
    }
    for (size_t i = 0; i < n->stop_count; ++i) {
        if (rondo__string_compare(&compared, &n->stops[i]) == 0) {
            return RONDO_STATUS_OK;
        }
    }
    if (n->action != CASE_NONE) {
        RETURN_IF_ERROR(change_case(compute, &n->letters, n->action, string, &result));
    }
    kept[(*in_out_count)++] = result;
    return RONDO_STATUS_OK;
}

static rondo_status compute_normalizer(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    size_t count = (size_t)rondo_shape_get_count(&input->shape);
    normalizer n;
    RETURN_IF_ERROR(normalizer_init(compute, &n));
    rondo_status status = RONDO_STATUS_OK;
    size_t kept_count = 0;
    rondo_string *kept = rondo__calloc(count + 1, sizeof *kept);
    if (kept == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto free_normalizer;
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        status = keep_string(compute, &n, (const rondo_string *)input->data + i, kept, &kept_count);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_kept;
    }
    // When nothing is left there is one empty string.
    rondo_shape shape = input->shape;
    shape.extent[shape.rank - 1] = kept_count > 0 ? (int64_t)kept_count : 1;
    void *output;
    status = rondo__compute_get_output(compute, 0, RONDO_DTYPE_STRING, &shape, &output);
    if (status == RONDO_STATUS_OK) {
        memcpy(output, kept, (kept_count > 0 ? kept_count : 1) * sizeof *kept);
    }

free_kept:
    rondo__free(kept);
free_normalizer:
    rondo__letters_deinit(&n.letters);
    rondo__free(n.stops);
    return status;
}

// ---- StringSplit ------------------------------------------------------------------------------

static rondo_status infer_split(rondo__infer *infer) {
    RETURN_IF_ERROR(check_strings(infer));
    if (infer->inputs[0].shape.rank >= RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(infer->op, "result of rank above 8");
    }
    RETURN_IF_ERROR(rondo__infer_set_data_dependent(infer, RONDO_DTYPE_STRING));
    return rondo__infer_set_output(infer, 1, RONDO_DTYPE_I64, &infer->inputs[0].shape);
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Cuts off the next part of *rest; false when there is none. `is_last`: the part is all there is.
// Without a delimiter, blanks separate and do not count at either end; that is how Python splits.
static bool take_part(const rondo_string *delimiter, bool is_last, rondo_string *rest,
                      rondo_string *out_part) {
    if (rest->data == NULL) {
        return false;
    }
    const char *end = rest->data + rest->size;
    const char *from = rest->data;
    while (delimiter->size == 0 && from < end && is_blank(*from)) {
        from += 1;
    }
    if (delimiter->size == 0 && from == end) {
        return false;
    }
    const char *to = from;
    while (!is_last && to < end &&
           (delimiter->size == 0 ? !is_blank(*to)
                                 : (size_t)(end - to) < delimiter->size ||
                                       memcmp(to, delimiter->data, delimiter->size) != 0)) {
        to += 1;
    }
    to = is_last ? end : to;
    *out_part = (rondo_string){.data = from, .size = (size_t)(to - from)};
    bool is_done = to == end;
    rest->data = is_done ? NULL : to + delimiter->size;
    rest->size = is_done ? 0 : (size_t)(end - to) - delimiter->size;
    return true;
}

// Splits one string; with `parts` NULL it only counts.
static size_t split(const rondo__op *op, const rondo_string *string, rondo_string *parts) {
    const rondo_string delimiter =
        rondo__string_from_text(rondo__op_get_string(op, "delimiter", ""));
    const int64_t limit = rondo__op_get_int(op, "maxsplit", -1);
    rondo_string rest = {.data = string->size > 0 ? string->data : "", .size = string->size};
    rondo_string part;
    size_t count = 0;
    while (take_part(&delimiter, limit >= 0 && count == (size_t)limit, &rest, &part)) {
        if (parts != NULL) {
            parts[count] = part;
        }
        count += 1;
    }
    return count;
}

static rondo_status compute_split(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_string *strings = input->data;
    int64_t count = rondo_shape_get_count(&input->shape);
    rondo_shape shape = input->shape;
    int64_t most = 0;
    for (int64_t i = 0; i < count; ++i) {
        int64_t parts = (int64_t)split(compute->op, &strings[i], NULL);
        most = parts > most ? parts : most;
    }
    shape.extent[shape.rank++] = most;
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_output(compute, 0, RONDO_DTYPE_STRING, &shape, &output));
    void *counts = NULL;
    if (rondo__compute_wants_output(compute, 1)) {
        RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 1, &counts));
    }
    for (int64_t i = 0; i < count; ++i) {
        size_t parts = split(compute->op, &strings[i], (rondo_string *)output + i * most);
        if (counts != NULL) {
            ((int64_t *)counts)[i] = (int64_t)parts;
        }
    }
    return RONDO_STATUS_OK;
}

// ---- RegexFullMatch ---------------------------------------------------------------------------

static rondo_status check_regex(const rondo__op *op) {
    rondo__regex *regex;
    const char *pattern = rondo__op_get_string(op, "pattern", NULL);
    if (pattern == NULL) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute pattern is missing");
    }
    RETURN_IF_ERROR(rondo__regex_create(op, pattern, &regex));
    rondo__regex_destroy(regex);
    return RONDO_STATUS_OK;
}

static rondo_status infer_regex(rondo__infer *infer) {
    RETURN_IF_ERROR(check_strings(infer));
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_BOOL, &infer->inputs[0].shape);
}

static rondo_status compute_regex(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    int64_t count = rondo_shape_get_count(&input->shape);
    const char *pattern = rondo__op_get_string(compute->op, "pattern", NULL);
    rondo__regex *regex;
    void *output;
    if (pattern == NULL) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "attribute pattern is missing");
    }
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    RETURN_IF_ERROR(rondo__regex_create(compute->op, pattern, &regex));
    rondo_status status = RONDO_STATUS_OK;
    for (int64_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        bool matches = false;
        status = rondo__regex_matches(regex, (const rondo_string *)input->data + i, &matches);
        ((uint8_t *)output)[i] = matches;
    }
    rondo__regex_destroy(regex);
    return status;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const regex_attributes[] = {"pattern", NULL};
static const char *const split_attributes[] = {"delimiter", "maxsplit", NULL};
static const char *const normalizer_attributes[] = {"case_change_action", "is_case_sensitive",
                                                    "locale", "stopwords", NULL};

#define ENTRY(op, first, inputs, outputs, attribute_list, infer_function, compute_function, ...) \
    RONDO_OP_ROW(OP, op, first, RONDO_OP_OPSET_MAX, inputs, inputs, 1, outputs,                  \
                 .attributes = attribute_list, .infer = infer_function,                          \
                 .compute = compute_function, .check = __VA_ARGS__)

const rondo__op_def rondo__op_table_string[] = {
    ENTRY(RegexFullMatch, 20, 1, 1, regex_attributes, infer_regex, compute_regex, check_regex,
          .strings = RONDO__INPUT_0),
    ENTRY(StringConcat, 20, 2, 1, no_attributes, infer_concat, compute_concat, NULL,
          .strings = RONDO__INPUT_0 | RONDO__INPUT_1),
    ENTRY(StringNormalizer, 10, 1, 1, normalizer_attributes, infer_normalizer, compute_normalizer,
          check_normalizer, .strings = RONDO__INPUT_0),
    ENTRY(StringSplit, 20, 1, 2, split_attributes, infer_split, compute_split, NULL,
          .strings = RONDO__INPUT_0),
    {0},
};
