#include "onnx/missing.h"

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

rondo_status rondo__missing_add(rondo__missing *missing, const char *domain, const char *op,
                                int64_t version) {
    RETURN_IF_ERROR(rondo__array_reserve((void **)&missing->entries, &missing->capacity,
                                         missing->count + 1, sizeof(*missing->entries)));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    char *detail = copy_detail();
    if (detail == NULL) {
        goto done;
    }
    char *key = rondo__strformat("%s:%s:%lld:%s", domain, op, (long long)version, detail);
    if (key == NULL) {
        goto free_detail;
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
        .detail = detail,
        .key = key,
        .count = 1,
    };
    return RONDO_STATUS_OK;

free_key:
    rondo__free(key);
free_detail:
    rondo__free(detail);
done:
    return status;
}

void rondo__missing_deinit(rondo__missing *missing) {
    for (size_t i = 0; i < missing->count; ++i) {
        rondo__free(missing->entries[i].detail);
        rondo__free(missing->entries[i].key);
    }
    rondo__free(missing->entries);
    rondo__namemap_deinit(&missing->index);
    *missing = (rondo__missing){0};
}
