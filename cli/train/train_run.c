// train/train_run.c — epochs: batches are run, what is held out is measured, work is saved.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "console.h"
#include "interrupt.h"
#include "output_file.h"
#include "progress.h"
#include "trainer.h"

enum { KEPT_BYTES = CLI_TRAIN_PATH_BYTES + 40 };

// Names the state that there is to go on from; "": none.
static const char *tell_kept(const cli_trainer *t, char text[KEPT_BYTES]) {
    struct stat info;
    const bool is_kept = t->checkpoint[0] != '\0' && stat(t->checkpoint, &info) == 0;
    (void)snprintf(text, KEPT_BYTES, "%s%s", is_kept ? "; the last good state is in " : "",
                   is_kept ? t->checkpoint : "");
    return text;
}

static bool fail_run(const cli_trainer *t) {
    char kept[KEPT_BYTES];
    cli_progress_clear();
    (void)cli_fail_about(NULL, tell_kept(t, kept));
    return false;
}

// ---- what is held out ---------------------------------------------------------------------------

typedef struct measure {
    double loss, hits;
    double rate;  // of the last step
    int64_t samples;
} measure;

// Feeds the part of a batch that this rank takes.
static size_t feed_part(cli_trainer *t, int64_t index, int64_t count, float *scalars,
                        rondo_binding *feeds) {
    static const char *const names[] = {"train.share", "train.stop"};
    int64_t first;
    int64_t own;
    size_t used = t->data.column_count;
    scalars[0] = cli_train_ranks_take(&t->ranks, count, &first, &own);
    scalars[1] = cli_interrupt_came() ? 1.0f : 0.0f;
    cli_train_data_take(&t->data, false, index, first, own, feeds);
    for (size_t i = 0; i < 2; ++i) {
        feeds[used++] = (rondo_binding){names[i], {.dtype = RONDO_DTYPE_F32, .data = &scalars[i]}};
    }
    return used;
}

// Runs one batch; false after a failure.
static bool run_batch(cli_trainer *t, rondo_executor *executor, bool is_held, int64_t index,
                      bool has_hits, measure *in_out_sum, float *out_loss) {
    rondo_binding feeds[CLI_TRAIN_FEEDS_MAX + 2];
    rondo_binding fetches[4] = {{.name = "train.loss"}, {.name = "train.hits"}};
    float scalars[2];
    const int64_t count = cli_train_data_measure(&t->data, is_held, index);
    const bool is_shared = !is_held && cli_train_ranks_are_many(&t->ranks);
    size_t feed_count = t->data.column_count;
    size_t fetch_count = has_hits ? 2 : 1;
    if (is_shared) {
        feed_count = feed_part(t, index, count, scalars, feeds);
        fetches[fetch_count++].name = "train.stopped";
    } else {
        cli_train_data_take(&t->data, is_held, index, 0, count, feeds);
    }
    if (!is_held) {
        fetches[fetch_count++].name = "train.rate";
    }
    if (rondo_executor_run(executor, feeds, feed_count, fetches, fetch_count) != RONDO_STATUS_OK) {
        return fail_run(t);
    }
    if (is_shared) {
        // Not within a step: what ranks add up is averaged then, and rounded once more.
        const bool is_full = (t->runs + 1) % (int64_t)t->settings->accumulate == 0;
        t->ranks.is_stopped =
            is_full && *(const float *)fetches[fetch_count - 2].tensor.data > 0.0f;
    }
    if (!is_held) {
        in_out_sum->rate = *(const double *)fetches[fetch_count - 1].tensor.data;
    }
    double loss = (double)NAN;
    const rondo_tensor *made = &fetches[0].tensor;
    if (made->dtype == RONDO_DTYPE_F32) {
        loss = (double)*(const float *)made->data;
    } else if (made->dtype == RONDO_DTYPE_F64) {
        loss = *(const double *)made->data;
    }
    in_out_sum->loss += loss * (double)count;
    in_out_sum->hits += has_hits ? (double)*(const float *)fetches[1].tensor.data : 0.0;
    in_out_sum->samples += count;
    *out_loss = (float)loss;
    for (size_t i = 0; i < fetch_count; ++i) {
        rondo_tensor_deinit(&fetches[i].tensor);
    }
    return true;
}

static bool say_spoilt(const cli_trainer *t, const char *what, double value, const char *cure) {
    char kept[KEPT_BYTES];
    cli_progress_clear();
    cli_print_error("%s is %f after %lld batches; %s%s", what, value, (long long)t->runs, cure,
                    tell_kept(t, kept));
    return false;
}

static const char *find_cure(const cli_trainer *t) {
    return t->settings->dtype == 1
               ? "look for NaN or huge numbers in --data, or try --dtype bf16"
               : "look for NaN in --data, or try a smaller --learning-rate or --clip-norm";
}

// The weights after training; none may be infinite or NaN that was not before, since what is saved
// is what a training goes on from.
static bool take_trained(cli_trainer *t, rondo_program **out_trained) {
    size_t count = 0;
    double spoilt = 0.0;
    if (rondo_executor_get_trained(t->executor, t->model, out_trained) != RONDO_STATUS_OK ||
        rondo_program_list_parameters(t->model, 0, NULL, &count) != RONDO_STATUS_OK) {
        return cli_say_record();
    }
    rondo_parameter *lists = calloc(2 * count + 1, sizeof *lists);
    if (lists == NULL) {
        return cli_fail_memory();
    }
    bool is_good =
        (rondo_program_list_parameters(t->model, count, lists, &count) == RONDO_STATUS_OK &&
         rondo_program_list_parameters(*out_trained, count, lists + count, &count) ==
             RONDO_STATUS_OK) ||
        cli_say_record();
    for (size_t i = 0; i < count && is_good && spoilt == 0.0; ++i) {
        spoilt = cli_train_data_find_spoilt(lists[i].tensor, lists[count + i].tensor);
        if (spoilt != 0.0) {
            char what[120];
            (void)snprintf(what, sizeof what, "an element of \"%.80s\"", lists[i].name);
            is_good = say_spoilt(t, what, spoilt, find_cure(t));
        }
    }
    free(lists);
    return is_good;
}

static bool validate(cli_trainer *t, const rondo_program *trained, measure *out_measure) {
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    const bool has_hits = t->plan.loss == CLI_CROSS_ENTROPY;
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = cli_trainer_get_dtype(t),
                                            .thread_count = (uint32_t)t->settings->thread_count};
    *out_measure = (measure){0};
    bool is_good = cli_train_program_measure(trained, &t->plan, &program);
    is_good = is_good &&
              (rondo_executor_create(program, t->device, &options, &executor) == RONDO_STATUS_OK ||
               cli_say_record());
    for (int64_t i = 0;
         is_good && i < cli_train_data_count(&t->data, true) && !cli_train_ranks_stop(&t->ranks);
         ++i) {
        float loss = NAN;
        is_good = run_batch(t, executor, true, i, has_hits, out_measure, &loss) &&
                  (isfinite(loss) ||
                   say_spoilt(t, "the loss of what is held out", (double)loss, find_cure(t)));
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    return is_good;
}

// ---- epochs -------------------------------------------------------------------------------------

static bool save_checkpoint(cli_trainer *t) {
    if (t->checkpoint[0] == '\0' || !cli_train_ranks_is_first(&t->ranks)) {
        return true;
    }
    return rondo_checkpoint_save(t->executor, t->checkpoint) == RONDO_STATUS_OK || fail_run(t);
}

static void say_epoch(cli_trainer *t, int64_t epoch, const measure *trained, const measure *held) {
    const double seconds = cli_get_seconds() - t->started_at;
    const int64_t all = cli_train_data_count(&t->data, false) * (int64_t)t->settings->epochs;
    const double each = seconds / (double)(t->runs - t->started_runs);
    char held_text[120] = "";
    if (held->samples > 0) {
        int used = snprintf(held_text, sizeof held_text, ", validation %.6g",
                            held->loss / (double)held->samples);
        if (t->plan.loss == CLI_CROSS_ENTROPY && used > 0) {
            (void)snprintf(held_text + used, sizeof held_text - (size_t)used, " (%.2f %% right)",
                           100.0 * held->hits / (double)held->samples);
        }
    }
    (void)snprintf(t->summary, sizeof t->summary, "epoch %lld of %llu: loss %.6g%s",
                   (long long)epoch + 1, (unsigned long long)t->settings->epochs,
                   trained->loss / (double)trained->samples, held_text);
    cli_say(CLI_NORMAL, "%s; rate %.3g, %.3g ms a batch, %.0f s left", t->summary, trained->rate,
            each * 1e3, each * (double)(all - t->runs));
}

// What was measured of an epoch that Ctrl-C ended.
static void say_part(cli_trainer *t, int64_t epoch, const measure *trained) {
    if (trained->samples > 0) {
        (void)snprintf(t->summary, sizeof t->summary, "epoch %lld of %llu, a part: loss %.6g",
                       (long long)epoch + 1, (unsigned long long)t->settings->epochs,
                       trained->loss / (double)trained->samples);
        cli_say(CLI_NORMAL, "%s", t->summary);
    }
}

// What an epoch has made of the weights, where they are written or measured now; `held` (NULL:
// nothing) gets what they do on what is held out. Other ranks have the same weights as rank 0.
static bool look_at_weights(cli_trainer *t, measure *held) {
    rondo_program *trained = NULL;
    if (rondo_executor_gather_variables(t->executor) != RONDO_STATUS_OK) {
        return fail_run(t);
    }
    if (!cli_train_ranks_is_first(&t->ranks)) {
        return true;
    }
    const bool is_good = take_trained(t, &trained) && (held == NULL || validate(t, trained, held));
    rondo_program_destroy(trained);
    return is_good;
}

static bool run_epoch(cli_trainer *t, int64_t epoch, int64_t first) {
    const int64_t batches = cli_train_data_count(&t->data, false);
    const bool has_hits = t->plan.loss == CLI_CROSS_ENTROPY;
    measure trained = {0};
    measure held = {0};
    cli_train_data_shuffle(&t->data, epoch);
    for (int64_t i = first; i < batches && !cli_train_ranks_stop(&t->ranks); ++i) {
        float loss = NAN;
        if (!run_batch(t, t->executor, false, i, has_hits, &trained, &loss)) {
            return false;
        }
        t->runs += 1;
        if (cli_train_ranks_is_first(&t->ranks)) {
            cli_progress_show(NULL, "batches", (size_t)i + 1, (size_t)batches);
        }
        if (!isfinite(loss)) {
            return say_spoilt(t, "the loss", (double)loss, find_cure(t));
        }
        if (!cli_train_line_add(&t->loss, (double)t->runs, (double)loss)) {
            return false;
        }
    }
    cli_progress_clear();
    const bool is_measured = t->data.held_count > 0 && cli_train_ranks_is_first(&t->ranks);
    if (!cli_train_ranks_stop(&t->ranks) && !look_at_weights(t, is_measured ? &held : NULL)) {
        return false;
    }
    if (cli_train_ranks_stop(&t->ranks)) {
        say_part(t, epoch, &trained);
        return true;
    }
    if (is_measured &&
        !cli_train_line_add(&t->validation, (double)t->runs, held.loss / (double)held.samples)) {
        return false;
    }
    say_epoch(t, epoch, &trained, &held);
    return save_checkpoint(t);
}

// Of an epoch that was not completed the state, too.
static bool save_work(cli_trainer *t, bool is_part) {
    rondo_program *trained = NULL;
    if (rondo_executor_gather_variables(t->executor) != RONDO_STATUS_OK) {
        return fail_run(t);
    }
    if (!cli_train_ranks_is_first(&t->ranks)) {
        return true;
    }
    const bool is_good =
        take_trained(t, &trained) && (!is_part || save_checkpoint(t)) &&
        (t->settings->output == NULL ||
         rondo_program_save_onnx(trained, t->settings->output) == RONDO_STATUS_OK ||
         cli_say_record());
    rondo_program_destroy(trained);
    return is_good;
}

int cli_trainer_run(cli_trainer *t) {
    const int64_t batches = cli_train_data_count(&t->data, false);
    t->started_at = cli_get_seconds();
    t->started_runs = t->runs;
    for (int64_t epoch = t->runs / batches;
         epoch < (int64_t)t->settings->epochs && !cli_train_ranks_stop(&t->ranks); ++epoch) {
        if (!run_epoch(t, epoch, t->runs - epoch * batches)) {
            return CLI_FAILED;
        }
    }
    const bool was_stopped = cli_train_ranks_stop(&t->ranks);
    if (was_stopped) {
        cli_say(CLI_NORMAL, "stopped after %lld batches", (long long)t->runs);
    }
    if (!save_work(t, was_stopped)) {
        return CLI_FAILED;
    }
    cli_train_report report = {t->path, t->summary, &t->loss, &t->validation};
    if (cli_train_ranks_is_first(&t->ranks) &&
        !cli_output_save(t->settings->report, cli_train_report_write, &report)) {
        return CLI_FAILED;
    }
    return was_stopped ? CLI_INTERRUPTED : CLI_DONE;
}
