// op/text/regex_re2.cpp — see regex.h. The only C++ of the library.
// SPDX-License-Identifier: Apache-2.0
#include <re2/re2.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "op/text/regex.h"

// Bytes of an expression's program and of the states met so far. Beyond it a pattern is refused;
// states are forgotten and made again.
static const int MEMORY_MAX = 8 << 20;

// Copies what stands at `at`: an escaped character, a quoted text, a class, or one byte. Returns what
// is behind it.
static const char *copy_piece(const char *at, std::string *out) {
    const char *end = at + 1;
    if (std::strncmp(at, "\\Q", 2) == 0) {
        const char *close = std::strstr(at, "\\E");
        end = close != nullptr ? close + 2 : at + std::strlen(at);
    } else if (at[0] == '\\' && at[1] != '\0') {
        end = at + 2;
    } else if (at[0] == '[') {
        end += *end == '^' ? 1 : 0;
        end += *end == ']' ? 1 : 0;
        while (*end != '\0' && *end != ']') {
            const char *close = std::strncmp(end, "[:", 2) == 0 ? std::strstr(end, ":]") : nullptr;
            end = close != nullptr ? close + 2 : end + (end[0] == '\\' && end[1] != '\0' ? 2 : 1);
        }
        end += *end == ']' ? 1 : 0;
    }
    out->append(at, end);
    return end;
}

// The pattern with each (?<name> written as (?P<name>, the one form that releases of RE2 before
// September 2023 know.
static std::string spell_out_names(const char *pattern) {
    std::string spelled;
    for (const char *at = pattern; *at != '\0';) {
        if (std::strncmp(at, "(?<", 3) == 0 && at[3] != '=' && at[3] != '!') {
            spelled.append("(?P<");
            at += 3;
        } else {
            at = copy_piece(at, &spelled);
        }
    }
    return spelled;
}

struct rondo__regex {
    re2::RE2 engine;
    rondo__regex(const std::string &pattern, const re2::RE2::Options &options)
        : engine(pattern, options) {
    }
};

static re2::StringPiece view(const rondo_string *string) {
    return re2::StringPiece(string->size > 0 ? string->data : "", string->size);
}

static rondo_status compile(const char *pattern, rondo__regex **out_regex, char *out_problem) {
    re2::RE2::Options options(re2::RE2::Quiet);  // it prints nothing
    options.set_longest_match(true);
    options.set_never_capture(true);
    options.set_max_mem(MEMORY_MAX);
    rondo__regex *regex = new rondo__regex(spell_out_names(pattern), options);
    if (regex->engine.ok()) {
        *out_regex = regex;
        return RONDO_STATUS_OK;
    }
    const re2::RE2::ErrorCode code = regex->engine.error_code();
    (void)std::snprintf(out_problem, RONDO__REGEX_PROBLEM_BYTES, "%s",
                        regex->engine.error().c_str());
    delete regex;
    return code == re2::RE2::ErrorPatternTooLarge ? RONDO_STATUS_UNSUPPORTED
                                                  : RONDO_STATUS_BAD_DATA;
}

extern "C" rondo_status rondo__regex_compile(const char *pattern, rondo__regex **out_regex,
                                             char out_problem[RONDO__REGEX_PROBLEM_BYTES]) {
    *out_regex = nullptr;
    out_problem[0] = '\0';
    try {
        return compile(pattern, out_regex, out_problem);
    } catch (...) {
        return RONDO_STATUS_NO_MEMORY;
    }
}

extern "C" void rondo__regex_destroy(rondo__regex *regex) {
    delete regex;
}

extern "C" rondo_status rondo__regex_find(const rondo__regex *regex, const rondo_string *string,
                                          size_t from, bool *out_is_found, size_t *out_begin,
                                          size_t *out_end) {
    try {
        const re2::StringPiece text = view(string);
        re2::StringPiece match;
        *out_is_found =
            regex->engine.Match(text, from, text.size(), re2::RE2::UNANCHORED, &match, 1);
        *out_begin = *out_is_found ? static_cast<size_t>(match.data() - text.data()) : 0;
        *out_end = *out_begin + match.size();
        return RONDO_STATUS_OK;
    } catch (...) {
        return RONDO_STATUS_NO_MEMORY;
    }
}

extern "C" rondo_status rondo__regex_matches(const rondo__regex *regex, const rondo_string *string,
                                             bool *out_matches) {
    try {
        const re2::StringPiece text = view(string);
        *out_matches = regex->engine.Match(text, 0, text.size(), re2::RE2::ANCHOR_BOTH, nullptr, 0);
        return RONDO_STATUS_OK;
    } catch (...) {
        return RONDO_STATUS_NO_MEMORY;
    }
}
