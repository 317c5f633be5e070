// rondo train — trains a model with arrays from a file.
//
// The whole step is one program, replayed once a batch. After each epoch, and when Ctrl-C comes,
// the checkpoint is written: whole, or the one before stays. The number of runs is a variable of
// the program, so that a resumed training takes up at the very batch.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "console.h"
#include "hash_bytes.h"
#include "interrupt.h"
#include "model_file.h"
#include "output_file.h"
#include "progress.h"
#include "train_data.h"
#include "train_program.h"
#include "train_ranks.h"
#include "train_report.h"
#include "train_settings.h"

enum { PATH_BYTES = 4096, FEEDS_MAX = 256 };

static const rondo_dtype compute_types[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F16, RONDO_DTYPE_BF16};

typedef struct trainer {
    const cli_command *command;
    cli_train_settings *settings;
    const char *path;
    rondo_program *model, *program;
    rondo_device *device;
    rondo_executor *executor;
    cli_train_data data;
    cli_train_plan plan;
    cli_train_ranks ranks;
    char checkpoint[PATH_BYTES];
    int64_t runs;  // before this process, and in it
    cli_train_line loss, validation;
    char told[CLI_TRAIN_SETTINGS_BYTES];  // what must be as before, and at all ranks
    double started_at;
    int64_t started_runs;
    char summary[400];
} trainer;

// ---- begin and end ------------------------------------------------------------------------------

static bool fail(void) {
    (void)cli_fail_with_record();
    return false;
}

static bool read_runs(trainer *t) {
    rondo_tensor now = {0};
    if (rondo_executor_get_variable(t->executor, "train.run", &now) != RONDO_STATUS_OK) {
        return fail();
    }
    const rondo_tensor to = {.dtype = now.dtype, .shape = now.shape, .data = &t->runs};
    rondo_stream *stream = rondo_executor_get_stream(t->executor);
    rondo_status status = rondo_tensor_copy(stream, &now, &to);
    status = status == RONDO_STATUS_OK ? rondo_stream_synchronize(stream) : status;
    rondo_tensor_deinit(&now);
    return status == RONDO_STATUS_OK || fail();
}

static bool is_resumed(const trainer *t) {
    struct stat info;
    return t->settings->resumes && stat(t->checkpoint, &info) == 0;
}

// Refuses a checkpoint of another training, before anything is made.
static int check_resumed(const trainer *t) {
    rondo_tensor before = {0};
    struct stat info;
    if (!is_resumed(t)) {
        if (t->checkpoint[0] != '\0' && stat(t->checkpoint, &info) == 0) {
            cli_say(CLI_NORMAL,
                    "%s is replaced after the first epoch; --resume would go on from it",
                    t->checkpoint);
        }
        return CLI_DONE;
    }
    if (rondo_checkpoint_read(t->checkpoint, "train.settings", &before) != RONDO_STATUS_OK) {
        const bool is_old = strstr(rondo_error_get_last()->message, "train.settings") != NULL;
        return cli_fail_about(
            NULL, is_old ? "; an earlier version made it, or another program: start anew" : "");
    }
    const size_t bytes = rondo_tensor_get_bytes(&before);
    const bool is_text = bytes > 0 && ((const char *)before.data)[bytes - 1] == '\0';
    const int status =
        is_text ? cli_train_settings_compare(t->command, t->checkpoint, before.data, t->told)
                : CLI_FAILED;
    if (!is_text) {
        cli_print_error("%s: the variable \"train.settings\" is no text", t->checkpoint);
    }
    rondo_tensor_deinit(&before);
    return status;
}

static bool resume(trainer *t) {
    if (is_resumed(t)) {
        if (rondo_checkpoint_load(t->executor, t->checkpoint) != RONDO_STATUS_OK || !read_runs(t)) {
            return fail();
        }
        cli_say(CLI_NORMAL, "%s: goes on after %lld batches", t->checkpoint, (long long)t->runs);
        if (t->runs >= cli_train_data_count(&t->data, false) * (int64_t)t->settings->epochs) {
            cli_say(CLI_NORMAL, "--epochs %llu are behind it: there is nothing to train",
                    (unsigned long long)t->settings->epochs);
        }
    }
    return true;
}

static bool open_executor(trainer *t) {
    const cli_train_settings *s = t->settings;
    const rondo_executor_options options = {
        .struct_size = sizeof options,
        .graphs = s->graphs,
        .dtype = compute_types[s->dtype],
        .seed = s->seed,
        .training = true,
        .progress = cli_train_ranks_is_first(&t->ranks) ? cli_progress_show : NULL,
        .thread_count = (uint32_t)s->thread_count,
        .communicator = t->ranks.communicator};
    return rondo_executor_create(t->program, t->device, &options, &t->executor) ==
               RONDO_STATUS_OK ||
           fail();
}

// Rank 0 alone writes.
static bool check_outputs(trainer *t) {
    const cli_train_settings *s = t->settings;
    if (s->checkpoint != NULL) {
        (void)snprintf(t->checkpoint, sizeof t->checkpoint, "%.4000s/last.rondo", s->checkpoint);
    }
    return !cli_train_ranks_is_first(&t->ranks) ||
           ((s->checkpoint == NULL ||
             (cli_make_folders(s->checkpoint) && cli_output_check_replaced(t->checkpoint))) &&
            cli_output_check_replaced(s->output) && cli_output_check(s->report));
}

// 0: there is none, or it cannot be read again.
static uint64_t hash_file(const char *path) {
    uint64_t hash = 0;
    unsigned char bytes[1 << 14];
    size_t count;
    struct stat info;
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    while (file != NULL && (count = fread(bytes, 1, sizeof bytes, file)) > 0) {
        hash = cli_hash(hash, bytes, count);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return hash;
}

// Of the file, and of the weights, which may lie beside it.
static uint64_t hash_model(const trainer *t) {
    size_t count = 0;
    uint64_t hash = hash_file(t->path);
    rondo_status status = rondo_program_list_parameters(t->model, 0, NULL, &count);
    rondo_parameter *list = calloc(count + 1, sizeof *list);
    if (status == RONDO_STATUS_OK && list != NULL) {
        status = rondo_program_list_parameters(t->model, count, list, &count);
    }
    for (size_t i = 0; i < count && list != NULL && status == RONDO_STATUS_OK; ++i) {
        if (list[i].tensor->dtype != RONDO_DTYPE_STRING) {
            hash = cli_hash(hash, list[i].tensor->data, rondo_tensor_get_bytes(list[i].tensor));
        }
    }
    free(list);
    return hash;
}

// Ranks must take the same steps.
static bool meet_ranks(trainer *t) {
    char common[CLI_TRAIN_SETTINGS_BYTES + 160];
    (void)snprintf(common, sizeof common, "%s--epochs %llu\nthe checkpoint to resume, hash %016llx",
                   t->told, (unsigned long long)t->settings->epochs,
                   (unsigned long long)(t->settings->resumes ? hash_file(t->checkpoint) : 0));
    return cli_train_ranks_meet(&t->ranks, t->device, common);
}

// ---- the data -----------------------------------------------------------------------------------

// `size`: how many samples the model takes at once.
static int refuse_batch(const trainer *t, int64_t size) {
    const bool has_ranks = cli_train_ranks_are_many(&t->ranks);
    return cli_fail_misuse(t->command,
                           "--batch %llu: the model takes %lld samples at once%s; give --batch "
                           "%lld, or export it with a free first axis",
                           (unsigned long long)t->settings->batch, (long long)size,
                           has_ranks ? " at each rank" : "",
                           (long long)(size * t->ranks.ranks.size));
}

// The batch of a model that takes one number of samples only.
static int choose_batch(trainer *t, bool *out_is_fixed) {
    cli_train_settings *s = t->settings;
    const int64_t size = cli_train_data_find_batch(t->model);
    const uint64_t fixed = (uint64_t)(size * t->ranks.ranks.size);
    *out_is_fixed = size > 0;
    if (size > 0 && s->has_batch && s->batch != fixed) {
        return refuse_batch(t, size);
    }
    s->batch = size > 0 ? fixed : s->batch;
    return CLI_DONE;
}

// Whether the model takes `count` samples, or this rank's part of them: known without a run.
static rondo_status try_batch(trainer *t, rondo_executor *executor, int64_t count, bool is_held) {
    rondo_binding feeds[FEEDS_MAX];
    rondo_binding outputs[2];
    size_t output_count;
    int64_t first;
    int64_t own = count;
    if (!is_held) {
        (void)cli_train_ranks_take(&t->ranks, count, &first, &own);
    }
    cli_train_data_outline(&t->data, own, feeds);
    return rondo_executor_infer_outputs(executor, feeds, t->data.column_count, outputs, 2,
                                        &output_count);
}

// How many samples a model that refuses the batch does take, or each rank of it; 0: it refuses all
// that are tried, for another reason.
static int64_t find_size(trainer *t, rondo_executor *executor) {
    enum { TRIED = 1024 };
    int64_t size = 1;
    while (size <= TRIED &&
           try_batch(t, executor, size * t->ranks.ranks.size, false) != RONDO_STATUS_OK) {
        size += 1;
    }
    return size <= TRIED ? size : 0;
}

// A model may be free in its inputs alone: then batches of one size fit inside. 0: all that are
// needed fit.
static int64_t find_size_inside(trainer *t) {
    const cli_train_data *d = &t->data;
    const int64_t rest = (d->sample_count - d->held_count) % d->batch;
    // Rank 0 alone measures what is held out, in whole batches.
    const int64_t held = cli_train_ranks_are_many(&t->ranks) && d->held_count >= d->batch
                             ? d->batch
                             : d->held_count % d->batch;
    const rondo_executor_options options = {.struct_size = sizeof options};
    rondo_device *host = NULL;
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    int64_t size = 0;
    if (cli_train_program_measure(t->model, &t->plan, &program) &&
        rondo_device_open("host", &host) == RONDO_STATUS_OK &&
        rondo_executor_create(program, host, &options, &executor) == RONDO_STATUS_OK) {
        const rondo_status whole = try_batch(t, executor, d->batch, false);
        if (whole == RONDO_STATUS_BAD_DATA) {
            size = find_size(t, executor);
        } else if (whole == RONDO_STATUS_OK &&
                   ((rest > 0 && try_batch(t, executor, rest, false) == RONDO_STATUS_BAD_DATA) ||
                    (held > 0 && try_batch(t, executor, held, true) == RONDO_STATUS_BAD_DATA))) {
            size = d->batch / t->ranks.ranks.size;
        }
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(host);
    return size;
}

static bool find_result(const trainer *t, rondo_port *out_port) {
    const char *name = t->settings->result;
    for (size_t i = 0; i < rondo_program_get_output_count(t->model); ++i) {
        *out_port = (rondo_port){.struct_size = sizeof *out_port};
        if (rondo_program_get_output(t->model, i, out_port) == RONDO_STATUS_OK &&
            (name == NULL || strcmp(out_port->name, name) == 0)) {
            return true;
        }
    }
    return false;
}

static int open_data(trainer *t) {
    const cli_train_settings *s = t->settings;
    rondo_port result;
    bool is_fixed;
    const int status = choose_batch(t, &is_fixed);
    if (status != CLI_DONE) {
        return status;
    }
    if (!find_result(t, &result)) {
        return cli_fail_misuse(t->command, "--result: the model has no output \"%s\"",
                               s->result != NULL ? s->result : "");
    }
    if (!cli_train_data_open(s->data, t->model, s->target, s->held, (int64_t)s->batch, s->seed,
                             &t->data)) {
        return CLI_FAILED;
    }
    if (t->data.column_count > FEEDS_MAX) {
        cli_print_error("the model has %zu inputs, over %d", t->data.column_count - 1,
                        FEEDS_MAX - 1);
        return CLI_FAILED;
    }
    cli_train_settings_plan(s, 1, &t->plan);
    t->plan.target = cli_train_data_get_target(&t->data)->tensor;
    if (!cli_train_program_check_target(&t->plan) ||
        !cli_train_data_check_target(&t->data, s->data, t->plan.loss, &result)) {
        return CLI_FAILED;
    }
    const int64_t own = (int64_t)s->batch / t->ranks.ranks.size;
    const int64_t size = is_fixed ? own : find_size_inside(t);
    if (size > 0 && size != own) {
        return refuse_batch(t, size);
    }
    if (size > 0 && !cli_train_data_drop_rest(&t->data, s->data, size)) {
        return CLI_FAILED;
    }
    if (s->has_held && s->held > 0.0 && t->data.held_count == 0) {
        cli_say(CLI_NORMAL, "--validation %g of %lld samples is none: nothing is held out", s->held,
                (long long)t->data.sample_count);
    }
    return CLI_DONE;
}

static int open_step(trainer *t) {
    const cli_train_settings *s = t->settings;
    const int64_t batches = cli_train_data_count(&t->data, false);
    rondo_port result;
    (void)find_result(t, &result);
    const cli_train_facts facts = {.target = t->data.target,
                                   .result = result.name,
                                   .model_hash = hash_model(t),
                                   .data_hash = cli_train_data_hash(&t->data),
                                   .samples = t->data.sample_count,
                                   .batches = batches};
    int status = cli_train_settings_check_counts(t->command, s, batches);
    status =
        status == CLI_DONE ? cli_train_settings_check_patterns(t->command, s, t->model) : status;
    if (status != CLI_DONE) {
        return status;
    }
    const int64_t unused = batches * (int64_t)s->epochs % (int64_t)s->accumulate;
    if (unused > 0) {
        cli_say(CLI_NORMAL, "the last %lld batches of all make no step: --accumulate is %llu",
                (long long)unused, (unsigned long long)s->accumulate);
    }
    cli_train_settings_describe(s, &facts, t->told);
    status = check_resumed(t);
    if (status != CLI_DONE) {
        return status;
    }
    cli_train_settings_plan(s, batches, &t->plan);
    t->plan.settings = t->told;
    return cli_train_program_train(t->model, &t->plan, &t->program);
}

static int open_trainer(trainer *t) {
    if (!check_outputs(t)) {
        return CLI_FAILED;
    }
    if (cli_model_load(t->path, NULL, true, &t->model) != RONDO_STATUS_OK) {
        char hint[1100];
        return cli_fail_about(NULL, cli_model_hint(t->path, hint, sizeof hint));
    }
    t->plan.has_ranks = cli_train_ranks_are_many(&t->ranks);
    int status = open_data(t);
    status = status == CLI_DONE ? open_step(t) : status;
    if (status != CLI_DONE) {
        return status;
    }
    return cli_train_ranks_open_device(&t->ranks, t->settings->device, &t->device) &&
                   meet_ranks(t) && open_executor(t) && resume(t)
               ? CLI_DONE
               : CLI_FAILED;
}

static void close_trainer(trainer *t) {
    rondo_executor_destroy(t->executor);
    rondo_communicator_destroy(t->ranks.communicator);
    rondo_device_release(t->device);
    rondo_program_destroy(t->program);
    rondo_program_destroy(t->model);
    cli_train_data_close(&t->data);
    cli_train_line_free(&t->loss);
    cli_train_line_free(&t->validation);
}

// ---- what is held out ---------------------------------------------------------------------------

typedef struct measure {
    double loss, hits;
    double rate;  // of the last step
    int64_t samples;
} measure;

// Feeds the part of a batch that this rank takes.
static size_t feed_part(trainer *t, int64_t index, int64_t count, float *scalars,
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
static bool run_batch(trainer *t, rondo_executor *executor, bool is_held, int64_t index,
                      bool has_hits, measure *in_out_sum, float *out_loss) {
    rondo_binding feeds[FEEDS_MAX + 2];
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
        cli_progress_clear();
        return fail();
    }
    if (is_shared) {
        t->ranks.is_stopped = *(const float *)fetches[fetch_count - 2].tensor.data > 0.0f;
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

static bool say_spoilt(const trainer *t, const char *what, double value, const char *cure) {
    struct stat info;
    const bool is_kept = t->checkpoint[0] != '\0' && stat(t->checkpoint, &info) == 0;
    cli_progress_clear();
    cli_print_error("%s is %f after %lld batches; %s%s%s", what, value, (long long)t->runs, cure,
                    is_kept ? "; the last good state is in " : "", is_kept ? t->checkpoint : "");
    return false;
}

static const char *find_cure(const trainer *t) {
    return t->settings->dtype == 1
               ? "look for NaN or huge numbers in --data, or try --dtype bf16"
               : "look for NaN in --data, or try a smaller --learning-rate or --clip-norm";
}

// The weights after training; none may be infinite or NaN that was not before, since what is saved
// is what a training goes on from.
static bool take_trained(trainer *t, rondo_program **out_trained) {
    size_t count = 0;
    double spoilt = 0.0;
    if (rondo_executor_get_trained(t->executor, t->model, out_trained) != RONDO_STATUS_OK ||
        rondo_program_list_parameters(t->model, 0, NULL, &count) != RONDO_STATUS_OK) {
        return fail();
    }
    rondo_parameter *lists = calloc(2 * count + 1, sizeof *lists);
    if (lists == NULL) {
        cli_print_error("memory is exhausted");
        return false;
    }
    bool is_good =
        (rondo_program_list_parameters(t->model, count, lists, &count) == RONDO_STATUS_OK &&
         rondo_program_list_parameters(*out_trained, count, lists + count, &count) ==
             RONDO_STATUS_OK) ||
        fail();
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

static bool validate(trainer *t, const rondo_program *trained, measure *out_measure) {
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    const bool has_hits = t->plan.loss == CLI_CROSS_ENTROPY;
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = compute_types[t->settings->dtype],
                                            .thread_count = (uint32_t)t->settings->thread_count};
    *out_measure = (measure){0};
    bool is_good = cli_train_program_measure(trained, &t->plan, &program);
    is_good = is_good &&
              (rondo_executor_create(program, t->device, &options, &executor) == RONDO_STATUS_OK ||
               fail());
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

static bool save_checkpoint(trainer *t) {
    if (t->checkpoint[0] == '\0' || !cli_train_ranks_is_first(&t->ranks)) {
        return true;
    }
    if (rondo_checkpoint_save(t->executor, t->checkpoint) != RONDO_STATUS_OK) {
        return fail();
    }
    return true;
}

static void say_epoch(trainer *t, int64_t epoch, const measure *trained, const measure *held) {
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
static void say_part(trainer *t, int64_t epoch, const measure *trained) {
    if (trained->samples > 0) {
        (void)snprintf(t->summary, sizeof t->summary, "epoch %lld of %llu, a part: loss %.6g",
                       (long long)epoch + 1, (unsigned long long)t->settings->epochs,
                       trained->loss / (double)trained->samples);
        cli_say(CLI_NORMAL, "%s", t->summary);
    }
}

// What an epoch has made of the weights, where they are written or measured now; `held` (NULL:
// nothing) gets what they do on what is held out. Other ranks have the same weights as rank 0.
static bool look_at_weights(trainer *t, measure *held) {
    rondo_program *trained = NULL;
    if (!cli_train_ranks_is_first(&t->ranks)) {
        return true;
    }
    const bool is_good = take_trained(t, &trained) && (held == NULL || validate(t, trained, held));
    rondo_program_destroy(trained);
    return is_good;
}

static bool run_epoch(trainer *t, int64_t epoch, int64_t first) {
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
static bool save_work(trainer *t, bool is_part) {
    rondo_program *trained = NULL;
    if (!cli_train_ranks_is_first(&t->ranks)) {
        return true;
    }
    const bool is_good =
        take_trained(t, &trained) && (!is_part || save_checkpoint(t)) &&
        (t->settings->output == NULL ||
         rondo_program_save_onnx(trained, t->settings->output) == RONDO_STATUS_OK || fail());
    rondo_program_destroy(trained);
    return is_good;
}

static int train(trainer *t) {
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

static int run_train(const cli_command *command, int argc, char **argv) {
    cli_train_settings settings = cli_train_settings_start;
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    int status = cli_train_settings_check(command, argv[0], &settings);
    if (status != CLI_DONE) {
        return status;
    }
    trainer t = {.command = command, .settings = &settings, .path = argv[0]};
    if (!cli_train_ranks_find(&t.ranks)) {
        return CLI_FAILED;
    }
    cli_set_level(settings.is_quiet || !cli_train_ranks_is_first(&t.ranks) ? CLI_RESULT
                                                                           : CLI_NORMAL);
    cli_interrupt_watch();
    status = open_trainer(&t);
    if (status == CLI_DONE) {
        status = train(&t);
    } else if (cli_interrupt_came()) {
        status = CLI_INTERRUPTED;
    }
    close_trainer(&t);
    return status;
}

#define AT(field) offsetof(cli_train_settings, field)
static const cli_option train_options[] = {
    {"--data", "FILE", CLI_TEXT, AT(data), NULL,
     "a .npz, or a folder of .npy: an array for each input of the\nmodel, and the target; the "
     "first "
     "axis counts samples"},
    {"--loss", NULL, CLI_CHOICE, AT(loss), "cross_entropy|mse|bce",
     "labels of classes (default), numbers, or chances. Behind a\nSoftmax or Sigmoid at the end of "
     "the model it takes what\nwent in there"},
    {"--target", "NAME", CLI_TEXT, AT(target), NULL,
     "array of the target (default: the one that is no input)"},
    {"--result", "NAME", CLI_TEXT, AT(result), NULL,
     "output that is compared with it (default: the first)"},
    {"--optimizer", NULL, CLI_CHOICE, AT(optimizer), "sgd|momentum|adam|adamw|adagrad",
     "as PyTorch computes them (default: adam)"},
    {"--learning-rate", "R", CLI_NUMBER, AT(rate), NULL, "of the first step (0.001)"},
    {"--momentum", "M", CLI_NUMBER, AT(momentum), NULL, "with --optimizer momentum (0.9)"},
    {"--weight-decay", "D", CLI_NUMBER, AT(decay), NULL, "of each weight, each step (0)"},
    {"--schedule", NULL, CLI_CHOICE, AT(schedule), "constant|cosine|linear|step",
     "of the learning rate, over all epochs (default: constant);\nstep: by --step-factor after "
     "each "
     "--step-epochs"},
    {"--step-epochs", "N", CLI_COUNT, AT(step_epochs), NULL, "with --schedule step (1)"},
    {"--step-factor", "F", CLI_NUMBER, AT(step_factor), NULL, "with --schedule step (0.1)"},
    {"--least-rate", "SHARE", CLI_NUMBER, AT(least), NULL,
     "where the schedule ends, a share of the learning rate (0)"},
    {"--warm-up", "N", CLI_COUNT, AT(warmup), NULL,
     "steps from a third of the learning rate to all of it (0)"},
    {"--clip-norm", "N", CLI_NUMBER, AT(clip_norm), NULL,
     "the most that all gradients together are long (0: any)"},
    {"--clip-value", "V", CLI_NUMBER, AT(clip_value), NULL,
     "the most that each gradient is (0: any)"},
    {"--epochs", "N", CLI_COUNT, AT(epochs), NULL, "times through the data (10)"},
    {"--batch", "B", CLI_COUNT, AT(batch), NULL,
     "samples a run, of all ranks together (32, or what the model\ntakes at once)"},
    {"--accumulate", "N", CLI_COUNT, AT(accumulate), NULL,
     "runs whose gradients are averaged for a step (1), at most\nthe batches of an epoch"},
    {"--validation", "SHARE", CLI_NUMBER, AT(held), NULL,
     "of the samples that is held out, and measured after each\nepoch (0.1)"},
    {"--dtype", NULL, CLI_CHOICE, AT(dtype), "fp32|fp16|bf16",
     "compute in single precision (default), in half precision\nwith a scaled loss, or products in "
     "bf16; weights are of f32"},
    {"--train", "PATTERN", CLI_LIST, AT(train), NULL,
     "train these parameters alone (* any characters, ? one);\nmay be repeated"},
    {"--lora", "RANK", CLI_COUNT, AT(rank), NULL,
     "train low-rank adapters of matrices (those of --train, or\nall) in their place; what comes "
     "out "
     "has them added"},
    {"--rows", "PATTERN", CLI_LIST, AT(rows), NULL,
     "tables whose rows change alone, where they were looked up;\nmay be repeated"},
    {"--recompute", "PATTERN", CLI_LIST, AT(recompute), NULL,
     "ops that run once more on the way back, to save memory;\nmay be repeated"},
    {"--output", "FILE", CLI_TEXT, AT(output), NULL, "the trained model, as ONNX"},
    {"--checkpoint", "DIR", CLI_TEXT, AT(checkpoint), NULL,
     "keep the state there after each epoch, and at Ctrl-C"},
    {"--resume", NULL, CLI_SWITCH, AT(resumes), NULL,
     "go on from what is in --checkpoint, if anything is; what\ndecides its bits must be as it "
     "was"},
    {"--report", "FILE", CLI_TEXT, AT(report), NULL, "a page with a picture of the loss (HTML)"},
    {"--device", "NAME", CLI_TEXT, AT(device), NULL,
     "auto (default: the first usable GPU, a GPU for each rank,\notherwise the host), host, or "
     "cuda:N"},
    {"--graphs", NULL, CLI_CHOICE, AT(graphs), "auto|on|off|measured",
     "auto (default) captures where it can, on makes a failed\ncapture an error, off is eager, "
     "measured ends replays that\nare slower than eager runs"},
    {"--threads", "N", CLI_COUNT, AT(thread_count), NULL,
     "threads for one op on the host, 1 to 1024\n(default: see rondo help environment)"},
    {"--seed", "N", CLI_COUNT, AT(seed), NULL,
     "of the order of samples, of what is held out, and of random\nops (0)"},
    {"--quiet", NULL, CLI_SWITCH, AT(is_quiet), NULL, "say nothing but errors"},
};

const cli_command cli_command_train = {
    .name = "train",
    .operands = "MODEL",
    .summary = "train a model with arrays from a file",
    .details =
        "Loss, gradients and optimiser are one program, replayed once a batch. Ctrl-C ends "
        "after the\n"
        "batch that runs, and keeps the work. A loss that is no number is an error, and the "
        "checkpoint\n"
        "before it stays. Started by mpirun, srun or torchrun, all ranks train together: each "
        "takes "
        "a part\n"
        "of every batch, and rank 0 speaks and writes.",
    .operand_min = 1,
    .operand_max = 1,
    .options = train_options,
    .option_count = sizeof train_options / sizeof train_options[0],
    .run = run_train,
};
