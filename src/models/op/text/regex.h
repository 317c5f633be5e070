// op/text/regex.h — regular expressions in the syntax of RE2, which ONNX names, by RE2 itself.
//
// A match takes time in proportion to the text, and an expression's memory is limited, whatever a
// file asks for. The engine is C++; nothing it throws leaves regex_re2.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

struct rondo__op;
typedef struct rondo__regex rondo__regex;

// Compiles the pattern of an op.
//
// Errors:    BAD_DATA (no regular expression), UNSUPPORTED (larger than the limit), NO_MEMORY.
// Ownership: free with rondo__regex_destroy.
// Threads:   safe, and so is a regex.
RONDO_MUST_USE rondo_status rondo__regex_create(const struct rondo__op *op, const char *pattern,
                                                rondo__regex **out_regex);

enum { RONDO__REGEX_PROBLEM_BYTES = 160 };

// What rondo__regex_create calls; out_problem gets the engine's words, as many as fit.
RONDO_MUST_USE rondo_status rondo__regex_compile(const char *pattern, rondo__regex **out_regex,
                                                 char out_problem[RONDO__REGEX_PROBLEM_BYTES]);
void rondo__regex_destroy(rondo__regex *regex);  // NULL is fine

// Looks for the first match from byte `from` on, and takes the longest of those that begin there. A
// byte that is no UTF-8 is in no match, unless of \C.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__regex_find(const rondo__regex *regex, const rondo_string *string,
                                              size_t from, bool *out_is_found, size_t *out_begin,
                                              size_t *out_end);
// Whether all of `string` matches.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__regex_matches(const rondo__regex *regex,
                                                 const rondo_string *string, bool *out_matches);

RONDO_EXTERN_C_END
