/*
 * Records, for LD_PRELOAD: everything that a process does to the files below TORTURE_ROOT, with its data and in its order, and
 * the HTTP answers that it sends. README.md says what is made of it.
 *
 * The log is TORTURE_LOG, mapped and shared, so that it is whole after a kill -9. Its first eight bytes are its length;
 * a record is a `struct record`, then its path, its second path and its data, padded to eight bytes. Little-endian.
 *
 * TORTURE_KILL_AT: the process kills itself in front of this operation, counted from its start.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FILES 65536
#define LARGEST (1u << 30)

struct record {
  uint32_t kind, thread;
  int32_t fd;
  uint32_t flags;
  uint64_t offset;
  uint32_t path, second, data, pad;
};

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static unsigned char *log_bytes;
static char root[PATH_MAX];
static size_t root_length;
static unsigned char watched[FILES];
static long kill_at = -1, done;
static long sync_nanoseconds;

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static void started(void);

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("TORTURE_LOG"), *below = getenv("TORTURE_ROOT");
  if (!file || !below) return;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
  if (fd < 0) abort();
  void *map = mmap(NULL, LARGEST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (map == MAP_FAILED) abort();
  log_bytes = map;
  if (*(uint64_t *)log_bytes == 0) *(uint64_t *)log_bytes = sizeof(uint64_t);
  snprintf(root, sizeof root, "%s", below);
  root_length = strlen(root);
  if (getenv("TORTURE_KILL_AT")) kill_at = atol(getenv("TORTURE_KILL_AT"));
  if (getenv("TORTURE_SYNC_US")) sync_nanoseconds = atol(getenv("TORTURE_SYNC_US")) * 1000;
  started();
}

/* Whoever calls holds the lock. */
static void put(char kind, int fd, uint32_t flags, uint64_t offset, const char *path, const char *second,
                const struct iovec *parts, int count, size_t bytes) {
  uint64_t at = *(uint64_t *)log_bytes;
  struct record head = { (uint32_t)kind, (uint32_t)syscall(SYS_gettid), fd, flags, offset,
                         path ? (uint32_t)strlen(path) : 0, second ? (uint32_t)strlen(second) : 0, (uint32_t)bytes, 0 };
  uint64_t size = (sizeof head + head.path + head.second + bytes + 7) & ~7ull;
  if (at + size > LARGEST) abort();
  unsigned char *to = log_bytes + at;
  memcpy(to, &head, sizeof head);
  to += sizeof head;
  if (path) memcpy(to, path, head.path);
  to += head.path;
  if (second) memcpy(to, second, head.second);
  to += head.second;
  for (int part = 0; part < count && bytes > 0; part += 1) {
    size_t length = parts[part].iov_len < bytes ? parts[part].iov_len : bytes;
    memcpy(to, parts[part].iov_base, length);
    to += length;
    bytes -= length;
  }
  *(uint64_t *)log_bytes = at + size;
}

static void note(char kind, int fd, uint32_t flags, uint64_t offset, const char *path, const char *second) {
  put(kind, fd, flags, offset, path, second, NULL, 0, 0);
}

static void started(void) { note('P', -1, 0, 0, NULL, NULL); }

/* Takes the lock in front of an operation that is recorded. */
static void enter(void) {
  pthread_mutex_lock(&lock);
  if (kill_at >= 0 && done == kill_at) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  done += 1;
}

static void leave(void) {
  int error = errno;
  pthread_mutex_unlock(&lock);
  errno = error;
}

static int is_watched(int fd) { return log_bytes && fd >= 0 && fd < FILES && watched[fd]; }

/* The absolute path if it is below the root, or NULL. */
static const char *below(int folder, const char *path, char *into) {
  if (!log_bytes || !path) return NULL;
  if (path[0] == '/') {
    snprintf(into, PATH_MAX, "%s", path);
  } else {
    char link[64], base[PATH_MAX];
    if (folder == AT_FDCWD) {
      if (!getcwd(base, sizeof base)) return NULL;
    } else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      ssize_t length = readlink(link, base, sizeof base - 1);
      if (length < 0) return NULL;
      base[length] = 0;
    }
    snprintf(into, PATH_MAX, "%.2000s/%.2000s", base, path);
  }
  if (strncmp(into, root, root_length) != 0) return NULL;
  return into[root_length] == '/' || into[root_length] == 0 ? into : NULL;
}

static int opened(int fd, const char *path, int flags, int was_there) {
  if (fd >= 0 && fd < FILES) {
    watched[fd] = path != NULL;
    /* Flags of the record: 1 = made by this, 2 = emptied, 4 = appends. */
    if (path) note('o', fd, (was_there ? 0 : 1) | (flags & O_TRUNC ? 2 : 0) | (flags & O_APPEND ? 4 : 0), 0, path, NULL);
    if (path && flags & (O_DSYNC | O_SYNC)) note('X', fd, 0, 0, "an open with O_SYNC", NULL);
  }
  return fd;
}

#define OPEN(name, declared, call) \
  int name declared { \
    REAL(name); \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
      va_list more; \
      va_start(more, flags); \
      mode = va_arg(more, mode_t); \
      va_end(more); \
    } \
    char buffer[PATH_MAX]; \
    const char *full = below(folder_of, path, buffer); \
    if (!full) { \
      int other = real call; \
      if (log_bytes && other >= 0 && other < FILES) watched[other] = 0; \
      return other; \
    } \
    enter(); \
    struct stat stats; \
    int was_there = stat(full, &stats) == 0; \
    int fd = opened(real call, full, flags, was_there); \
    leave(); \
    return fd; \
  }

#define folder_of AT_FDCWD
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
#undef folder_of
#define folder_of folder
OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))

int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }

int close(int fd) {
  REAL(close);
  if (!is_watched(fd)) return real(fd);
  enter();
  watched[fd] = 0;
  int result = real(fd);
  note('c', fd, 0, 0, NULL, NULL);
  leave();
  return result;
}

/* An answer is noted in front of its sending: from then on the sender may have it. */
static void answer(int fd, const struct iovec *parts, int count) {
  if (!log_bytes || count < 1 || parts[0].iov_len < 12) return;
  struct stat stats;
  if (memcmp(parts[0].iov_base, "HTTP/1.1 ", 9) != 0 || fstat(fd, &stats) != 0 || !S_ISSOCK(stats.st_mode)) return;
  size_t bytes = 0;
  for (int part = 0; part < count; part += 1) bytes += parts[part].iov_len;
  enter();
  put('a', fd, 0, 0, NULL, NULL, parts, count, bytes > 65536 ? 65536 : bytes);
  leave();
}

static void written(int fd, uint64_t offset, const struct iovec *parts, int count, ssize_t result) {
  if (result > 0) put('w', fd, 0, offset, NULL, NULL, parts, count, (size_t)result);
}

/* Where a write without an offset goes. */
static uint64_t position(int fd) {
  struct stat stats;
  if ((fcntl(fd, F_GETFL) & O_APPEND) && fstat(fd, &stats) == 0) return (uint64_t)stats.st_size;
  return (uint64_t)lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *bytes, size_t count) {
  REAL(write);
  struct iovec part = { (void *)bytes, count };
  if (!is_watched(fd)) {
    answer(fd, &part, 1);
    return real(fd, bytes, count);
  }
  enter();
  uint64_t offset = position(fd);
  ssize_t result = real(fd, bytes, count);
  written(fd, offset, &part, 1, result);
  leave();
  return result;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(writev);
  if (!is_watched(fd)) {
    answer(fd, parts, count);
    return real(fd, parts, count);
  }
  enter();
  uint64_t offset = position(fd);
  ssize_t result = real(fd, parts, count);
  written(fd, offset, parts, count, result);
  leave();
  return result;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags) {
  REAL(send);
  struct iovec part = { (void *)bytes, count };
  answer(fd, &part, 1);
  return real(fd, bytes, count, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  REAL(sendmsg);
  answer(fd, message->msg_iov, (int)message->msg_iovlen);
  return real(fd, message, flags);
}

#define PWRITE(name, offset_type) \
  ssize_t name(int fd, const void *bytes, size_t count, offset_type offset) { \
    REAL(name); \
    if (!is_watched(fd)) return real(fd, bytes, count, offset); \
    struct iovec part = { (void *)bytes, count }; \
    enter(); \
    ssize_t result = real(fd, bytes, count, offset); \
    written(fd, (uint64_t)offset, &part, 1, result); \
    leave(); \
    return result; \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define PWRITEV(name, offset_type) \
  ssize_t name(int fd, const struct iovec *parts, int count, offset_type offset) { \
    REAL(name); \
    if (!is_watched(fd)) return real(fd, parts, count, offset); \
    enter(); \
    ssize_t result = real(fd, parts, count, offset); \
    written(fd, (uint64_t)offset, parts, count, result); \
    leave(); \
    return result; \
  }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)

#define FTRUNCATE(name, size_type) \
  int name(int fd, size_type size) { \
    REAL(name); \
    if (!is_watched(fd)) return real(fd, size); \
    enter(); \
    int result = real(fd, size); \
    if (result == 0) note('t', fd, 0, (uint64_t)size, NULL, NULL); \
    leave(); \
    return result; \
  }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

/* Only what was written before its beginning is durable when a sync has ended: others may write meanwhile. */
#define SYNC(name) \
  int name(int fd) { \
    REAL(name); \
    if (!is_watched(fd)) return real(fd); \
    enter(); \
    note('s', fd, 0, 0, NULL, NULL); \
    leave(); \
    int result = real(fd); \
    if (sync_nanoseconds) { \
      int error = errno; \
      nanosleep(&(struct timespec){ 0, sync_nanoseconds }, NULL); \
      errno = error; \
    } \
    enter(); \
    if (result == 0) note('S', fd, 0, 0, NULL, NULL); \
    leave(); \
    return result; \
  }
SYNC(fsync)
SYNC(fdatasync)

#define ONE_PATH(kind, name, declared, folder, path, call) \
  int name declared { \
    REAL(name); \
    char buffer[PATH_MAX]; \
    const char *full = below(folder, path, buffer); \
    if (!full) return real call; \
    enter(); \
    int result = real call; \
    if (result == 0) note(kind, -1, 0, 0, full, NULL); \
    leave(); \
    return result; \
  }
ONE_PATH('u', unlink, (const char *path), AT_FDCWD, path, (path))
ONE_PATH('d', rmdir, (const char *path), AT_FDCWD, path, (path))
ONE_PATH('m', mkdir, (const char *path, mode_t mode), AT_FDCWD, path, (path, mode))
ONE_PATH('m', mkdirat, (int folder, const char *path, mode_t mode), folder, path, (folder, path, mode))
ONE_PATH((flags & AT_REMOVEDIR ? 'd' : 'u'), unlinkat, (int folder, const char *path, int flags), folder, path,
         (folder, path, flags))

int remove(const char *path) {
  int result = unlink(path);
  return result != 0 && errno == EISDIR ? rmdir(path) : result;
}

#define TWO_PATHS(kind, name, declared, from_folder, to_folder, call) \
  int name declared { \
    REAL(name); \
    char first[PATH_MAX], second[PATH_MAX]; \
    const char *one = below(from_folder, from, first), *other = below(to_folder, to, second); \
    if (!one && !other) return real call; \
    enter(); \
    int result = real call; \
    if (result == 0) note(one && other ? kind : 'X', -1, 0, 0, one && other ? one : "a name that leaves the root", other); \
    leave(); \
    return result; \
  }
TWO_PATHS('r', rename, (const char *from, const char *to), AT_FDCWD, AT_FDCWD, (from, to))
TWO_PATHS('r', renameat, (int a, const char *from, int b, const char *to), a, b, (a, from, b, to))
TWO_PATHS('r', renameat2, (int a, const char *from, int b, const char *to, unsigned flags), a, b, (a, from, b, to, flags))
TWO_PATHS('l', link, (const char *from, const char *to), AT_FDCWD, AT_FDCWD, (from, to))
TWO_PATHS('l', linkat, (int a, const char *from, int b, const char *to, int flags), a, b, (a, from, b, to, flags))

/* What the model of the disk does not know: the run is then of no use, and says so. */
static void unknown(int fd, const char *what) {
  if (!is_watched(fd)) return;
  enter();
  note('X', fd, 0, 0, what, NULL);
  leave();
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  if ((protection & PROT_WRITE) && (flags & MAP_SHARED)) unknown(fd, "a writable shared mapping");
  return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}
void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
  return mmap(address, length, protection, flags, fd, offset);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  REAL(fallocate);
  unknown(fd, "fallocate");
  return real(fd, mode, offset, length);
}
int posix_fallocate(int fd, off_t offset, off_t length) {
  REAL(posix_fallocate);
  unknown(fd, "posix_fallocate");
  return real(fd, offset, length);
}
ssize_t sendfile(int to, int from, off_t *offset, size_t count) {
  REAL(sendfile);
  unknown(to, "sendfile");
  return real(to, from, offset, count);
}
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *offset, size_t count, unsigned flags) {
  REAL(copy_file_range);
  unknown(to, "copy_file_range");
  return real(from, at, to, offset, count, flags);
}
int dup2(int fd, int other) {
  REAL(dup2);
  unknown(fd, "dup2");
  return real(fd, other);
}
int dup3(int fd, int other, int flags) {
  REAL(dup3);
  unknown(fd, "dup3");
  return real(fd, other, flags);
}

/* libuv closes files, and copies them, by number of the call. */
long syscall(long number, ...) {
  va_list more;
  long a[6];
  va_start(more, number);
  for (int i = 0; i < 6; i += 1) a[i] = va_arg(more, long);
  va_end(more);
  if (number == SYS_close) return close((int)a[0]);
  if (number == SYS_copy_file_range) unknown((int)a[2], "copy_file_range");
  if (number == SYS_pwritev2) unknown((int)a[0], "pwritev2");
  REAL(syscall);
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
