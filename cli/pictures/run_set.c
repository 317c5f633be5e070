// SPDX-License-Identifier: Apache-2.0

#include "run_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "compare.h"
#include "tensor_text.h"

enum { PATH_BYTES = 4096 };

static bool is_data_set(const char *name) {
    return strncmp(name, "test_data_set_", strlen("test_data_set_")) == 0;
}

bool cli_run_set_find(const char *folder, cli_path_list *out_list) {
    char path[PATH_BYTES];
    struct stat info;
    if (!cli_path_list_read(folder, is_data_set, out_list)) {
        return false;
    }
    const int length = snprintf(path, sizeof path, "%s/input_0.pb", folder);
    if (out_list->count == 0 && length > 0 && length < PATH_BYTES && stat(path, &info) == 0) {
        size_t length_of_folder = strlen(folder);  // without the slashes at its end
        while (length_of_folder > 1 && folder[length_of_folder - 1] == '/') {
            length_of_folder--;
        }
        out_list->paths[0] = strndup(folder, length_of_folder);
        out_list->count = out_list->paths[0] != NULL ? 1 : 0;
    }
    if (out_list->count == 0) {
        cli_print_error("%s: has no test_data_set_0 and no input_0.pb", folder);
        return false;
    }
    return true;
}

bool cli_run_set_run(cli_session *session) {
    // The first run is eager by design; who asks for graphs gets the replayed result.
    return cli_session_run(session) &&
           (session->graphs != RONDO_GRAPHS_ON || cli_session_run(session));
}

const cli_labels *cli_labels_of(const cli_labels *labels, const cli_scores *scores) {
    return labels->count == scores->class_count ? labels : NULL;
}

// ---- one line -----------------------------------------------------------------------------------

typedef struct line {
    char text[1000];
    size_t length;
} line;

static void add_text(line *l, const char *text) {
    const size_t room = sizeof l->text - l->length;
    snprintf(l->text + l->length, room, "%s", text);
    l->length += strlen(l->text + l->length);
}

// The largest scores, or the tensor in a few words.
static void add_values(line *l, const cli_run_set *set, const cli_session *session, size_t output) {
    char text[CLI_TOP_LINE_BYTES];
    size_t classes[CLI_TOP_MAX];
    const rondo_tensor *tensor = &session->fetches[output].tensor;
    rondo_port port = {.struct_size = sizeof port};
    cli_scores scores = cli_scores_find(tensor);
    if (set->top_count == 0 || scores.class_count < 2) {
        add_text(l, cli_tensor_summarise(tensor, text, sizeof text));
        return;
    }
    scores.labels = cli_labels_of(set->labels, &scores);
    scores.columns = rondo_program_get_output(session->program, output, &port) == RONDO_STATUS_OK
                         ? port.labels
                         : NULL;
    const size_t count = cli_scores_rank(&scores, 0, set->top_count, classes);
    for (size_t i = 0; i < count; i++) {
        add_text(l, i > 0 ? ", " : "");
        add_text(l, cli_scores_format(&scores, 0, classes[i], text));
    }
    add_text(l, scores.row_count > 1 ? " (first row)" : "");
}

// How far the output is from output_K.pb, where there is one.
static void add_difference(line *l, const char *folder, const rondo_binding *fetch, size_t index) {
    static const cli_tolerance exact = {0};
    char path[PATH_BYTES];
    char text[480];
    struct stat info;
    rondo_tensor expected;
    const int length = snprintf(path, sizeof path, "%s/output_%zu.pb", folder, index);
    if (length < 0 || length >= PATH_BYTES || stat(path, &info) != 0) {
        return;
    }
    if (rondo_tensor_load_onnx(path, &expected) != RONDO_STATUS_OK) {
        snprintf(text, sizeof text, "; output_%zu.pb cannot be compared", index);
    } else {
        const cli_comparison c = cli_compare(&fetch->tensor, &expected, &exact);
        if (c.is_equal) {
            snprintf(text, sizeof text, "; as output_%zu.pb", index);
        } else if (c.mismatch_count > 0) {
            snprintf(text, sizeof text, "; from output_%zu.pb by at most %.3g", index,
                     c.largest_error);
        } else {
            snprintf(text, sizeof text, "; output_%zu.pb: %s", index, c.reason);
        }
        rondo_tensor_deinit(&expected);
    }
    add_text(l, text);
}

static void print_item(const cli_session *session, const cli_run_set *set, const char *item) {
    for (size_t i = 0; i < session->fetch_count; i++) {
        line l = {.length = 0};
        add_values(&l, set, session, i);
        if (set->is_data) {
            add_difference(&l, item, &session->fetches[i], i);
        }
        cli_say(CLI_NORMAL, "%s  %s%s%s", cli_path_get_name(item),
                session->fetch_count > 1 ? session->fetches[i].name : "",
                session->fetch_count > 1 ? ": " : "", l.text);
    }
    (void)fflush(stdout);  // Ctrl-C may end the next one
}

bool cli_run_set_all(cli_session *session, const cli_run_set *set) {
    bool is_fine = set->first == 0;
    for (size_t i = set->first; i < set->items->count; i++) {
        const char *item = set->items->paths[i];
        const bool is_read = i == set->first ||
                             cli_inputs_exchange(session, set->settings, set->is_data ? NULL : item,
                                                 set->is_data ? item : NULL);
        if (!is_read || !cli_run_set_run(session)) {
            is_fine = false;
            continue;
        }
        print_item(session, set, item);
        if (!set->save(set->data, item)) {
            return false;
        }
    }
    return is_fine;
}
