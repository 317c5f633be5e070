// SPDX-License-Identifier: Apache-2.0

#include "test_precision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_ROUNDS_MAX = 8 };  // ops that are tried before it is said that none helps

// An op loses precision when its error is above this share of its output.
static const double loss_limit = 0.01;

static rondo_executor_options make_options(const cli_precision_case *failed, rondo_dtype dtype,
                                           const cli_list *keep) {
    rondo_executor_options options = {.struct_size = sizeof options};
    options.graphs = RONDO_GRAPHS_OFF;
    options.dtype = dtype;
    if (dtype == RONDO_DTYPE_F16) {
        options.keep_f32 = keep->items;
        options.keep_f32_count = keep->count;
        options.use_f16 = failed->settings->use_f16.items;
        options.use_f16_count = failed->settings->use_f16.count;
    }
    return options;
}

// Whether a run with these options gives what is expected.
static bool passes(const cli_precision_case *failed, const rondo_executor_options *options) {
    rondo_executor *executor = NULL;
    bool is_equal = false;
    rondo_binding *fetches = calloc(failed->expected_count + 1, sizeof *fetches);
    if (fetches == NULL || rondo_executor_create(failed->program, failed->settings->device, options,
                                                 &executor) != RONDO_STATUS_OK) {
        goto free_fetches;
    }
    for (size_t i = 0; i < failed->expected_count; i++) {
        rondo_port port = {.struct_size = sizeof port};
        if (rondo_program_get_output(failed->program, i, &port) != RONDO_STATUS_OK) {
            goto free_fetches;
        }
        fetches[i].name = port.name;
    }
    is_equal = rondo_executor_run(executor, failed->feeds, failed->feed_count, fetches,
                                  failed->expected_count) == RONDO_STATUS_OK;
    for (size_t i = 0; i < failed->expected_count && is_equal; i++) {
        is_equal =
            cli_compare(&fetches[i].tensor, &failed->expected[i], &failed->tolerance).is_equal;
    }

free_fetches:
    for (size_t i = 0; fetches != NULL && i < failed->expected_count; i++) {
        rondo_tensor_deinit(&fetches[i].tensor);
    }
    free(fetches);
    rondo_executor_destroy(executor);
    return is_equal;
}

static bool find_loss(const cli_precision_case *failed, const cli_list *keep,
                      rondo_precision_loss *out_loss) {
    const rondo_executor_options options = make_options(failed, RONDO_DTYPE_F16, keep);
    *out_loss = (rondo_precision_loss){.struct_size = sizeof *out_loss};
    return rondo_executor_find_loss(failed->program, failed->settings->device, &options,
                                    failed->feeds, failed->feed_count, loss_limit,
                                    out_loss) == RONDO_STATUS_OK;
}

static void append(char *text, size_t text_bytes, const char *more) {
    const size_t length = strlen(text);
    snprintf(text + length, text_bytes - length, "%s", more);
}

void cli_explain_precision(const cli_precision_case *failed, char *text, size_t text_bytes) {
    static const cli_list none = {0};
    const rondo_executor_options single = make_options(failed, RONDO_DTYPE_F32, &none);
    rondo_precision_loss losses[KEEP_ROUNDS_MAX];
    cli_list keep = failed->settings->keep_f32;
    const size_t first = keep.count;
    size_t count = 0;
    bool is_cured = false;
    bool is_repeated = false;
    text[0] = '\0';
    if (!passes(failed, &single)) {
        snprintf(
            text, text_bytes,
            "single precision fails with this tolerance, too: half precision is not the cause");
        return;
    }
    while (count < KEEP_ROUNDS_MAX && keep.count < CLI_LIST_MAX && !is_cured && !is_repeated) {
        if (!find_loss(failed, &keep, &losses[count])) {
            snprintf(text, text_bytes, "the op that loses the precision cannot be found: %s",
                     rondo_error_get_last()->message);
            return;
        }
        if (!losses[count].is_found) {
            break;
        }
        for (size_t i = first; i < keep.count; i++) {
            is_repeated = is_repeated || strcmp(keep.items[i], losses[count].node) == 0;
        }
        if (is_repeated) {
            break;
        }
        keep.items[keep.count++] = losses[count].node;
        count++;
        const rondo_executor_options options = make_options(failed, RONDO_DTYPE_F16, &keep);
        is_cured = passes(failed, &options);
    }
    if (count == 0) {
        snprintf(text, text_bytes,
                 "no op makes an error above %g of its output: small ones add up over the network",
                 loss_limit);
        return;
    }
    snprintf(text, text_bytes,
             "precision is lost in %s \"%s\": relative error %.2g before it, %.2g after it; ",
             losses[0].op, losses[0].node, losses[0].error_before, losses[0].error_after);
    append(text, text_bytes,
           is_cured      ? "it passes with"
           : is_repeated ? "it magnifies errors of ops before it, so it does not pass with"
                         : "it does not pass yet with");
    for (size_t i = first; i < keep.count; i++) {
        append(text, text_bytes, " --keep-f32 '");
        append(text, text_bytes, keep.items[i]);
        append(text, text_bytes, "'");
    }
}
