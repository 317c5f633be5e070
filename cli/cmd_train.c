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
#include <time.h>

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

enum { PATH_BYTES = 4096, FEEDS_MAX = 256, SPOILT_MAX = 30 };

typedef struct train_settings {
    const char *device, *data, *target, *result, *output, *checkpoint, *report;
    int loss, optimizer, schedule, dtype, graphs;
    double rate, momentum, decay, clip_norm, clip_value, held, least, step_factor;
    uint64_t epochs, batch, warmup, accumulate, rank, seed, thread_count, step_epochs;
    cli_list train, recompute, rows;
    bool resumes, is_quiet;
} train_settings;

static const rondo_dtype compute_types[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F16, RONDO_DTYPE_BF16};

typedef struct trainer {
    const train_settings *settings;
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
    size_t spoilt;  // losses in a row that are no numbers
    double started_at;
    int64_t started_runs;
    char summary[400];
} trainer;

static double get_seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ---- settings -----------------------------------------------------------------------------------

static void fill_plan(const train_settings *s, int64_t steps, cli_train_plan *plan) {
    static const rondo_schedule schedules[] = {RONDO_SCHEDULE_CONSTANT, RONDO_SCHEDULE_COSINE,
                                               RONDO_SCHEDULE_LINEAR, RONDO_SCHEDULE_STEP};
    static const rondo_optimizer optimizers[] = {RONDO_OPTIMIZER_SGD, RONDO_OPTIMIZER_SGD,
                                                 RONDO_OPTIMIZER_ADAM, RONDO_OPTIMIZER_ADAMW,
                                                 RONDO_OPTIMIZER_ADAGRAD};
    const int64_t warmup = (int64_t)s->warmup;
    const int64_t taken = steps / (int64_t)s->accumulate;
    const int64_t each = taken * (int64_t)s->step_epochs / (int64_t)s->epochs;
    const int64_t step_steps = each > 0 ? each : 1;
    plan->loss = (cli_train_loss)s->loss;
    plan->result = s->result;
    plan->rank = s->rank;
    plan->step = (rondo_minimize_options){
        .struct_size = sizeof plan->step,
        .optimizer = optimizers[s->optimizer],
        .learning_rate = s->rate,
        .momentum = s->optimizer == 1 ? s->momentum : 0.0,
        .weight_decay = s->decay,
        .schedule = schedules[s->schedule],
        .schedule_steps = s->schedule == 3     ? step_steps
                          : taken - warmup > 0 ? taken - warmup
                                               : 1,
        .schedule_factor = s->step_factor,
        .rows = s->rows.count > 0 ? s->rows.items : NULL,
        .rows_count = s->rows.count,
        .schedule_least = s->least,
        .warmup_steps = warmup,
        .clip_norm = s->clip_norm,
        .clip_value = s->clip_value,
        .scale_loss = s->dtype == 1,
        .accumulate = (int64_t)s->accumulate,
        .train = s->train.count > 0 ? s->train.items : NULL,
        .train_count = s->train.count,
        .recompute = s->recompute.count > 0 ? s->recompute.items : NULL,
        .recompute_count = s->recompute.count,
        .average_ranks = plan->has_ranks,
    };
}

static int check_settings(const cli_command *command, const train_settings *s) {
    if (s->data == NULL) {
        return cli_fail_misuse(command, "--data FILE says what to train with");
    }
    if (s->output == NULL && s->checkpoint == NULL) {
        return cli_fail_misuse(command,
                               "--output FILE or --checkpoint DIR says where the work goes");
    }
    if (s->resumes && s->checkpoint == NULL) {
        return cli_fail_misuse(command, "--resume needs --checkpoint DIR");
    }
    if (s->batch < 1 || s->epochs < 1 || s->accumulate < 1 || s->batch > INT32_MAX ||
        s->epochs > INT32_MAX || s->accumulate > INT32_MAX || s->warmup > INT32_MAX) {
        return cli_fail_misuse(command, "--batch, --epochs and --accumulate are at least 1");
    }
    if (!(s->held >= 0.0 && s->held < 1.0)) {
        return cli_fail_misuse(command, "--validation is a share from 0 to below 1");
    }
    if (!(s->step_factor > 0.0) || s->step_epochs < 1 || s->step_epochs > INT32_MAX) {
        return cli_fail_misuse(command, "--step-factor is above 0, --step-epochs at least 1");
    }
    if (!(s->rate > 0.0)) {
        return cli_fail_misuse(command, "--learning-rate is above 0");
    }
    return CLI_DONE;
}

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

static bool resume(trainer *t) {
    struct stat info;
    if (t->settings->resumes && stat(t->checkpoint, &info) == 0) {
        if (rondo_checkpoint_load(t->executor, t->checkpoint) != RONDO_STATUS_OK || !read_runs(t)) {
            return fail();
        }
        cli_say(CLI_NORMAL, "%s: goes on after %lld batches", t->checkpoint, (long long)t->runs);
    }
    return true;
}

static bool open_executor(trainer *t) {
    const train_settings *s = t->settings;
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
    const train_settings *s = t->settings;
    if (s->checkpoint != NULL) {
        (void)snprintf(t->checkpoint, sizeof t->checkpoint, "%.4000s/last.rondo", s->checkpoint);
    }
    return !cli_train_ranks_is_first(&t->ranks) ||
           ((s->checkpoint == NULL ||
             (cli_make_folders(s->checkpoint) && cli_output_check(t->checkpoint))) &&
            cli_output_check(s->output) && cli_output_check(s->report));
}

// Hash of a file's bytes; 0: there is none, or it cannot be read again.
static uint64_t hash_file(const char *path) {
    uint64_t hash = CLI_HASH_SEED;
    unsigned char bytes[1 << 14];
    size_t count;
    struct stat info;
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    if (file == NULL) {
        return 0;
    }
    while ((count = fread(bytes, 1, sizeof bytes, file)) > 0) {
        hash = cli_hash(hash, bytes, count);
    }
    (void)fclose(file);
    return hash;
}

// What ranks must have alike, so that they take the same steps.
static bool meet_ranks(trainer *t) {
    static const char *const losses[] = {"cross_entropy", "mse", "bce"};
    static const char *const optimizers[] = {"sgd", "momentum", "adam", "adamw", "adagrad"};
    static const char *const schedules[] = {"constant", "cosine", "linear", "step"};
    static const char *const dtypes[] = {"fp32", "fp16", "bf16"};
    const train_settings *s = t->settings;
    char common[960];
    (void)snprintf(common, sizeof common,
                   "--dtype %s\n--learning-rate %.9g\n--batch %llu\n--seed %llu\n--epochs %llu\n"
                   "--optimizer %s\n--loss %s\n--schedule %s\n--least-rate %.9g\n--warm-up %llu\n"
                   "--momentum %.9g\n--weight-decay %.9g\n--clip-norm %.9g\n--clip-value %.9g\n"
                   "--accumulate %llu\n--validation %.9g\n--lora %llu\n--step-epochs %llu\n"
                   "--step-factor %.9g\n%lld samples\nthe model's file, hash %016llx\n"
                   "the checkpoint to resume, hash %016llx",
                   dtypes[s->dtype], s->rate, (unsigned long long)s->batch,
                   (unsigned long long)s->seed, (unsigned long long)s->epochs,
                   optimizers[s->optimizer], losses[s->loss], schedules[s->schedule], s->least,
                   (unsigned long long)s->warmup, s->momentum, s->decay, s->clip_norm,
                   s->clip_value, (unsigned long long)s->accumulate, s->held,
                   (unsigned long long)s->rank, (unsigned long long)s->step_epochs, s->step_factor,
                   (long long)t->data.sample_count, (unsigned long long)hash_file(t->path),
                   (unsigned long long)(s->resumes ? hash_file(t->checkpoint) : 0));
    return cli_train_ranks_meet(&t->ranks, t->device, common);
}

static bool open_trainer(trainer *t) {
    const train_settings *s = t->settings;
    if (!check_outputs(t)) {
        return false;
    }
    if (cli_model_load(t->path, NULL, true, &t->model) != RONDO_STATUS_OK) {
        return fail();
    }
    if (!cli_train_data_open(s->data, t->model, s->target, s->held, (int64_t)s->batch, s->seed,
                             &t->data)) {
        return false;
    }
    t->plan.has_ranks = cli_train_ranks_are_many(&t->ranks);
    fill_plan(s, cli_train_data_count(&t->data, false) * (int64_t)s->epochs, &t->plan);
    t->plan.target = cli_train_data_get_target(&t->data)->tensor;
    return cli_train_program_train(t->model, &t->plan, &t->program) &&
           cli_train_ranks_open_device(&t->ranks, s->device, &t->device) && meet_ranks(t) &&
           open_executor(t) && resume(t);
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

static bool validate(trainer *t, measure *out_measure) {
    rondo_program *trained = NULL;
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    const bool has_hits = t->plan.loss == CLI_CROSS_ENTROPY;
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = compute_types[t->settings->dtype],
                                            .thread_count = (uint32_t)t->settings->thread_count};
    *out_measure = (measure){0};
    bool is_good =
        rondo_executor_get_trained(t->executor, t->model, &trained) == RONDO_STATUS_OK || fail();
    is_good = is_good && cli_train_program_measure(trained, &t->plan, &program);
    is_good = is_good &&
              (rondo_executor_create(program, t->device, &options, &executor) == RONDO_STATUS_OK ||
               fail());
    for (int64_t i = 0;
         is_good && i < cli_train_data_count(&t->data, true) && !cli_train_ranks_stop(&t->ranks);
         ++i) {
        float loss;
        is_good = run_batch(t, executor, true, i, has_hits, out_measure, &loss);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_program_destroy(trained);
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

// A loss that is no number ends it, unless a scaled step may leave such batches out.
static bool check_loss(trainer *t, float loss) {
    t->spoilt = isfinite(loss) ? 0 : t->spoilt + 1;
    if (t->spoilt > (t->plan.step.scale_loss ? SPOILT_MAX : 0)) {
        struct stat info;
        const bool is_kept = t->checkpoint[0] != '\0' && stat(t->checkpoint, &info) == 0;
        cli_print_error(
            "the loss is %f at batch %lld; try a smaller --learning-rate or --clip-norm%s%s",
            (double)loss, (long long)t->runs, is_kept ? "; the last good state is in " : "",
            is_kept ? t->checkpoint : "");
        return false;
    }
    return true;
}

static void say_epoch(trainer *t, int64_t epoch, const measure *trained, const measure *held) {
    const double seconds = get_seconds() - t->started_at;
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
        if (!cli_train_line_add(&t->loss, (double)t->runs, (double)loss) || !check_loss(t, loss)) {
            cli_progress_clear();
            return false;
        }
    }
    cli_progress_clear();
    const bool is_measured = t->data.held_count > 0 && cli_train_ranks_is_first(&t->ranks);
    if (!cli_train_ranks_stop(&t->ranks) && is_measured && !validate(t, &held)) {
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

static bool save_model(trainer *t) {
    rondo_program *trained = NULL;
    if (t->settings->output == NULL || !cli_train_ranks_is_first(&t->ranks)) {
        return true;
    }
    bool is_good = rondo_executor_get_trained(t->executor, t->model, &trained) == RONDO_STATUS_OK &&
                   rondo_program_save_onnx(trained, t->settings->output) == RONDO_STATUS_OK;
    is_good = is_good || fail();
    rondo_program_destroy(trained);
    return is_good;
}

static int train(trainer *t) {
    const int64_t batches = cli_train_data_count(&t->data, false);
    t->started_at = get_seconds();
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
    if ((was_stopped && !save_checkpoint(t)) || !save_model(t)) {
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
    train_settings settings = {.device = "auto",
                               .optimizer = 2,
                               .rate = 0.001,
                               .momentum = 0.9,
                               .held = 0.1,
                               .epochs = 10,
                               .batch = 32,
                               .accumulate = 1,
                               .step_epochs = 1,
                               .step_factor = 0.1};
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    int status = check_settings(command, &settings);
    if (status != CLI_DONE) {
        return status;
    }
    trainer t = {.settings = &settings, .path = argv[0]};
    if (!cli_train_ranks_find(&t.ranks)) {
        return CLI_FAILED;
    }
    cli_set_level(settings.is_quiet || !cli_train_ranks_is_first(&t.ranks) ? CLI_RESULT
                                                                           : CLI_NORMAL);
    cli_interrupt_watch();
    if (open_trainer(&t)) {
        status = train(&t);
    } else {
        status = cli_interrupt_came() ? CLI_INTERRUPTED : CLI_FAILED;
    }
    close_trainer(&t);
    return status;
}

#define AT(field) offsetof(train_settings, field)
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
    {"--batch", "B", CLI_COUNT, AT(batch), NULL, "samples a run, of all ranks together (32)"},
    {"--accumulate", "N", CLI_COUNT, AT(accumulate), NULL,
     "runs whose gradients are averaged for a step (1)"},
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
     "go on from what is in --checkpoint, if anything is"},
    {"--report", "FILE", CLI_TEXT, AT(report), NULL, "a page with a picture of the loss (HTML)"},
    {"--device", "NAME", CLI_TEXT, AT(device), NULL,
     "auto (default: the first usable GPU, a GPU for each rank,\notherwise the host), host, or "
     "cuda:N"},
    {"--graphs", NULL, CLI_CHOICE, AT(graphs), "auto|on|off",
     "auto (default) captures where it can, on makes a failed\ncapture an error, off is eager"},
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
