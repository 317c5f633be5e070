// docs/operators.md lists the ops that there are, and names those that there are not. After a
// change:
//   RONDO_ACCEPT=1 build/tests/test_op_documentation
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "onnx/expand/expand.h"
#include "op/kinds.h"
#include "op/op.h"
#include "support/source_dir.h"
#include "support/test.h"

enum { OPS_MAX = 512, TEXT_BYTES = 64 * 1024, INPUTS_MAX = 4 };

static const char begin_mark[] = "<!-- begin: written by test_op_documentation -->\n";
static const char end_mark[] = "<!-- end -->\n";

// ---- what there is ----------------------------------------------------------------------------

// The entries of one op as one: its versions follow on each other.
typedef struct op_row {
    const rondo__op_def *def;
    int32_t first;
    int32_t last;
} op_row;

typedef struct op_list {
    op_row rows[OPS_MAX];
    size_t count;
} op_list;

static void add_op(void *user_data, const rondo__op_def *def) {
    op_list *list = user_data;
    if ((def->flags & RONDO__OP_INTERNAL) != 0) {
        return;
    }
    for (size_t i = 0; i < list->count; ++i) {
        op_row *row = &list->rows[i];
        if (strcmp(row->def->name, def->name) == 0 && strcmp(row->def->domain, def->domain) == 0) {
            row->first = def->opset_min < row->first ? def->opset_min : row->first;
            row->last = def->opset_max > row->last ? def->opset_max : row->last;
            return;
        }
    }
    assert_true(list->count < OPS_MAX);
    list->rows[list->count++] =
        (op_row){.def = def, .first = def->opset_min, .last = def->opset_max};
}

static int compare_rows(const void *a, const void *b) {
    const rondo__op_def *x = ((const op_row *)a)->def;
    const rondo__op_def *y = ((const op_row *)b)->def;
    const int by_domain = strcmp(x->domain, y->domain);
    return by_domain != 0 ? by_domain : strcmp(x->name, y->name);
}

static bool takes(const rondo__op_def *def, rondo_dtype dtype) {
    const rondo__op op = {.def = def, .opset = def->opset_max};
    bool does = false;
    for (size_t i = 0; i < INPUTS_MAX && i < def->input_max; ++i) {
        rondo__tensor_info inputs[INPUTS_MAX] = {{0}};
        inputs[i].dtype = dtype;
        const rondo__infer infer = {.op = &op, .input_count = i + 1, .inputs = inputs};
        does = does || rondo__infer_check_kinds(&infer) == RONDO_STATUS_OK;
    }
    return does;
}

static bool makes(const rondo__op_def *def, rondo_dtype dtype) {
    const rondo__op op = {.def = def, .opset = def->opset_max};
    rondo__tensor_info output = {.dtype = dtype};
    const rondo__infer infer = {.op = &op, .output_count = 1, .outputs = &output};
    return rondo__infer_check_made_kinds(&infer) == RONDO_STATUS_OK;
}

enum { DESCRIPTION_BYTES = 64 };

static char *describe(const rondo__op_def *def, char *buffer) {
    if ((def->flags & RONDO__OP_CONTROL) != 0) {
        (void)snprintf(buffer, DESCRIPTION_BYTES, "control flow, whose bodies may hold anything");
        return buffer;
    }
    const struct {
        const char *name;
        bool is_there;
    } kinds[] = {
        {"narrow", takes(def, RONDO_DTYPE_I4) || makes(def, RONDO_DTYPE_I4)},
        {"complex", takes(def, RONDO_DTYPE_C64) || makes(def, RONDO_DTYPE_C64)},
        {"strings", takes(def, RONDO_DTYPE_STRING) || makes(def, RONDO_DTYPE_STRING)},
        {"sequences", takes(def, RONDO_DTYPE_SEQUENCE) || strcmp(def->name, "SequenceEmpty") == 0 ||
                          strcmp(def->name, "SequenceConstruct") == 0 ||
                          strcmp(def->name, "SplitToSequence") == 0},
    };
    size_t length = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        if (kinds[i].is_there) {
            length += (size_t)snprintf(buffer + length, DESCRIPTION_BYTES - length, "%s%s",
                                       length > 0 ? ", " : "", kinds[i].name);
        }
    }
    return buffer;
}

static void write_table(const op_list *list, char *text) {
    size_t length = 0;
    const char *domain = NULL;
    for (size_t i = 0; i < list->count; ++i) {
        const op_row *row = &list->rows[i];
        if (domain == NULL || strcmp(domain, row->def->domain) != 0) {
            domain = row->def->domain;
            length += (size_t)snprintf(
                text + length, TEXT_BYTES - length,
                "\n### %s\n\n| op | versions | besides usual numbers |\n|---|---|---|\n",
                domain[0] != '\0' ? domain : "ai.onnx");
        }
        char kinds[DESCRIPTION_BYTES];
        length += (size_t)snprintf(text + length, TEXT_BYTES - length, "| %s | %d to %d | %s |\n",
                                   row->def->name, (int)row->first, (int)row->last,
                                   describe(row->def, kinds));
        assert_true(length < TEXT_BYTES - 256);
    }
    (void)snprintf(text + length, TEXT_BYTES - length, "\n");
}

// ---- what the guide says ----------------------------------------------------------------------

static char *read_guide(const char *path) {
    rondo__file file;
    assert_int_equal(rondo__file_map(path, &file), RONDO_STATUS_OK);
    char *text = calloc(file.byte_count + 1, 1);
    assert_non_null(text);
    memcpy(text, file.bytes, file.byte_count);
    rondo__file_unmap(&file);
    return text;
}

static void write_guide(const char *path, const char *guide, const char *begin, const char *end,
                        const char *table) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(begin - guide), guide, table, end);
    assert_int_equal(fclose(file), 0);
}

TEST(test_op_documentation__lists_all_ops) {
    static op_list list;
    static char table[TEXT_BYTES];
    char path[512];
    rondo__op_visit(add_op, &list);
    rondo__expansion_visit(add_op, &list);
    qsort(list.rows, list.count, sizeof list.rows[0], compare_rows);
    write_table(&list, table);
    (void)snprintf(path, sizeof path, "%s/docs/operators.md", get_source_dir());
    char *guide = read_guide(path);
    const char *begin = strstr(guide, begin_mark);
    assert_non_null(begin);
    begin += strlen(begin_mark);
    const char *end = strstr(begin, end_mark);
    assert_non_null(end);
    const bool is_same =
        strlen(table) == (size_t)(end - begin) && strncmp(begin, table, strlen(table)) == 0;
    const char *accepts = getenv("RONDO_ACCEPT");
    if (!is_same && accepts != NULL && strcmp(accepts, "1") == 0) {
        write_guide(path, guide, begin, end, table);
    } else if (!is_same) {
        fail_msg("%s does not list the ops that there are; RONDO_ACCEPT=1 writes it", path);
    }
    free(guide);
}

// Each name in backquotes behind "Not there:", up to the end of that paragraph.
TEST(test_op_documentation__names_what_is_missing) {
    static const char *const domains[] = {"", "ai.onnx.ml", "ai.onnx.preview.training"};
    char path[512];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "%s/docs/operators.md", get_source_dir());
    char *guide = read_guide(path);
    char *at = strstr(guide, "Not there:");
    assert_non_null(at);
    char *end = strstr(at, "\n\n");
    assert_non_null(end);
    *end = '\0';
    for (char *name = strchr(at, '`'); name != NULL; name = strchr(name, '`')) {
        char *close = strchr(name + 1, '`');
        assert_non_null(close);
        *close = '\0';
        for (size_t d = 0; d < sizeof domains / sizeof domains[0]; ++d) {
            for (int32_t version = 1; version <= RONDO_OP_OPSET_MAX; ++version) {
                if (rondo__op_lookup(domains[d], name + 1, version) != NULL) {
                    fail_msg("%s is there", name + 1);
                }
            }
        }
        count += 1;
        name = close + 1;
    }
    free(guide);
    assert_true(count > 0);
}

// ---- what ONNX says ---------------------------------------------------------------------------

static bool has_attribute(const rondo__op_def *def, const char *name) {
    for (size_t i = 0; def->attributes != NULL && def->attributes[i] != NULL; ++i) {
        if (strcmp(def->attributes[i], name) == 0) {
            return true;
        }
    }
    return def->attributes == NULL;
}

// "24:+round_mode,types": an attribute is there since the version that brought it, and not before,
// from the first opset that was not yet there when the ops were written.
static void check_version(const char *domain, const char *name, char *word) {
    enum { REVIEWED = 21 };
    const int32_t version = (int32_t)strtol(word, &word, 10);
    const rondo__op_def *def = rondo__op_lookup(domain, name, version);
    char *rest = NULL;
    if (*word != ':' || def == NULL || version <= REVIEWED) {
        return;
    }
    for (char *change = strtok_r(word + 1, ",", &rest); change != NULL;
         change = strtok_r(NULL, ",", &rest)) {
        if (change[0] != '+') {
            continue;
        }
        const rondo__op_def *before = rondo__op_lookup(domain, name, version - 1);
        if (!has_attribute(def, change + 1) ||
            (before != NULL && has_attribute(before, change + 1))) {
            fail_msg("%s version %d brings attribute %s", name, (int)version, change + 1);
        }
    }
}

// "ai.onnx Cast 1 6:~to 9:types": what is known of an op is known up to the newest opset.
static void check_onnx_op(char *line, int32_t newest_onnx, int32_t newest_ml) {
    char *rest = NULL;
    const char *domain = strtok_r(line, " ", &rest);
    const char *name = strtok_r(NULL, " ", &rest);
    assert_non_null(name);
    const bool is_gone = strstr(rest, "deprecated") != NULL;
    const bool is_ml = strcmp(domain, "ai.onnx.ml") == 0;
    int32_t first = 0, last = 0;
    if (rondo__op_get_versions(strcmp(domain, "ai.onnx") == 0 ? "" : domain, name, &first, &last) &&
        !is_gone && (is_ml || strcmp(domain, "ai.onnx") == 0) &&
        last != (is_ml ? newest_ml : newest_onnx)) {
        fail_msg("%s is known up to version %d", name, (int)last);
    }
    for (char *word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        check_version(domain, name, word);
    }
}

TEST(test_op_documentation__follows_onnx) {
    char path[512];
    size_t count = 0;
    int onnx = 0, ml = 0;
    char *rest = NULL;
    (void)snprintf(path, sizeof path, "%s/tools/onnx_versions.txt", get_source_dir());
    char *text = read_guide(path);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] != '#') {
            check_onnx_op(line, onnx, ml);
            count += 1;
        } else if (strstr(line, "ai.onnx.ml ") != NULL) {
            assert_int_equal(
                sscanf(strstr(line, ": ai.onnx "), ": ai.onnx %d, ai.onnx.ml %d", &onnx, &ml), 2);
            assert_int_equal(onnx, RONDO_OP_OPSET_MAX);
        }
    }
    free(text);
    assert_true(onnx > 0 && count > 200);
}

TEST_MAIN()
