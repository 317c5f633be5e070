// rondo/export.h — how public symbols are marked.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXPORT_H
#define RONDO_EXPORT_H

// RONDO_MUST_USE stands on every call that may fail, but for those that end, reset or give back
// something, which ways out of a function call when they have failed already. Where a failure does
// not matter, GCC is content with `(void)!call(...)`.
#if defined(__GNUC__) || defined(__clang__)
#define RONDO_API __attribute__((visibility("default")))
#define RONDO_MUST_USE __attribute__((warn_unused_result))
#define RONDO_PRINTF(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define RONDO_API
#define RONDO_MUST_USE
#define RONDO_PRINTF(format_index, first_argument)
#endif

#ifdef __cplusplus
#define RONDO_EXTERN_C_BEGIN extern "C" {
#define RONDO_EXTERN_C_END }
#else
#define RONDO_EXTERN_C_BEGIN
#define RONDO_EXTERN_C_END
#endif

#endif  // RONDO_EXPORT_H
