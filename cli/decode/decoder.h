// decoder.h — a language model that continues texts, with its caches in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache_window.h"
#include "decoder_ports.h"
#include "rondo/models.h"

// The ids of a text.
typedef struct cli_ids {
    size_t count;
    int64_t *list;
} cli_ids;

// How the caches are kept.
typedef enum cli_caches {
    CLI_CACHES_SHARED,   // of one length, as the model wants them: states
    CLI_CACHES_NEW,      // growing, behind the prompt: `grown`
    CLI_CACHES_WINDOW,   // growing, in a window
    CLI_CACHES_GROWING,  // growing: states
} cli_caches;

typedef struct cli_decoder {
    const char *path;  // of the model, for messages; borrowed
    cli_decoder_ports ports;
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    size_t batch;
    size_t capacity;     // tokens that a text may have
    size_t logit_count;  // of one token; known after the first run
    size_t *lengths;     // of each text
    size_t columns;      // of the mask so far, but for the rest of caches of one length
    cli_caches form;
    cli_window window;
    rondo_binding *grown;  // caches in host memory
    int64_t *prompt_mask;  // [batch, columns of the prompt]
    size_t prompt_columns;
    int64_t *ids;  // [batch, rows], as the ones below
    int64_t *places;
    int64_t *mask;  // [batch, columns]
    float *logits;  // of the last token of each text
} cli_decoder;

// Loads the model and makes its executor. On failure prints why. `path` must outlive the decoder.
//
// Ownership: close with cli_decoder_close, also after a failure.
bool cli_decoder_open(const char *path, const char *device, const rondo_load_options *load,
                      const rondo_executor_options *options, int64_t head_size,
                      cli_decoder *decoder);

// Reads the prompts; each text may have `capacity` tokens. Leaves logits. On failure prints why.
bool cli_decoder_begin(cli_decoder *decoder, const cli_ids *prompts, size_t count, size_t capacity);

// Adds a token to each text. Leaves logits. On failure prints why.
bool cli_decoder_step(cli_decoder *decoder, const int64_t *tokens);

void cli_decoder_close(cli_decoder *decoder);
