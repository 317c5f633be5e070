// backend/cuda/compile/compile_ahead.c — see compile_ahead.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/compile/compile_ahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/cuda/compile/kernel_cache.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/thread_count.h"

enum { THREADS_MAX = 64 };

typedef enum job_state { JOB_WAITS, JOB_RUNS, JOB_HAS_IMAGE, JOB_HAS_NONE } job_state;

typedef struct job {
    struct job *next;
    rondo__compile_want want;  // its texts lie behind the job
    job_state state;
    rondo__cuda_image image;
} job;

struct rondo__compile_ahead {
    pthread_mutex_t lock;
    pthread_cond_t has_changed;  // a job is done, or a thread has ended
    job *first;
    job *last;
    job *waiting;  // the first that no thread has begun; those behind it have none either
    int32_t thread_count;
    bool is_ending;
};

static atomic_int_least32_t thread_limit = -1;

void rondo__compile_ahead_set_threads(int32_t count) {
    atomic_store(&thread_limit, count);
}

static int32_t get_thread_limit(void) {
    const int32_t limit = atomic_load(&thread_limit);
    if (limit >= 0) {
        return limit;
    }
    const int32_t processors = rondo__cuda_is_substituted() ? 0 : rondo__host_get_processor_count();
    return processors < THREADS_MAX ? processors : THREADS_MAX;
}

// ---- jobs -------------------------------------------------------------------------------------

// A job with copies of all texts.
static job *make_job(const rondo__compile_want *want) {
    size_t bytes = sizeof(job) + want->option_count * sizeof(char *);
    const size_t source_bytes = strlen(want->source) + 1;
    const size_t name_bytes = strlen(want->kernel_name) + 1;
    const size_t device_bytes = strlen(want->device) + 1;
    for (size_t i = 0; i < want->option_count; ++i) {
        bytes += strlen(want->options[i]) + 1;
    }
    job *made = rondo__calloc(1, bytes + source_bytes + name_bytes + device_bytes);
    if (made == NULL) {
        return NULL;
    }
    made->want = *want;
    const char **options = (const char **)(made + 1);
    char *text = (char *)(options + want->option_count);
    for (size_t i = 0; i < want->option_count; ++i) {
        const size_t length = strlen(want->options[i]) + 1;
        options[i] = memcpy(text, want->options[i], length);
        text += length;
    }
    made->want.options = options;
    made->want.source = memcpy(text, want->source, source_bytes);
    made->want.kernel_name = memcpy(text + source_bytes, want->kernel_name, name_bytes);
    made->want.device = memcpy(text + source_bytes + name_bytes, want->device, device_bytes);
    return made;
}

static void destroy_job(job *old) {
    rondo__cuda_image_deinit(&old->image);
    rondo__free(old);
}

static job *find_job(const rondo__compile_ahead *ahead, rondo__hash128 key) {
    job *at = ahead->first;
    while (at != NULL && (at->want.key.low != key.low || at->want.key.high != key.high)) {
        at = at->next;
    }
    return at;
}

static void unlink_job(rondo__compile_ahead *ahead, job *old) {
    job **link = &ahead->first;
    job *before = NULL;
    while (*link != old) {
        before = *link;
        link = &before->next;
    }
    *link = old->next;
    ahead->last = ahead->last == old ? before : ahead->last;
    ahead->waiting = ahead->waiting == old ? old->next : ahead->waiting;
}

// Makes the image, from the disk cache where it is there.
static bool run_job(job *at) {
    const rondo__compile_want *want = &at->want;
    if (rondo__kernel_cache_load(want->key, &at->image)) {
        return true;
    }
    const uint64_t start_ns = rondo__clock_now_ns();
    if (rondo__cuda_compile(want->source, want->options, want->option_count, want->arch,
                            &at->image) != RONDO_STATUS_OK) {
        return false;
    }
    RONDO_LOG_INFO_F("%s: compiled the text of %s ahead, in %.0f ms", want->device,
                     want->kernel_name, (double)(rondo__clock_now_ns() - start_ns) * 1e-6);
    rondo__kernel_cache_store(want->key, &at->image);
    return true;
}

// A thread compiles as long as something waits, and ends.
static void *compile_waiting(void *data) {
    rondo__compile_ahead *ahead = data;
    pthread_mutex_lock(&ahead->lock);
    while (ahead->waiting != NULL && !ahead->is_ending) {
        job *at = ahead->waiting;
        ahead->waiting = at->next;
        at->state = JOB_RUNS;
        pthread_mutex_unlock(&ahead->lock);
        const bool is_made = run_job(at);
        pthread_mutex_lock(&ahead->lock);
        at->state = is_made ? JOB_HAS_IMAGE : JOB_HAS_NONE;
        pthread_cond_broadcast(&ahead->has_changed);
    }
    ahead->thread_count -= 1;
    pthread_cond_broadcast(&ahead->has_changed);
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

// ---- calls ------------------------------------------------------------------------------------

rondo_status rondo__compile_ahead_create(rondo__compile_ahead **out_ahead) {
    *out_ahead = rondo__calloc(1, sizeof **out_ahead);
    if (*out_ahead == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    (void)pthread_mutex_init(&(*out_ahead)->lock, NULL);
    (void)pthread_cond_init(&(*out_ahead)->has_changed, NULL);
    return RONDO_STATUS_OK;
}

void rondo__compile_ahead_destroy(rondo__compile_ahead *ahead) {
    if (ahead == NULL) {
        return;
    }
    pthread_mutex_lock(&ahead->lock);
    ahead->is_ending = true;
    while (ahead->thread_count > 0) {
        (void)pthread_cond_wait(&ahead->has_changed, &ahead->lock);
    }
    pthread_mutex_unlock(&ahead->lock);
    while (ahead->first != NULL) {
        job *old = ahead->first;
        ahead->first = old->next;
        destroy_job(old);
    }
    (void)pthread_cond_destroy(&ahead->has_changed);
    (void)pthread_mutex_destroy(&ahead->lock);
    rondo__free(ahead);
}

void rondo__compile_ahead_want(rondo__compile_ahead *ahead, const rondo__compile_want *want) {
    const int32_t limit = get_thread_limit();
    if (limit == 0) {
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    job *made = make_job(want);
    pthread_mutex_lock(&ahead->lock);
    if (made == NULL || find_job(ahead, want->key) != NULL) {
        pthread_mutex_unlock(&ahead->lock);
        rondo__free(made);
        rondo__error_restore(&saved);
        return;
    }
    if (ahead->last != NULL) {
        ahead->last->next = made;
    } else {
        ahead->first = made;
    }
    ahead->last = made;
    ahead->waiting = ahead->waiting != NULL ? ahead->waiting : made;
    pthread_t thread;
    if (ahead->thread_count < limit &&
        rondo__thread_start("rondo-compile", compile_waiting, ahead, &thread) == RONDO_STATUS_OK) {
        (void)pthread_detach(thread);
        ahead->thread_count += 1;
    }
    pthread_mutex_unlock(&ahead->lock);
    rondo__error_restore(&saved);
}

bool rondo__compile_ahead_take(rondo__compile_ahead *ahead, rondo__hash128 key,
                               rondo__cuda_image *out_image) {
    bool has_image = false;
    pthread_mutex_lock(&ahead->lock);
    job *at = find_job(ahead, key);
    while (at != NULL && at->state == JOB_RUNS) {
        (void)pthread_cond_wait(&ahead->has_changed, &ahead->lock);
        at = find_job(ahead, key);  // another thread may have taken it meanwhile
    }
    if (at != NULL) {
        unlink_job(ahead, at);
        has_image = at->state == JOB_HAS_IMAGE;
        if (has_image) {
            *out_image = at->image;
            at->image = (rondo__cuda_image){0};
        }
    }
    pthread_mutex_unlock(&ahead->lock);
    if (at != NULL) {
        destroy_job(at);
    }
    return has_image;
}
