/*
 * Makes calls on one file fail: LD_PRELOAD this, and name a control file in FAULT_CONTROL.
 *
 * The control file holds a struct control. While `kind` is not 0, calls on files whose path matches `pattern` fail as
 * it says. `hits` counts them. Built by tests/faults/__init__.py with: cc -shared -fPIC -O1 shim.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { NONE, FULL, WRITE_ERROR, SYNC_ERROR, SHORT_WRITE, SLOW_SYNC };

struct control {
    int32_t kind;
    int32_t hits;
    char pattern[248];
};

static volatile struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_CONTROL");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *at = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED) control = at;
}

/* Returns what is to go wrong with a call on a file; counts the call if it is one of two kinds. */
static int fault_of(int file, int first, int second) {
    if (!control) return NONE;
    int kind = control->kind;
    if (kind == NONE || (kind != first && kind != second && !(kind == SHORT_WRITE && first == FULL))) return NONE;
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return NONE;
    path[length] = 0;
    if (fnmatch((const char *)control->pattern, path, 0)) return NONE;
    __atomic_add_fetch(&control->hits, 1, __ATOMIC_SEQ_CST);
    return kind;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define WRITING(file, size) \
    switch (fault_of(file, FULL, WRITE_ERROR)) { \
    case FULL: errno = ENOSPC; return -1; \
    case WRITE_ERROR: errno = EIO; return -1; \
    case SHORT_WRITE: if (size > 1) size = size / 2; break; \
    default: break; \
    }

#define SYNCING(file) \
    switch (fault_of(file, SYNC_ERROR, SLOW_SYNC)) { \
    case SYNC_ERROR: errno = EIO; return -1; \
    case SLOW_SYNC: usleep(700000); break; \
    default: break; \
    }

ssize_t write(int file, const void *data, size_t size) {
    REAL(write);
    WRITING(file, size)
    return real(file, data, size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    WRITING(file, size)
    return real(file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    WRITING(file, size)
    return real(file, data, size, at);
}

int fsync(int file) {
    REAL(fsync);
    SYNCING(file)
    return real(file);
}

int fdatasync(int file) {
    REAL(fdatasync);
    SYNCING(file)
    return real(file);
}
