// doctor/stream/doctor_event.c — see doctor_event.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/stream/doctor_event.h"

typedef struct call_row {
    const char *name;
    rondo__doctor_kind kind;
} call_row;

static const call_row g_calls[RONDO__DOCTOR_CALL_COUNT] = {
#define RONDO__DOCTOR_CALL(name, kind) [RONDO__DOCTOR_##name] = {#name, RONDO__DOCTOR_KIND_##kind},
#include "doctor/stream/doctor_calls.h"
#undef RONDO__DOCTOR_CALL
};

const char *rondo__doctor_call_name(uint16_t call) {
    const char *name = call < RONDO__DOCTOR_CALL_COUNT ? g_calls[call].name : NULL;
    return name != NULL ? name : "";
}

rondo__doctor_kind rondo__doctor_call_kind(uint16_t call) {
    return call < RONDO__DOCTOR_CALL_COUNT ? g_calls[call].kind : RONDO__DOCTOR_KIND_NONE;
}
