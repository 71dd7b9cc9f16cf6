/* Preloaded into the supervisor and its job agents: their time of day is off by the seconds in the file KILLS_CLOCK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("KILLS_CLOCK");
    int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    void *found = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
    if (found != MAP_FAILED)
        offset = found;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME && offset)
        now->tv_sec += *offset;
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *also) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (also)
        *also = precise.tv_sec;
    return precise.tv_sec;
}
