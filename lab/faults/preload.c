/* Faults that only the C library can make, for all processes of a run: write errors under a path, and a wall clock
 * that is wrong. Loaded by LD_PRELOAD; what to do stands in a file that every process maps, see preload.py.
 * It also notes what was forced to the disk, so that a power loss can be played: see power.py.
 *
 * The monotonic clock stays as it is, as it does when somebody sets the clock of a machine. A wait until a wall clock
 * time goes by the shifted clock; libfaketime (https://github.com/wolfcw/libfaketime) is where that was learnt. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t wall_offset_secs;
    int32_t write_errno; /* 0: writes work */
    uint32_t reserved;
    uint64_t refused; /* writes that failed so */
    uint64_t shifted; /* readings of the wall clock that were shifted */
    char prefix[1024];
};

static volatile struct control *control;

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void map_control(void)
{
    const char *path = getenv("FAULTS_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) control = page;
}

static int refuse(int fd)
{
    char link[64], target[1024];
    if (!control || !control->write_errno) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return 0;
    target[length] = 0;
    if (strncmp(target, (const char *)control->prefix, strlen((const char *)control->prefix))) return 0;
    __atomic_add_fetch(&control->refused, 1, __ATOMIC_RELAXED);
    errno = control->write_errno;
    return 1;
}

ssize_t write(int fd, const void *data, size_t size) { REAL(write); return refuse(fd) ? -1 : real(fd, data, size); }

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    REAL(pwrite);
    return refuse(fd) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    REAL(pwrite64);
    return refuse(fd) ? -1 : real(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    REAL(writev);
    return refuse(fd) ? -1 : real(fd, parts, count);
}

/* What is synced, as lines: inode, time of birth in ns, size, whether the name is synced too (1 or 0), path. It is
 * looked up before the call, and written down when the call has returned. */
struct notes {
    char *text;
    size_t size;
    FILE *stream;
};

static __thread struct notes *noting;

static void note(const char *path, int named)
{
    struct statx at;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &at) || !S_ISREG(at.stx_mode))
        return;
    long long born = at.stx_btime.tv_sec * 1000000000LL + at.stx_btime.tv_nsec;
    fprintf(noting->stream, "%llu %lld %llu %d %s\n", (unsigned long long)at.stx_ino, born,
            (unsigned long long)at.stx_size, named, path);
}

static int note_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)place;
    if (kind == FTW_F) note(path, 1);
    return 0;
}

static void note_folder(const char *path)
{
    char name[2048];
    DIR *folder = opendir(path);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct statx at;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        /* Only the name: whether the data is on the disk is another question. */
        if (!statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &at) && S_ISREG(at.stx_mode))
            fprintf(noting->stream, "%llu %lld -1 1 %s\n", (unsigned long long)at.stx_ino,
                    at.stx_btime.tv_sec * 1000000000LL + at.stx_btime.tv_nsec, name);
    }
    closedir(folder);
}

static int recorded(int fd, int whole, int (*real)(int))
{
    const char *root = getenv("FAULTS_SYNCED"), *file = getenv("FAULTS_SYNCS");
    char link[64], path[1024];
    struct notes notes = {0};
    struct stat status;
    if (!root || !file) return real(fd);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return real(fd);
    path[length] = 0;
    if (strncmp(path, root, strlen(root)) || fstat(fd, &status)) return real(fd);
    notes.stream = open_memstream(&notes.text, &notes.size);
    noting = &notes;
    if (whole) nftw(root, note_entry, 16, FTW_PHYS);
    else if (S_ISDIR(status.st_mode)) note_folder(path);
    else note(path, 0);
    fclose(notes.stream);
    int result = real(fd);
    int code = errno;
    int log = result ? -1 : open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log >= 0) {
        ssize_t done = write(log, notes.text, notes.size);
        (void)done;
        close(log);
    }
    free(notes.text);
    errno = code;
    return result;
}

int fsync(int fd) { REAL(fsync); return refuse(fd) ? -1 : recorded(fd, 0, real); }
int fdatasync(int fd) { REAL(fdatasync); return refuse(fd) ? -1 : recorded(fd, 0, real); }
int syncfs(int fd) { REAL(syncfs); return refuse(fd) ? -1 : recorded(fd, 1, real); }

static int64_t shift(void)
{
    if (!control || !control->wall_offset_secs) return 0;
    __atomic_add_fetch(&control->shifted, 1, __ATOMIC_RELAXED);
    return control->wall_offset_secs;
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    REAL(clock_gettime);
    int result = real(clock, at);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *at, void *zone)
{
    REAL(gettimeofday);
    int result = real(at, zone);
    if (!result) at->tv_sec += shift();
    return result;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

/* A deadline by the monotonic clock counts from the start of the machine, which is less than thirty years ago. */
static struct timespec unshifted(const struct timespec *deadline)
{
    struct timespec real = *deadline;
    if (control && control->wall_offset_secs && real.tv_sec > 1000000000) real.tv_sec -= control->wall_offset_secs;
    return real;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    /* The version of before 2003 is what dlsym would find. */
    if (!real) real = (__typeof__(real))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec at = unshifted(deadline);
    return real(condition, mutex, &at);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *deadline)
{
    REAL(sem_timedwait);
    struct timespec at = unshifted(deadline);
    return real(semaphore, &at);
}
