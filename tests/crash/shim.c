/* Loaded before a process's libraries: its k-th operation on a file under a folder is cut short and
 * the process dies by SIGKILL, or the operation fails with an error.
 *
 * A cut of 0 or more leaves that many bytes of a write; one below 0 leaves an arbitrary half of its
 * pages, as a power cut does, with the number as the seed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static long kill_at, cut, fail_at, fail_with;
static volatile long count;

void crash_arm(const char *where, long at, long bytes)
{
    snprintf(folder, sizeof folder, "%s", where);
    kill_at = at, cut = bytes, fail_at = 0, count = 0;
}

void crash_fail(const char *where, long at, long with)
{
    snprintf(folder, sizeof folder, "%s", where);
    kill_at = 0, fail_at = at, fail_with = with, count = 0;
}

long crash_count(void) { return count; }

static int is_ours(const char *path) { return folder[0] && path && !strncmp(path, folder, strlen(folder)); }

static int is_our_file(int descriptor)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = folder[0] ? readlink(link, path, sizeof path - 1) : -1;
    if (length < 0) return 0;
    path[length] = 0;
    return is_ours(path);
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

enum { GO, KILL, FAIL };

static int next(int ours)
{
    if (!ours) return GO;
    long now = __sync_add_and_fetch(&count, 1);
    if (now == kill_at) return KILL;
    if (now != fail_at) return GO;
    errno = (int)fail_with;
    return FAIL;
}

#define REAL(result, name, ...) static result (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    int what = next(is_our_file(fd));
    if (what == FAIL) return -1;
    if (what == GO) return real(fd, data, size, at);
    unsigned chance = (unsigned)(-cut) * 2654435761u;
    if (cut >= 0) real(fd, data, size < (size_t)cut ? size : (size_t)cut, at);
    else for (size_t page = 0; page < size; page += 4096) {
        chance = chance * 1664525u + 1013904223u;
        if (chance >> 31) real(fd, (const char *)data + page, size - page < 4096 ? size - page : 4096, at + page);
    }
    die();
    return -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    int what = next(is_our_file(fd));
    if (what == FAIL) return -1;
    if (what == GO) return real(fd, data, size);
    size_t kept = cut < 0 ? size / 2 : (size_t)cut;
    real(fd, data, size < kept ? size / 2 : kept);
    die();
    return -1;
}

#define PLAIN(name, parameters, types, arguments, ours) \
    int name parameters \
    { \
        REAL(int, #name, types); \
        int what = next(ours); \
        if (what == FAIL) return -1; \
        if (what == KILL) die(); \
        return real arguments; \
    }

PLAIN(fsync, (int fd), int, (fd), is_our_file(fd))
PLAIN(fdatasync, (int fd), int, (fd), is_our_file(fd))
PLAIN(unlink, (const char *path), const char *, (path), is_ours(path))
#define FD_SIZE int, off_t
PLAIN(ftruncate, (int fd, off_t size), FD_SIZE, (fd, size), is_our_file(fd))
PLAIN(ftruncate64, (int fd, off64_t size), FD_SIZE, (fd, size), is_our_file(fd))
#define TWO_PATHS const char *, const char *
PLAIN(rename, (const char *from, const char *to), TWO_PATHS, (from, to), is_ours(to))
PLAIN(link, (const char *from, const char *to), TWO_PATHS, (from, to), is_ours(to))
