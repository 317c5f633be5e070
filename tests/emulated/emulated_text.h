// emulated/emulated_text.h — a CUDA text as the host's C++ compiler takes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

typedef struct emulated_buffer {
    char *bytes;  // a zero follows
    size_t count;
} emulated_buffer;

void emulated_append(emulated_buffer *to, const void *bytes, size_t count);
void emulated_append_text(emulated_buffer *to, const char *text);

// Appends the prelude's name, what the options define (so that it changes nothing in the prelude),
// the text, and an entry for each kernel. In the text are rewritten:
//
//   extern __shared__ T name[];                 T *const name = (T *)emulated->shared;
//   asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));     emulated_cvt_rn_f16_f32(y, x);
//
// So each instruction is a function of the prelude, which takes results by reference; its name has
// the first word of the assembly text.
void emulated_translate(emulated_buffer *to, const char *source, const char *const *options,
                        int option_count);
