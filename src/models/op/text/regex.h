// op/text/regex.h — regular expressions in the syntax of RE2, as far as a full match needs them.
//
// A pattern becomes a small program whose states are followed all at once, so that a match takes
// time in proportion to text times pattern, whatever a file asks for. Nothing is captured and no
// match is preferred, so lazy and greedy repetition are the same.
//
// Known:    literals, . [a-z] [^...] [[:alpha:]] ( ) (?: ) (?P<n> ) (?<n> ) | * + ? {n,m} and their
//           lazy forms, ^ $ \A \z \b \B, \d \D \w \W \s \S (ASCII), \t \n \r \f \v \a \x41 \x{263a}
//           \101, \Q...\E, flags (?i) (?s) (?m) (?U) with scopes.
// Unknown:  \p{...} (Unicode classes) and \C, refused by name.
//
// Source:    Thompson, Regular Expression Search Algorithm, CACM 11(6), 1968; the syntax page of
//            RE2.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_OP_TEXT_REGEX_H
#define RONDO_OP_TEXT_REGEX_H

#include <stdbool.h>

#include "op/op.h"
#include "op/text/characters.h"

typedef struct rondo__regex rondo__regex;

// Compiles `pattern`.
//
// Errors:    BAD_DATA (no regular expression: what and where), UNSUPPORTED (a part that is not
//            known, or a pattern too large), NO_MEMORY.
// Ownership: free with rondo__regex_destroy.
// Threads:   safe; the regex itself is used by one thread at a time.
RONDO_MUST_USE rondo_status rondo__regex_create(const rondo__op *op, const char *pattern,
                                                rondo__regex **out_regex);
void rondo__regex_destroy(rondo__regex *regex);  // NULL is fine

// Whether all of `string` matches.
bool rondo__regex_matches(rondo__regex *regex, const rondo_string *string);
// The first match from byte `from` on, and of those that begin there the longest.
//
// Cost:      text squared times pattern at the worst: text that many places begin a match of.
bool rondo__regex_find(rondo__regex *regex, const rondo_string *string, size_t from,
                       size_t *out_begin, size_t *out_end);

#endif  // RONDO_OP_TEXT_REGEX_H
