// train/train_open.c — a training is opened: data that fit the model, the step, the checkpoint to
// go on from, the ranks.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "console.h"
#include "hash_bytes.h"
#include "model_file.h"
#include "output_file.h"
#include "progress.h"
#include "trainer.h"

rondo_dtype cli_trainer_get_dtype(const cli_trainer *t) {
    static const rondo_dtype types[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F16, RONDO_DTYPE_BF16};
    return types[t->settings->dtype];
}

static bool read_runs(cli_trainer *t) {
    rondo_tensor now = {0};
    if (rondo_executor_get_variable(t->executor, "train.run", &now) != RONDO_STATUS_OK) {
        return cli_say_record();
    }
    const rondo_tensor to = {.dtype = now.dtype, .shape = now.shape, .data = &t->runs};
    rondo_stream *stream = rondo_executor_get_stream(t->executor);
    rondo_status status = rondo_tensor_copy(stream, &now, &to);
    status = status == RONDO_STATUS_OK ? rondo_stream_synchronize(stream) : status;
    rondo_tensor_deinit(&now);
    return status == RONDO_STATUS_OK || cli_say_record();
}

static bool is_resumed(const cli_trainer *t) {
    struct stat info;
    return t->settings->resumes && stat(t->checkpoint, &info) == 0;
}

// Refuses a checkpoint of another training, before anything is made.
static int check_resumed(const cli_trainer *t) {
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

static bool resume(cli_trainer *t) {
    if (is_resumed(t)) {
        if (rondo_checkpoint_load(t->executor, t->checkpoint) != RONDO_STATUS_OK || !read_runs(t)) {
            return cli_say_record();
        }
        cli_say(CLI_NORMAL, "%s: goes on after %lld batches", t->checkpoint, (long long)t->runs);
        if (t->runs >= cli_train_data_count(&t->data, false) * (int64_t)t->settings->epochs) {
            cli_say(CLI_NORMAL, "--epochs %llu are behind it: there is nothing to train",
                    (unsigned long long)t->settings->epochs);
        }
    }
    return true;
}

static bool open_executor(cli_trainer *t) {
    static const char *const averages = "AllReduce";
    const cli_train_settings *s = t->settings;
    const rondo_executor_options options = {
        .struct_size = sizeof options,
        .graphs = s->graphs,
        .dtype = cli_trainer_get_dtype(t),
        .use_f16 = &averages,
        .use_f16_count = s->sends_half,
        .seed = s->seed,
        .training = true,
        .progress = cli_train_ranks_is_first(&t->ranks) ? cli_progress_show : NULL,
        .thread_count = (uint32_t)s->thread_count,
        .communicator = t->ranks.communicator};
    return rondo_executor_create(t->program, t->device, &options, &t->executor) ==
               RONDO_STATUS_OK ||
           cli_say_record();
}

// Rank 0 alone writes.
static bool check_outputs(cli_trainer *t) {
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
static uint64_t hash_model(const cli_trainer *t) {
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
static bool meet_ranks(cli_trainer *t) {
    char common[CLI_TRAIN_SETTINGS_BYTES + 160];
    (void)snprintf(common, sizeof common, "%s--epochs %llu\nthe checkpoint to resume, hash %016llx",
                   t->told, (unsigned long long)t->settings->epochs,
                   (unsigned long long)(t->settings->resumes ? hash_file(t->checkpoint) : 0));
    return cli_train_ranks_meet(&t->ranks, t->device, common);
}

// ---- the data -----------------------------------------------------------------------------------

// `size`: how many samples the model takes at once.
static int refuse_batch(const cli_trainer *t, int64_t size) {
    const bool has_ranks = cli_train_ranks_are_many(&t->ranks);
    return cli_fail_misuse(t->command,
                           "--batch %llu: the model takes %lld samples at once%s; give --batch "
                           "%lld, or export it with a free first axis",
                           (unsigned long long)t->settings->batch, (long long)size,
                           has_ranks ? " at each rank" : "",
                           (long long)(size * t->ranks.ranks.size));
}

// The batch of a model that takes one number of samples only.
static int choose_batch(cli_trainer *t, bool *out_is_fixed) {
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
static rondo_status try_batch(cli_trainer *t, rondo_executor *executor, int64_t count,
                              bool is_held) {
    rondo_binding feeds[CLI_TRAIN_FEEDS_MAX];
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
static int64_t find_size(cli_trainer *t, rondo_executor *executor) {
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
static int64_t find_size_inside(cli_trainer *t) {
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

static bool find_result(const cli_trainer *t, rondo_port *out_port) {
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

static int open_data(cli_trainer *t) {
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
    if (t->data.column_count > CLI_TRAIN_FEEDS_MAX) {
        cli_print_error("the model has %zu inputs, over %d", t->data.column_count - 1,
                        CLI_TRAIN_FEEDS_MAX - 1);
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

static int open_step(cli_trainer *t) {
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

int cli_trainer_open(cli_trainer *t) {
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

void cli_trainer_close(cli_trainer *t) {
    rondo_executor_destroy(t->executor);
    rondo_communicator_destroy(t->ranks.communicator);
    rondo_device_release(t->device);
    rondo_program_destroy(t->program);
    rondo_program_destroy(t->model);
    cli_train_data_close(&t->data);
    cli_train_line_free(&t->loss);
    cli_train_line_free(&t->validation);
}
