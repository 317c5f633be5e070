// SPDX-License-Identifier: Apache-2.0
#include "train_settings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "console.h"
#include "hash_bytes.h"

// ---- defaults -----------------------------------------------------------------------------------

#define NOT_GIVEN UINT64_MAX
static const double no_number = -1.0;  // cli_parse takes numbers from 0

const cli_train_settings cli_train_settings_start = {.device = "auto",
                                                     .optimizer = 2,
                                                     .rate = 0.001,
                                                     .momentum = -1.0,
                                                     .held = -1.0,
                                                     .least = -1.0,
                                                     .step_factor = -1.0,
                                                     .epochs = 10,
                                                     .batch = NOT_GIVEN,
                                                     .accumulate = 1,
                                                     .rank = NOT_GIVEN,
                                                     .step_epochs = NOT_GIVEN};

static void fill_number(double *number, double value) {
    *number = *number == no_number ? value : *number;
}

static void fill_count(uint64_t *count, uint64_t value) {
    *count = *count == NOT_GIVEN ? value : *count;
}

static void fill_defaults(cli_train_settings *s) {
    s->has_batch = s->batch != NOT_GIVEN;
    s->has_held = s->held != no_number;
    fill_number(&s->momentum, 0.9);
    fill_number(&s->held, 0.1);
    fill_number(&s->least, 0.0);
    fill_number(&s->step_factor, 0.1);
    fill_count(&s->batch, 32);
    fill_count(&s->rank, 0);
    fill_count(&s->step_epochs, 1);
}

// ---- misuse -------------------------------------------------------------------------------------

typedef struct limit {
    const char *name;
    double value, least, most;
    bool is_open, is_below;  // `least`, or `most`, itself is refused
} limit;

static int check_limits(const cli_command *command, const cli_train_settings *s) {
    const double much = 1e30;
    const double many = INT32_MAX;
    const limit limits[] = {
        {"--learning-rate", s->rate, 0.0, much, true, false},
        {"--momentum", s->momentum, 0.0, 1.0, false, true},
        {"--weight-decay", s->decay, 0.0, much, false, false},
        {"--clip-norm", s->clip_norm, 0.0, much, false, false},
        {"--clip-value", s->clip_value, 0.0, much, false, false},
        {"--least-rate", s->least, 0.0, 1.0, false, false},
        {"--step-factor", s->step_factor, 0.0, much, true, false},
        {"--validation", s->held, 0.0, 1.0, false, true},
        {"--epochs", (double)s->epochs, 1.0, many, false, false},
        {"--batch", (double)s->batch, 1.0, many, false, false},
        {"--accumulate", (double)s->accumulate, 1.0, 1e6, false, false},
        {"--step-epochs", (double)s->step_epochs, 1.0, many, false, false},
        {"--warm-up", (double)s->warmup, 0.0, many, false, false},
        {"--lora", (double)s->rank, 0.0, many, false, false},
        {"--threads", (double)s->thread_count, 0.0, 1024.0, false, false},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; ++i) {
        const limit *l = &limits[i];
        const bool is_low = l->is_open ? !(l->value > l->least) : !(l->value >= l->least);
        const bool is_high = l->is_below ? !(l->value < l->most) : !(l->value <= l->most);
        if (is_low || is_high) {
            return cli_fail_misuse(command, "%s %.9g: it is %s %.10g and %s %.10g", l->name,
                                   l->value, l->is_open ? "above" : "at least", l->least,
                                   l->is_below ? "below" : "at most", l->most);
        }
    }
    return CLI_DONE;
}

// Options that say nothing without another, as they were before defaults.
static int check_company(const cli_command *command, const cli_train_settings *s) {
    const bool has_end = s->schedule != 0 && s->schedule != CLI_TRAIN_STEP_SCHEDULE;
    const bool has_steps = s->schedule == CLI_TRAIN_STEP_SCHEDULE;
    const struct {
        bool is_wrong;
        const char *text;
    } rules[] = {
        {s->data == NULL, "--data FILE says what to train with"},
        {s->output == NULL && s->checkpoint == NULL,
         "--output FILE or --checkpoint DIR says where the work goes"},
        {s->resumes && s->checkpoint == NULL, "--resume needs --checkpoint DIR"},
        {s->momentum != no_number && s->optimizer != CLI_TRAIN_MOMENTUM,
         "--momentum goes with --optimizer momentum alone"},
        {s->step_epochs != NOT_GIVEN && !has_steps,
         "--step-epochs goes with --schedule step alone"},
        {s->step_factor != no_number && !has_steps,
         "--step-factor goes with --schedule step alone"},
        {s->least != no_number && !has_end,
         "--least-rate goes with --schedule cosine or linear alone"},
        {s->rank == 0, "--lora 0: a rank is at least 1; without --lora all weights are trained"},
        {s->rank != NOT_GIVEN && s->rows.count > 0,
         "--lora leaves tables as they are, so that --rows has none to change; give one of them"},
        {s->sends_half && s->dtype != 1, "--half-averages goes with --dtype fp16 alone"},
        {s->output != NULL && strcmp(s->output, "-") == 0,
         "--output is a file; a model does not go to standard output"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
        if (rules[i].is_wrong) {
            return cli_fail_misuse(command, "%s", rules[i].text);
        }
    }
    return CLI_DONE;
}

static bool is_same_file(const char *a, const char *b) {
    struct stat first, second;
    return strcmp(a, b) == 0 ||
           (stat(a, &first) == 0 && stat(b, &second) == 0 && S_ISREG(first.st_mode) &&
            first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

// Nothing is named by nothing, and what is written replaces neither what is read nor each other.
static int check_paths(const cli_command *command, const char *model, const cli_train_settings *s) {
    const struct {
        const char *name, *path;
        bool is_written;
    } files[] = {{"MODEL", model, false},        {"--data", s->data, false},
                 {"--target", s->target, false}, {"--result", s->result, false},
                 {"--device", s->device, false}, {"--checkpoint", s->checkpoint, false},
                 {"--output", s->output, true},  {"--report", s->report, true}};
    enum { COUNT = sizeof files / sizeof *files, READ = 2, WRITTEN = 6 };
    for (size_t i = 0; i < COUNT; ++i) {
        if (files[i].path != NULL && files[i].path[0] == '\0') {
            return cli_fail_misuse(command, "%s is empty", files[i].name);
        }
    }
    for (size_t i = WRITTEN; i < COUNT; ++i) {
        for (size_t k = 0; k < i && files[i].path != NULL; ++k) {
            if ((k < READ || k >= WRITTEN) && files[k].path != NULL &&
                is_same_file(files[i].path, files[k].path)) {
                return cli_fail_misuse(command, "%s and %s are the same file; name another one",
                                       files[i].name, files[k].name);
            }
        }
    }
    return CLI_DONE;
}

int cli_train_settings_check(const cli_command *command, const char *model, cli_train_settings *s) {
    const int status = check_company(command, s);
    if (status != CLI_DONE) {
        return status;
    }
    fill_defaults(s);
    const int limited = check_limits(command, s);
    return limited != CLI_DONE ? limited : check_paths(command, model, s);
}

// ---- patterns -----------------------------------------------------------------------------------

// * stands for any characters, ? for one.
static bool matches(const char *pattern, const char *text) {
    const char *star = NULL;
    const char *from = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == '?' || *pattern == *text) {
            ++pattern;
            ++text;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        ++pattern;
    }
    return *pattern == '\0';
}

// Names of the model, of which some are shown where none matches.
typedef struct names {
    const char *pattern;
    bool is_found;
    size_t used;
    char text[160];
} names;

static void offer(names *n, const char *name) {
    const size_t room = sizeof n->text - n->used;
    n->is_found = n->is_found || matches(n->pattern, name);
    if (name[0] != '\0' && strlen(name) + 8 < room) {
        n->used += (size_t)snprintf(n->text + n->used, room, "%s%s", n->used > 0 ? ", " : "", name);
    }
}

static void offer_parameters(const rondo_program *model, names *n) {
    size_t count = 0;
    n->is_found = rondo_program_list_parameters(model, 0, NULL, &count) != RONDO_STATUS_OK;
    rondo_parameter *list = calloc(count + 1, sizeof *list);
    n->is_found = n->is_found || list == NULL ||
                  rondo_program_list_parameters(model, count, list, &count) != RONDO_STATUS_OK;
    for (size_t i = 0; i < count && list != NULL && !n->is_found; ++i) {
        offer(n, list[i].name);
    }
    free(list);
}

// Nodes of bodies are not looked at: there the pattern is taken as it is.
static void offer_nodes(const rondo_program *model, names *n) {
    for (size_t i = 0; i < rondo_program_get_node_count(model) && !n->is_found; ++i) {
        rondo_program_node node = {.struct_size = sizeof node};
        if (rondo_program_get_node(model, i, &node) != RONDO_STATUS_OK) {
            continue;
        }
        n->is_found = matches(n->pattern, node.op) || strcmp(node.op, "If") == 0 ||
                      strcmp(node.op, "Loop") == 0 || strcmp(node.op, "Scan") == 0;
        offer(n, node.name);
    }
}

int cli_train_settings_check_patterns(const cli_command *command, const cli_train_settings *s,
                                      const rondo_program *model) {
    const struct {
        const char *option, *what;
        const cli_list *list;
        void (*offer_all)(const rondo_program *model, names *n);
    } rows[] = {{"--train", "parameter", &s->train, offer_parameters},
                {"--rows", "parameter", &s->rows, offer_parameters},
                {"--recompute", "node or type of op", &s->recompute, offer_nodes}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
        for (size_t i = 0; i < rows[r].list->count; ++i) {
            names n = {.pattern = rows[r].list->items[i]};
            rows[r].offer_all(model, &n);
            if (!n.is_found) {
                return cli_fail_misuse(command, "%s: no %s of the model matches \"%s\"; it has %s",
                                       rows[r].option, rows[r].what, n.pattern,
                                       n.used > 0 ? n.text : "none with a name");
            }
        }
    }
    return CLI_DONE;
}

// ---- counts -------------------------------------------------------------------------------------

static int64_t count_steps(const cli_train_settings *s, int64_t batches) {
    return batches * (int64_t)s->epochs / (int64_t)s->accumulate;
}

int cli_train_settings_check_counts(const cli_command *command, const cli_train_settings *s,
                                    int64_t batches) {
    const int64_t steps = count_steps(s, batches);
    if ((int64_t)s->accumulate > batches) {
        return cli_fail_misuse(command,
                               "--accumulate %" PRIu64
                               " is above the %lld batches of an epoch; give fewer, or a smaller "
                               "--batch",
                               s->accumulate, (long long)batches);
    }
    if ((int64_t)s->warmup > steps) {
        return cli_fail_misuse(command,
                               "--warm-up %" PRIu64
                               " is above the %lld steps of all epochs, so that the rate never "
                               "comes to --learning-rate; give fewer, or more --epochs",
                               s->warmup, (long long)steps);
    }
    return CLI_DONE;
}

void cli_train_settings_plan(const cli_train_settings *s, int64_t batches, cli_train_plan *plan) {
    static const rondo_schedule schedules[] = {RONDO_SCHEDULE_CONSTANT, RONDO_SCHEDULE_COSINE,
                                               RONDO_SCHEDULE_LINEAR, RONDO_SCHEDULE_STEP};
    static const rondo_optimizer optimizers[] = {RONDO_OPTIMIZER_SGD, RONDO_OPTIMIZER_SGD,
                                                 RONDO_OPTIMIZER_ADAM, RONDO_OPTIMIZER_ADAMW,
                                                 RONDO_OPTIMIZER_ADAGRAD};
    const int64_t warmup = (int64_t)s->warmup;
    // Of the step schedule whatever --epochs is, so that a training may go on for longer.
    const int64_t steps = s->schedule == CLI_TRAIN_STEP_SCHEDULE
                              ? batches * (int64_t)s->step_epochs / (int64_t)s->accumulate
                              : count_steps(s, batches) - warmup;
    plan->loss = (cli_train_loss)s->loss;
    plan->result = s->result;
    plan->rank = s->rank;
    plan->step = (rondo_minimize_options){
        .struct_size = sizeof plan->step,
        .optimizer = optimizers[s->optimizer],
        .learning_rate = s->rate,
        .momentum = s->optimizer == CLI_TRAIN_MOMENTUM ? s->momentum : 0.0,
        .weight_decay = s->decay,
        .schedule = schedules[s->schedule],
        .schedule_steps = steps > 0 ? steps : 1,
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
        .shard_updates = s->shards,
    };
}

// ---- what must stay -----------------------------------------------------------------------------

typedef struct lines {
    char *text;
    size_t used;
} lines;

RONDO_PRINTF(2, 3) static void put(lines *l, const char *format, ...) {
    const size_t room = CLI_TRAIN_SETTINGS_BYTES - l->used;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(l->text + l->used, room, format, arguments);
    va_end(arguments);
    l->used += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

static void put_number(lines *l, const char *name, double value) {
    char text[40];
    (void)snprintf(text, sizeof text, "%.9g", value);
    put(l, strtod(text, NULL) == value ? "%s %.9g\n" : "%s %.17g\n", name, value);
}

static void put_count(lines *l, const char *name, uint64_t value) {
    put(l, "%s %" PRIu64 "\n", name, value);
}

static void put_choice(lines *l, const char *name, const char *const *choices, int index) {
    put(l, "%s %s\n", name, choices[index]);
}

// Names, shortened where they are long: then a hash tells them from others.
static void put_names(lines *l, const char *name, const char *const *items, size_t count) {
    enum { SHOWN = 24 };
    uint64_t hash = 0;
    size_t length = 0;
    for (size_t i = 0; i < count; ++i) {
        hash = cli_hash(hash, items[i], strlen(items[i]) + 1);
        length += strlen(items[i]) + 1;
        for (const char *c = items[i]; *c != '\0'; ++c) {
            length += (unsigned char)*c < ' ' ? SHOWN : 0;  // a newline would be another line
        }
    }
    if (length > SHOWN) {
        put(l, "%s of %zu names, hash %016" PRIx64 "\n", name, count, hash);
        return;
    }
    put(l, "%s%s", name, count == 0 ? " -" : "");
    for (size_t i = 0; i < count; ++i) {
        put(l, "%s%s", i == 0 ? " " : ",", items[i]);
    }
    put(l, "\n");
}

void cli_train_settings_describe(const cli_train_settings *s, const cli_train_facts *facts,
                                 char text[CLI_TRAIN_SETTINGS_BYTES]) {
    static const char *const losses[] = {"cross_entropy", "mse", "bce"};
    static const char *const optimizers[] = {"sgd", "momentum", "adam", "adamw", "adagrad"};
    static const char *const schedules[] = {"constant", "cosine", "linear", "step"};
    static const char *const dtypes[] = {"fp32", "fp16", "bf16"};
    const bool has_end = s->schedule != 0 && s->schedule != CLI_TRAIN_STEP_SCHEDULE;
    lines l = {.text = text};
    memset(text, 0, CLI_TRAIN_SETTINGS_BYTES);
    put_choice(&l, "--loss", losses, s->loss);
    put_choice(&l, "--optimizer", optimizers, s->optimizer);
    put_choice(&l, "--dtype", dtypes, s->dtype);
    put_number(&l, "--learning-rate", s->rate);
    put_number(&l, "--momentum", s->momentum);
    put_number(&l, "--weight-decay", s->decay);
    put_number(&l, "--clip-norm", s->clip_norm);
    put_number(&l, "--clip-value", s->clip_value);
    put_choice(&l, "--schedule", schedules, s->schedule);
    put_number(&l, "--step-factor", s->step_factor);
    put_count(&l, "--step-epochs", s->step_epochs);
    put_number(&l, "--least-rate", s->least);
    put_count(&l, "--warm-up", s->warmup);
    if (has_end) {
        put_count(&l, "--epochs (which the schedule follows)", s->epochs);
    }
    put_count(&l, "--batch", s->batch);
    put_count(&l, "--accumulate", s->accumulate);
    put_number(&l, "--validation", s->held);
    put_count(&l, "--seed", s->seed);
    put_count(&l, "--lora", s->rank);
    put_names(&l, "--train", s->train.items, s->train.count);
    put_names(&l, "--rows", s->rows.items, s->rows.count);
    put_names(&l, "--target", &facts->target, 1);
    put_names(&l, "--result", &facts->result, 1);
    put(&l, "samples in --data %lld\n", (long long)facts->samples);
    put(&l, "batches of an epoch %lld\n", (long long)facts->batches);
    put(&l, "--data with the hash %016" PRIx64 "\n", facts->data_hash);
    put(&l, "MODEL with the hash %016" PRIx64 "\n", facts->model_hash);
}

// Both "name value", of which one may not be known ("?"): Python has no file of the model.
static bool is_alike(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    size_t i = a_bytes;
    size_t k = b_bytes;
    if (a_bytes == b_bytes && memcmp(a, b, a_bytes) == 0) {
        return true;
    }
    while (i > 0 && a[i - 1] != ' ') {
        i -= 1;
    }
    while (k > 0 && b[k - 1] != ' ') {
        k -= 1;
    }
    return i > 0 && i == k && memcmp(a, b, i) == 0 &&
           ((a_bytes == i + 1 && a[i] == '?') || (b_bytes == k + 1 && b[k] == '?'));
}

int cli_train_settings_compare(const cli_command *command, const char *checkpoint,
                               const char *before, const char *now) {
    while (*before != '\0' || *now != '\0') {
        const size_t old = strcspn(before, "\n");
        const size_t new = strcspn(now, "\n");
        if (!is_alike(before, old, now, new)) {
            return cli_fail_misuse(command,
                                   "%s was made with %.*s, and this is %.*s; give what it was made "
                                   "with, or start anew without --resume",
                                   checkpoint, (int)old, before, (int)new, now);
        }
        before += old + (before[old] == '\n');
        now += new + (now[new] == '\n');
    }
    return CLI_DONE;
}
