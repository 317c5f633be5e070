// native/rondo_torch.c — memory of PyTorch from pools, for torch.cuda.CUDAPluggableAllocator.
//
// PyTorch's caching allocator asks for segments by two plain functions, with its own lock held, so
// these must not wait for the interpreter: they are C. While a stream is attached, a segment for it
// comes from its pool; on a stream that records that is memory of the graph. Segments for streams
// that are not attached (forked ones) are taken for an attached stream of the same GPU: PyTorch
// gives a segment back only when its pool goes, so no order between the two is needed.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdlib.h>
#include <sys/types.h>

#include <rondo/rondo.h>

// A stream that is attached, and where its segments come from.
typedef struct attached {
    struct attached *next;
    void *native;
    int device;
    rondo_stream *stream;  // borrowed until it is detached
    rondo_pool *pool;      // retained
} attached;

// A segment that PyTorch has.
typedef struct segment {
    struct segment *next;
    void *address;
    rondo_pool *pool;  // retained
} segment;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static attached *streams;     // guarded by lock
static segment *segments;     // guarded by lock
static size_t segment_count;  // guarded by lock

// Makes segments for the stream `native` of GPU `device` come from `pool`.
//
// Errors:    NO_MEMORY.
// Threads:   safe.
RONDO_API rondo_status rondo_torch_attach(void *native, int device, rondo_stream *stream,
                                          rondo_pool *pool);
rondo_status rondo_torch_attach(void *native, int device, rondo_stream *stream, rondo_pool *pool) {
    attached *entry = malloc(sizeof *entry);
    if (entry == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_pool_retain(pool);
    *entry = (attached){.native = native, .device = device, .stream = stream, .pool = pool};
    pthread_mutex_lock(&lock);
    entry->next = streams;
    streams = entry;
    pthread_mutex_unlock(&lock);
    return RONDO_STATUS_OK;
}

// Takes back the latest rondo_torch_attach of the stream. Segments stay PyTorch's.
//
// Threads:   safe.
RONDO_API void rondo_torch_detach(rondo_stream *stream);
void rondo_torch_detach(rondo_stream *stream) {
    pthread_mutex_lock(&lock);
    attached **link = &streams;
    while (*link != NULL && (*link)->stream != stream) {
        link = &(*link)->next;
    }
    attached *entry = *link;
    if (entry != NULL) {
        *link = entry->next;
    }
    pthread_mutex_unlock(&lock);
    if (entry != NULL) {
        rondo_pool_release(entry->pool);
        free(entry);
    }
}

static const attached *find_stream(const void *native, int device) {
    const attached *other = NULL;
    for (const attached *entry = streams; entry != NULL; entry = entry->next) {
        if (entry->device == device && entry->native == native) {
            return entry;
        }
        other = other == NULL && entry->device == device ? entry : other;
    }
    return other;
}

// What PyTorch calls for a segment; NULL: there is no memory, or no stream of the GPU is attached.
RONDO_API void *rondo_torch_allocate(ssize_t bytes, int device, void *native);
void *rondo_torch_allocate(ssize_t bytes, int device, void *native) {
    segment *made = malloc(sizeof *made);
    if (made == NULL || bytes < 0) {
        free(made);
        return NULL;
    }
    *made = (segment){0};
    pthread_mutex_lock(&lock);
    const attached *entry = find_stream(native, device);
    if (entry != NULL &&
        rondo_pool_allocate(entry->pool, entry->stream, (size_t)bytes, &made->address) ==
            RONDO_STATUS_OK &&
        made->address != NULL) {
        rondo_pool_retain(entry->pool);
        made->pool = entry->pool;
        made->next = segments;
        segments = made;
        segment_count++;
    } else {
        free(made);
        made = NULL;
    }
    void *address = made != NULL ? made->address : NULL;
    pthread_mutex_unlock(&lock);
    return address;
}

// What PyTorch calls when it gives a segment up.
RONDO_API void rondo_torch_free(void *address, ssize_t bytes, int device, void *native);
void rondo_torch_free(void *address, ssize_t bytes, int device, void *native) {
    (void)bytes, (void)device, (void)native;
    pthread_mutex_lock(&lock);
    segment **link = &segments;
    while (*link != NULL && (*link)->address != address) {
        link = &(*link)->next;
    }
    segment *found = *link;
    if (found != NULL) {
        *link = found->next;
        segment_count--;
    }
    pthread_mutex_unlock(&lock);
    if (found != NULL) {
        (void)rondo_pool_free(found->pool, found->address);
        rondo_pool_release(found->pool);
        free(found);
    }
}

// Segments that PyTorch has now.
RONDO_API size_t rondo_torch_get_segment_count(void);
size_t rondo_torch_get_segment_count(void) {
    pthread_mutex_lock(&lock);
    size_t count = segment_count;
    pthread_mutex_unlock(&lock);
    return count;
}
