// rondo decode — a language model continues texts, given and printed as ids.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "decoder.h"
#include "interrupt.h"
#include "model_path.h"
#include "progress.h"
#include "sampler.h"
#include "session.h"

typedef struct decode_settings {
    const char *device;
    cli_list prompts;
    uint64_t count;
    cli_list stops;
    bool is_sampled;
    double temperature;
    uint64_t top_k;
    double top_p;
    uint64_t seed;
    uint64_t head_size;
    int graphs;  // a rondo_graphs_mode
    uint64_t thread_count;
    uint64_t memory_limit;
    bool is_quiet;
    bool is_verbose;
} decode_settings;

// The texts: prompts, and what was made of each.
typedef struct texts {
    size_t count;
    cli_ids prompts[CLI_LIST_MAX];
    cli_ids made[CLI_LIST_MAX];
    bool is_done[CLI_LIST_MAX];
    int64_t next[CLI_LIST_MAX];
} texts;

static void free_texts(texts *t) {
    for (size_t i = 0; i < t->count; ++i) {
        free(t->prompts[i].list);
        free(t->made[i].list);
    }
}

// "3,14,15" as ids.
static bool read_ids(const char *text, cli_ids *out_ids) {
    size_t count = 1;
    for (const char *c = text; *c != '\0'; ++c) {
        count += *c == ',' ? 1 : 0;
    }
    *out_ids = (cli_ids){0, calloc(count, sizeof *out_ids->list)};
    if (out_ids->list == NULL) {
        return false;
    }
    for (const char *c = text;; ++c) {
        char *end = NULL;
        errno = 0;
        const long long id = *c >= '0' && *c <= '9' ? strtoll(c, &end, 10) : -1;
        if (id < 0 || id > INT32_MAX || errno != 0 || (*end != ',' && *end != '\0')) {
            return false;
        }
        out_ids->list[out_ids->count++] = id;
        c = end;
        if (*c == '\0') {
            return true;
        }
    }
}

static bool read_prompts(const cli_command *command, const decode_settings *settings, texts *t) {
    for (size_t i = 0; i < settings->prompts.count; ++i) {
        t->count = i + 1;
        if (!read_ids(settings->prompts.items[i], &t->prompts[i])) {
            cli_fail_misuse(command, "option --prompt takes ids, as 3,14,15, not \"%s\"",
                            settings->prompts.items[i]);
            return false;
        }
        t->made[i].list = calloc(settings->count + 1, sizeof *t->made[i].list);
        if (t->made[i].list == NULL) {
            cli_fail_misuse(command, "option --count: there is no memory for so many tokens");
            return false;
        }
    }
    return true;
}

static bool check_settings(const cli_command *command, const decode_settings *settings) {
    const char *wrong = settings->prompts.count == 0 ? "there is no --prompt"
                        : settings->count < 1 || settings->count > INT32_MAX
                            ? "option --count is a number from 1 on"
                        : !(settings->temperature > 0.0) ? "option --temperature is above 0"
                        : !(settings->top_p > 0.0 && settings->top_p <= 1.0)
                            ? "option --top-p is above 0 and at most 1"
                        : !settings->is_sampled && (settings->top_k > 0 || settings->top_p < 1.0 ||
                                                    settings->temperature != 1.0)
                            ? "--temperature, --top-k and --top-p need --sample"
                            : NULL;
    if (wrong != NULL) {
        cli_fail_misuse(command, "%s", wrong);
    }
    return wrong == NULL;
}

// Ids that end a text: what --stop says, or else the model's files.
static bool read_stops(const cli_command *command, const decode_settings *settings,
                       cli_decoder_ports *ports) {
    if (settings->stops.count > CLI_STOP_MAX) {
        cli_fail_misuse(command, "option --stop may be given %d times", CLI_STOP_MAX);
        return false;
    }
    for (size_t i = 0; i < settings->stops.count; ++i) {
        cli_ids ids = {0, NULL};
        const bool is_good = read_ids(settings->stops.items[i], &ids) && ids.count == 1;
        ports->stops[i] = is_good ? ids.list[0] : -1;
        ports->stop_count = i + 1;
        free(ids.list);
        if (!is_good) {
            cli_fail_misuse(command, "option --stop takes an id, not \"%s\"",
                            settings->stops.items[i]);
            return false;
        }
    }
    return true;
}

static bool is_stop(const cli_decoder_ports *ports, int64_t id) {
    for (size_t i = 0; i < ports->stop_count; ++i) {
        if (ports->stops[i] == id) {
            return true;
        }
    }
    return false;
}

// Takes the next token of each text. Ended texts go on in the batch, unseen. False: a logit is no
// number.
static bool take_tokens(const cli_decoder *decoder, const cli_sampler *sampler, uint64_t step,
                        texts *t, bool *out_all_done) {
    *out_all_done = true;
    for (size_t i = 0; i < t->count; ++i) {
        const float *logits = decoder->logits + i * decoder->logit_count;
        t->next[i] = cli_sampler_choose(sampler, logits, decoder->logit_count, i, step);
        if (t->next[i] < 0) {
            cli_print_error("%s: a logit of text %zu is no number at step %" PRIu64, decoder->path,
                            i, step);
            return false;
        }
        t->is_done[i] = t->is_done[i] || is_stop(&decoder->ports, t->next[i]);
        if (!t->is_done[i]) {
            t->made[i].list[t->made[i].count++] = t->next[i];
        }
        *out_all_done = *out_all_done && t->is_done[i];
    }
    return true;
}

static void print_texts(const texts *t) {
    for (size_t i = 0; i < t->count; ++i) {
        const size_t bytes = t->made[i].count * 21 + 1;
        char *line = malloc(bytes);
        size_t length = 0;
        for (size_t k = 0; k < t->made[i].count && line != NULL; ++k) {
            length += (size_t)snprintf(line + length, bytes - length, "%s%" PRId64,
                                       k > 0 ? "," : "", t->made[i].list[k]);
        }
        cli_say(CLI_RESULT, "%.*s", (int)length, line != NULL ? line : "");
        free(line);
    }
}

// When what was over, in seconds. Later steps have the first one's plan, and mostly its graph.
typedef struct times {
    double begin, prompt, first, end;
} times;

static void say_times(const cli_decoder *decoder, uint64_t steps, const times *when) {
    rondo_executor_stats stats = {.struct_size = sizeof stats}, kept = stats;
    char bytes[32];
    const bool is_window = decoder->form == CLI_CACHES_WINDOW;
    const rondo_executor *keeper = is_window ? decoder->window.executor : decoder->executor;
    if (rondo_executor_get_stats(decoder->executor, &stats) != RONDO_STATUS_OK ||
        rondo_executor_get_stats(keeper, &kept) != RONDO_STATUS_OK) {
        return;
    }
    cli_say(CLI_DETAIL, "%s caches of %s, %zu in all",
            cli_format_bytes(kept.state_bytes, bytes, sizeof bytes),
            decoder->ports.is_shared ? "one length, written in place"
            : is_window              ? "one length beside the model, which joins them with a row"
                                     : "growing length",
            decoder->ports.cache_count);
    cli_say(CLI_DETAIL,
            "prompt in %.2f ms, first step in %.2f ms, %" PRIu64 " more in %.3f ms each; %" PRIu64
            " plans, %" PRIu64 " runs replayed",
            1e3 * (when->prompt - when->begin), 1e3 * (when->first - when->prompt),
            steps > 0 ? steps - 1 : 0,
            steps > 1 ? 1e3 * (when->end - when->first) / (double)(steps - 1) : 0.0,
            stats.plan_miss_count, stats.replay_run_count);
}

static bool decode(cli_decoder *decoder, const cli_sampler *settings, uint64_t count, texts *t) {
    size_t longest = 0;
    cli_sampler sampler = *settings;
    for (size_t i = 0; i < t->count; ++i) {
        longest = t->prompts[i].count > longest ? t->prompts[i].count : longest;
    }
    if (decoder->ports.context > 0 && longest + count > (uint64_t)decoder->ports.context) {
        cli_print_error("%s: %zu tokens and %" PRIu64 " more are beyond the model's %" PRId64,
                        decoder->path, longest, count, decoder->ports.context);
        return false;
    }
    times when = {.begin = cli_get_seconds()};
    bool is_good = cli_decoder_begin(decoder, t->prompts, t->count, longest + (size_t)count) &&
                   cli_sampler_init(&sampler, decoder->logit_count);
    when.prompt = when.first = cli_get_seconds();
    uint64_t step = 0;
    for (bool is_done = false; is_good; ++step) {
        is_good = take_tokens(decoder, &sampler, step, t, &is_done);
        if (!is_good || is_done || step + 1 == count) {
            break;
        }
        is_good = !cli_interrupt_came() && cli_decoder_step(decoder, t->next);
        when.first = step == 0 ? cli_get_seconds() : when.first;
    }
    cli_sampler_free(&sampler);
    if (is_good || step > 0) {  // Ctrl-C and a step that failed keep what there is
        print_texts(t);
    }
    if (is_good) {
        when.end = cli_get_seconds();
        say_times(decoder, step, &when);
    }
    return is_good;
}

static int decode_model(const cli_command *command, const char *operand,
                        const decode_settings *settings, texts *t) {
    char path[CLI_PATH_MAX];
    cli_decoder decoder = {0};
    const rondo_load_options load = {.struct_size = sizeof load,
                                     .memory_limit_bytes = settings->memory_limit};
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .graphs = (rondo_graphs_mode)settings->graphs,
                                            .thread_count = (uint32_t)settings->thread_count,
                                            .memory_limit_bytes = settings->memory_limit};
    const cli_sampler sampler = {.is_sampled = settings->is_sampled,
                                 .temperature = settings->temperature,
                                 .top_k = settings->top_k,
                                 .top_p = settings->top_p,
                                 .seed = settings->seed};
    if (!cli_decoder_find_model(operand, path, sizeof path)) {
        return CLI_FAILED;
    }
    int status = CLI_FAILED;
    if (cli_decoder_open(path, settings->device, &load, &options, (int64_t)settings->head_size,
                         &decoder)) {
        if (!read_stops(command, settings, &decoder.ports)) {
            status = CLI_MISUSE;
        } else {
            cli_interrupt_catch(decoder.executor);
            const bool is_good = decode(&decoder, &sampler, settings->count, t);
            cli_interrupt_release();
            status = is_good ? CLI_DONE : cli_interrupt_came() ? CLI_INTERRUPTED : CLI_FAILED;
        }
    }
    cli_decoder_close(&decoder);
    return status;
}

static int run_decode(const cli_command *command, int argc, char **argv) {
    decode_settings settings = {
        .device = "auto", .count = 32, .temperature = 1.0, .top_p = 1.0, .graphs = 0};
    texts t = {0};
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    cli_set_level(settings.is_verbose ? CLI_DETAIL : settings.is_quiet ? CLI_RESULT : CLI_NORMAL);
    int status = CLI_MISUSE;
    if (check_settings(command, &settings) && cli_choose_threads(command, settings.thread_count) &&
        read_prompts(command, &settings, &t)) {
        status = decode_model(command, argv[0], &settings, &t);
    }
    free_texts(&t);
    return status;
}

// clang-format off
static const cli_option decode_options[] = {
    {"--prompt", "IDS", CLI_LIST, offsetof(decode_settings, prompts), NULL,
     "the ids of a text, as 3,14,15; more of them are continued\ntogether, and need not be "
     "equally long"},
    {"--count", "N", CLI_COUNT, offsetof(decode_settings, count), NULL,
     "tokens to make, at most (32)"},
    {"--stop", "ID", CLI_LIST, offsetof(decode_settings, stops), NULL,
     "the id that ends a text (default: what genai_config.json\nor config.json says); may be "
     "repeated"},
    {"--sample", NULL, CLI_SWITCH, offsetof(decode_settings, is_sampled), NULL,
     "draw tokens by their shares; otherwise the likeliest is taken"},
    {"--temperature", "T", CLI_NUMBER, offsetof(decode_settings, temperature), NULL,
     "what logits are divided by (1)"},
    {"--top-k", "K", CLI_COUNT, offsetof(decode_settings, top_k), NULL,
     "draw among the K likeliest tokens (0: all)"},
    {"--top-p", "P", CLI_NUMBER, offsetof(decode_settings, top_p), NULL,
     "draw among the likeliest tokens that have the share P\ntogether (1: all)"},
    {"--seed", "N", CLI_COUNT, offsetof(decode_settings, seed), NULL,
     "seed of the draws (0)"},
    {"--head-size", "N", CLI_COUNT, offsetof(decode_settings, head_size), NULL,
     "the width of a head, where neither the model nor\ngenai_config.json says it"},
    {"--device", "NAME", CLI_TEXT, offsetof(decode_settings, device), NULL,
     "auto (default: the first usable GPU, otherwise the host),\nhost, or cuda:N"},
    {"--graphs", NULL, CLI_CHOICE, offsetof(decode_settings, graphs), "auto|on|off|measured",
     "auto (default) captures where it can, on makes a failed\ncapture an error, off is eager, "
     "measured ends replays that\nare slower than eager runs"},
    {"--threads", "N", CLI_COUNT, offsetof(decode_settings, thread_count), NULL,
     "threads for one op on the host, 1 to 1024\n(default: see rondo help environment)"},
    CLI_MEMORY_OPTION_ROW(decode_settings, memory_limit),
    {"--quiet", NULL, CLI_SWITCH, offsetof(decode_settings, is_quiet), NULL, "the ids alone"},
    {"--verbose", NULL, CLI_SWITCH, offsetof(decode_settings, is_verbose), NULL,
     "also say what the caches and the steps take"},
};
// clang-format on

const cli_command cli_command_decode = {
    .name = "decode",
    .operands = "MODEL",
    .summary = "continue texts with a language model, ids in and ids out",
    .details =
        "MODEL is what the builders of onnxruntime-genai or optimum write: a folder or its "
        "model.onnx, with\n"
        "input_ids, attention_mask, position_ids where there are some, past_key_values.N.key and "
        ".value,\n"
        "and logits. Caches stay in the executor's memory. Prints one line for each prompt: the "
        "ids that\n"
        "follow it, up to the one that ends the text.",
    .operand_min = 1,
    .operand_max = 1,
    .options = decode_options,
    .option_count = sizeof decode_options / sizeof decode_options[0],
    .run = run_decode,
};
