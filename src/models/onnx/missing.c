// onnx/missing.c — see missing.h.
// SPDX-License-Identifier: Apache-2.0

#include "onnx/missing.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

// What stands in the parentheses of "unsupported: op NAME version V (detail)".
static char *copy_detail(void) {
    const char *message = rondo_error_get_last()->message;
    const char *start = strstr(message, " (");
    if (start == NULL) {
        return rondo__strdup("");
    }
    size_t length = strlen(start + 2);
    if (length > 0 && start[2 + length - 1] == ')') {
        length -= 1;
    }
    return rondo__strndup(start + 2, length);
}

// What tells entries apart. Values in quotes do not: a hundred weights of int4 are one thing.
static char *make_key(const char *domain, const char *op, int64_t version, const char *detail) {
    char *key = rondo__strformat("%s:%s:%lld:%s", domain, op, (long long)version, detail);
    bool is_quoted = false;
    size_t length = 0;
    for (const char *c = key; c != NULL && *c != '\0'; ++c) {
        is_quoted = *c == '"' ? !is_quoted : is_quoted;
        if (!is_quoted) {
            key[length++] = *c;
        }
    }
    if (key != NULL) {
        key[length] = '\0';
    }
    return key;
}

rondo_status rondo__missing_add(rondo__missing *missing, const char *domain, const char *op,
                                int64_t version) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(missing->entries, missing->capacity, missing->count + 1));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    char *node = NULL;
    char *detail = copy_detail();
    if (detail == NULL) {
        goto done;
    }
    if (strcmp(detail, RONDO__MISSING_OPSET) == 0) {
        op = "";
    }
    node = rondo__strdup(rondo_error_get_last()->op);
    if (node == NULL) {
        goto free_detail;
    }
    char *key = make_key(domain, op, version, detail);
    if (key == NULL) {
        goto free_node;
    }
    bool is_new = false;
    int32_t index = rondo__namemap_find(&missing->index, key, -1);
    if (index >= 0) {
        missing->entries[index].count += 1;
        status = RONDO_STATUS_OK;
        goto free_key;
    }
    status = rondo__namemap_add(&missing->index, key, (int32_t)missing->count, &is_new);
    if (status != RONDO_STATUS_OK) {
        goto free_key;
    }
    missing->entries[missing->count++] = (rondo__missing_entry){
        .domain = domain,
        .op = op,
        .version = version,
        .node = node,
        .detail = detail,
        .key = key,
        .count = 1,
    };
    return RONDO_STATUS_OK;

free_key:
    rondo__free(key);
free_node:
    rondo__free(node);
free_detail:
    rondo__free(detail);
done:
    return status;
}

// "op com.microsoft.Foo version 1 (attribute a), 3 nodes" of one entry, or "opset 29 (...)".
static void format_entry(const rondo__missing_entry *entry, char *buffer, size_t bytes) {
    char nodes[40] = "";
    if (entry->count > 1) {
        (void)snprintf(nodes, sizeof nodes, ", %zu nodes", entry->count);
    }
    if (entry->op[0] == '\0') {
        (void)snprintf(buffer, bytes, "opset %lld (%s)%s", (long long)entry->version, entry->detail,
                       nodes);
        return;
    }
    (void)snprintf(buffer, bytes, "op %.48s%s%.64s version %lld%s%s%s%s", entry->domain,
                   entry->domain[0] != '\0' ? "." : "", entry->op, (long long)entry->version,
                   entry->detail[0] != '\0' ? " (" : "", entry->detail,
                   entry->detail[0] != '\0' ? ")" : "", nodes);
}

rondo_status rondo__missing_fail(const rondo__missing *missing) {
    char list[220];  // a record holds 240 bytes, and "unsupported: " stands in front
    size_t length = 0;
    list[0] = '\0';
    for (size_t i = 0; i < missing->count; ++i) {
        char entry[256];
        char more[40];
        const size_t left = missing->count - i;
        format_entry(&missing->entries[i], entry, sizeof entry);
        (void)snprintf(more, sizeof more, "; and %zu more", left);
        // The first is always there, cut if it must be; later ones only whole.
        const size_t room = sizeof list - length - (left > 1 ? strlen(more) : 0);
        if (i > 0 && strlen(entry) + 3 > room) {
            (void)snprintf(list + length, sizeof list - length, "%s", more);
            break;
        }
        (void)snprintf(list + length, room, "%s%s", i > 0 ? "; " : "", entry);
        length = strlen(list);
    }
    const rondo_status status = RONDO_FAIL(UNSUPPORTED, "unsupported: %s", list);
    rondo__error_set_op(missing->entries[0].node);
    return status;
}

void rondo__missing_deinit(rondo__missing *missing) {
    for (size_t i = 0; i < missing->count; ++i) {
        rondo__free(missing->entries[i].node);
        rondo__free(missing->entries[i].detail);
        rondo__free(missing->entries[i].key);
    }
    rondo__free(missing->entries);
    rondo__namemap_deinit(&missing->index);
    *missing = (rondo__missing){0};
}
