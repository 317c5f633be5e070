// op/text/op_tokenizer.c — com.microsoft.Tokenizer: strings cut into tokens along a new last axis.
//
// Tokens are what tokenexp matches, or what stands between matches of each of the separators, one
// after the other; an empty separator makes a token of each character. Shorter ones than mincharnum
// are dropped, missing ones are pad_value. With mark each row begins with 0x02 and ends with 0x03,
// unless there is no token in any.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"
#include "op/support.h"
#include "op/text/characters.h"
#include "op/text/regex.h"
#include "tensor/elements.h"

static char *const *get_separators(const rondo__op *op, size_t *out_count) {
    const rondo__attribute *separators = rondo__op_find(op, "separators");
    const bool is_there = separators != NULL && separators->kind == RONDO__ATTRIBUTE_STRINGS;
    *out_count = is_there ? separators->count : 0;
    return is_there ? separators->strings : NULL;
}

// So does ONNX Runtime: "." is each character, also one that the expression would not match.
static bool makes_characters(const rondo__op *op) {
    size_t count;
    const char *expression = rondo__op_get_string(op, "tokenexp", NULL);
    if (expression != NULL) {
        return strcmp(expression, ".") == 0;
    }
    char *const *separators = get_separators(op, &count);
    return count == 1 && separators[0][0] == '\0';
}

static rondo_status check_tokenizer(const rondo__op *op) {
    size_t given;
    char *const *separators = get_separators(op, &given);
    const char *expression = rondo__op_get_string(op, "tokenexp", NULL);
    if ((expression == NULL) == (given == 0)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "wants one of the attributes tokenexp and separators");
    }
    if (expression != NULL && expression[0] == '\0') {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute tokenexp is empty");
    }
    const size_t count = expression != NULL ? 1 : makes_characters(op) ? 0 : given;
    for (size_t i = 0; i < count; ++i) {
        rondo__regex *regex;
        RETURN_IF_ERROR(
            rondo__regex_create(op, expression != NULL ? expression : separators[i], &regex));
        rondo__regex_destroy(regex);
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_tokenizer(rondo__infer *infer) {
    const rondo__tensor_info *x = &infer->inputs[0];
    if (x->dtype != RONDO_DTYPE_STRING) {
        return rondo__op_fail_dtype(infer->op, 0, x->dtype);
    }
    if (x->shape.rank != 1 && x->shape.rank != 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "X has rank %d, it must be 1 or 2",
                             x->shape.rank);
    }
    rondo_shape shape = x->shape;
    shape.extent[shape.rank++] = -1;
    RETURN_IF_ERROR(rondo__infer_set_data_dependent(infer, RONDO_DTYPE_STRING));
    return rondo__infer_set_partial(infer, 0, &shape);
}

// ---- cutting ----------------------------------------------------------------------------------

typedef struct tokens {
    rondo_string *at;
    size_t count, capacity;
} tokens;

static size_t count_characters(const rondo_string *string) {
    size_t count = 0;
    uint32_t ignored;
    for (size_t byte = 0; byte < string->size; ++count) {
        byte += rondo__string_read(string, byte, &ignored);
    }
    return count;
}

// Adds bytes [begin, end) of a string, unless they are too few characters; *out_is_token tells.
static rondo_status add_token(tokens *list, const rondo_string *string, size_t begin, size_t end,
                              int64_t least, bool *out_is_token) {
    const rondo_string token = {.data = string->data + begin, .size = end - begin};
    *out_is_token = end > begin && (int64_t)count_characters(&token) >= least;
    if (!*out_is_token) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(list->at, list->capacity, list->count + 1));
    list->at[list->count++] = token;
    return RONDO_STATUS_OK;
}

// The matches of the expression. After a match that is too short the search goes on one character
// later.
static rondo_status add_matches(tokens *list, const rondo__regex *regex, const rondo_string *string,
                                int64_t least) {
    size_t from = 0, begin = 0, end = 0;
    for (;;) {
        bool is_found = false, is_token = false;
        RETURN_IF_ERROR(rondo__regex_find(regex, string, from, &is_found, &begin, &end));
        if (!is_found) {
            return RONDO_STATUS_OK;
        }
        RETURN_IF_ERROR(add_token(list, string, begin, end, least, &is_token));
        if (!is_token && begin == string->size) {
            return RONDO_STATUS_OK;
        }
        uint32_t ignored;
        from = is_token ? end : begin + rondo__string_read(string, begin, &ignored);
    }
}

static rondo_status add_characters(tokens *list, const rondo_string *string) {
    bool ignored;
    uint32_t character;
    for (size_t byte = 0; byte < string->size;) {
        const size_t end = byte + rondo__string_read(string, byte, &character);
        RETURN_IF_ERROR(add_token(list, string, byte, end, 1, &ignored));
        byte = end;
    }
    return RONDO_STATUS_OK;
}

// What stands between matches of a separator.
static rondo_status add_parts(tokens *list, const rondo__regex *separator,
                              const rondo_string *string, int64_t least) {
    size_t from = 0, search = 0, begin = 0, end = 0;
    bool ignored;
    while (search <= string->size) {
        bool is_found = false;
        RETURN_IF_ERROR(rondo__regex_find(separator, string, search, &is_found, &begin, &end));
        if (!is_found) {
            break;
        }
        if (end == begin) {  // separates nothing
            search = end + 1;
            continue;
        }
        RETURN_IF_ERROR(add_token(list, string, from, begin, least, &ignored));
        from = search = end;
    }
    return add_token(list, string, from, string->size, least, &ignored);
}

// The tokens of one string: those that were there from `first` on are its parts so far.
static rondo_status split_again(tokens *list, size_t first, const rondo__regex *separator,
                                int64_t least) {
    tokens parts = {0};
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = first; i < list->count && status == RONDO_STATUS_OK; ++i) {
        const rondo_string part = list->at[i];
        status = add_parts(&parts, separator, &part, least);
    }
    list->count = first;
    for (size_t i = 0; i < parts.count && status == RONDO_STATUS_OK; ++i) {
        bool ignored;
        status = add_token(list, &parts.at[i], 0, parts.at[i].size, 1, &ignored);
    }
    rondo__free(parts.at);
    return status;
}

static rondo_status cut(const rondo__op *op, rondo__regex *const *regexes, size_t regex_count,
                        const rondo_string *string, tokens *list) {
    const int64_t least = rondo__op_get_int(op, "mincharnum", 1);
    if (makes_characters(op)) {
        return add_characters(list, string);
    }
    if (rondo__op_get_string(op, "tokenexp", NULL) != NULL) {
        return add_matches(list, regexes[0], string, least);
    }
    bool ignored;
    const size_t first = list->count;
    RETURN_IF_ERROR(add_token(list, string, 0, string->size, 1, &ignored));
    for (size_t i = 0; i < regex_count; ++i) {
        RETURN_IF_ERROR(split_again(list, first, regexes[i], least));
    }
    return RONDO_STATUS_OK;
}

// ---- the op -----------------------------------------------------------------------------------

static rondo_status write_rows(rondo__compute *compute, const tokens *list, const size_t *ends,
                               int64_t rows) {
    const rondo__op *op = compute->op;
    const rondo_string pad = rondo__string_from_text(rondo__op_get_string(op, "pad_value", ""));
    rondo_shape shape = compute->inputs[0]->shape;
    size_t most = 0;
    for (int64_t r = 0; r < rows; ++r) {
        const size_t count = ends[r] - (r > 0 ? ends[r - 1] : 0);
        most = count > most ? count : most;
    }
    const bool marks = rondo__op_get_int(op, "mark", 0) != 0 && most > 0;
    most += marks ? 2 : 0;
    shape.extent[shape.rank++] = (int64_t)most;
    void *data;
    RETURN_IF_ERROR(rondo__compute_get_output(compute, 0, RONDO_DTYPE_STRING, &shape, &data));
    rondo_string *to = data;
    for (int64_t r = 0; r < rows; ++r) {
        const rondo_string *row_end = to + most;
        if (marks) {
            *to++ = rondo__string_from_text("\x02");
        }
        for (size_t i = r > 0 ? ends[r - 1] : 0; i < ends[r]; ++i) {
            *to++ = list->at[i];
        }
        if (marks) {
            *to++ = rondo__string_from_text("\x03");
        }
        while (to < row_end) {
            *to++ = pad;
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status cut_rows(rondo__compute *compute, rondo__regex *const *regexes,
                             size_t regex_count) {
    const rondo_tensor *x = compute->inputs[0];
    const int64_t rows = rondo_shape_get_count(&x->shape);
    tokens list = {0};
    size_t *ends = rondo__calloc((size_t)rows + 1, sizeof *ends);
    rondo_status status = ends != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    for (int64_t r = 0; r < rows && status == RONDO_STATUS_OK; ++r) {
        status = cut(compute->op, regexes, regex_count, (const rondo_string *)x->data + r, &list);
        ends[r] = list.count;
    }
    if (status == RONDO_STATUS_OK) {
        status = write_rows(compute, &list, ends, rows);
    }
    rondo__free(list.at);
    rondo__free(ends);
    return status;
}

static rondo_status compute_tokenizer(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    RETURN_IF_ERROR(check_tokenizer(op));
    size_t given;
    char *const *separators = get_separators(op, &given);
    const char *expression = rondo__op_get_string(op, "tokenexp", NULL);
    const size_t count = expression != NULL ? 1 : makes_characters(op) ? 0 : given;
    rondo__regex **regexes = rondo__calloc(count + 1, sizeof *regexes);
    rondo_status status = regexes != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        status =
            rondo__regex_create(op, expression != NULL ? expression : separators[i], &regexes[i]);
    }
    if (status == RONDO_STATUS_OK) {
        status = cut_rows(compute, regexes, count);
    }
    for (size_t i = 0; regexes != NULL && i < count; ++i) {
        rondo__regex_destroy(regexes[i]);
    }
    rondo__free(regexes);
    return status;
}

static const char *const attributes[] = {"mark",       "mincharnum", "pad_value",
                                         "separators", "tokenexp",   NULL};

const rondo__op_def rondo__op_table_tokenizer[] = {
    {.id = RONDO_OP_NAME(MS, Tokenizer),
     .opset_min = 1,
     .opset_max = 1,
     .input_min = 1,
     .input_max = 1,
     .output_min = 1,
     .output_max = 1,
     .attributes = attributes,
     .infer = infer_tokenizer,
     .compute = compute_tokenizer,
     .check = check_tokenizer,
     .strings = RONDO__INPUT_0},
    {.name = NULL},
};
