/* physfs.c - PhysFS with all its memory in a heap: writes, reads and lists files, and reads an
 * archive, until it is out of memory.
 *
 * The third argument is a folder to write to, the fourth an archive with the same files. */
#include <physfs.h>

#include "client.h"

enum { FILES = 8, STEP = 977 };

static const char *folder, *archive;

/* PhysFS's sizes have 64 bits. */
static void *physfs_malloc(PHYSFS_uint64 size) { return size > SIZE_MAX ? NULL : client_malloc((size_t)size); }
static void *physfs_realloc(void *p, PHYSFS_uint64 size) { return size > SIZE_MAX ? NULL
    : client_realloc(p, (size_t)size); }
static int physfs_init(void) { return 1; }
static void physfs_deinit(void) {}

static void name_of(char name[32], int n) { snprintf(name, 32, "ponds/frog%d.txt", n); }

/* A file has n * STEP letters, which follow from its number, also in the archive. */
static unsigned char letter(int n, int i) { return (unsigned char)('a' + (n + i / 7) % 26); }

static int write_file(int n) {
    char name[32];
    unsigned char text[FILES * STEP];
    PHYSFS_File *file;
    int i, wrote;
    name_of(name, n);
    file = PHYSFS_openWrite(name);
    if (file == NULL)
        return 0;
    for (i = 0; i < n * STEP; i++)
        text[i] = letter(n, i);
    wrote = PHYSFS_setBuffer(file, 512) && PHYSFS_writeBytes(file, text, (PHYSFS_uint64)i) == i;
    return PHYSFS_close(file) && wrote;
}

static int read_file(int n) {
    char name[32];
    unsigned char text[FILES * STEP];
    PHYSFS_File *file;
    int i, whole;
    name_of(name, n);
    file = PHYSFS_openRead(name);
    if (file == NULL)
        return 0;
    whole = PHYSFS_setBuffer(file, 300) && PHYSFS_readBytes(file, text, (PHYSFS_uint64)n * STEP) == n * STEP;
    for (i = 0; i < n * STEP && whole; i++)
        if (text[i] != letter(n, i)) {
            check(0, "a file is as it was written");
            break;
        }
    PHYSFS_close(file);
    return whole;
}

static int list_files(void) {
    char **names = PHYSFS_enumerateFiles("ponds");
    int n = 0;
    if (names == NULL)
        return 0;
    while (names[n] != NULL)
        n++;
    PHYSFS_freeList(names);
    return n == FILES;
}

/* The memory for a mount. PhysFS 3.0.2 closes an archive twice if the mount's last step has no
 * memory; the reserve prevents that. */
#define RESERVE (32u << 10)

/* Reads and lists all that is mounted. */
static int reads(const char *where) {
    int n, good;
    client_clean_up();
    good = PHYSFS_mount(where, NULL, 0);
    check(good, "the reserve is enough for a mount");
    CLIENT(reserve)(client.arena, RESERVE);
    for (n = 0; n < FILES && good; n++)
        good = read_file(n);
    good = good && list_files();
    return PHYSFS_unmount(where) && good;
}

static int work(void) {
    int n, good = PHYSFS_setWriteDir(folder) && PHYSFS_mkdir("ponds");
    for (n = 0; n < FILES && good; n++)
        good = write_file(n);
    return good && reads(folder) && reads(archive);
}

static int run(uint64_t size) {
    int done;
    client_begin(size, RESERVE);
    done = PHYSFS_init(NULL);
    if (done) {
        done = work();
        /* its last error needs memory, too */
        check(done || PHYSFS_getLastErrorCode() == PHYSFS_ERR_OUT_OF_MEMORY ||
            PHYSFS_getLastErrorCode() == PHYSFS_ERR_OK, "its own error");
        check(done || client.arena->failed > 0, "it ends for want of memory alone");
        check(PHYSFS_deinit(), "closed");
    }
    client_end();
    return done;
}

int main(int argc, char **argv) {
    static const PHYSFS_Allocator allocator = {physfs_init, physfs_deinit, physfs_malloc, physfs_realloc, client_free};
    int sizes = client_sizes(argc, argv);
    folder = argc > 3 ? argv[3] : ".";
    archive = argc > 4 ? argv[4] : ".";
    check(PHYSFS_setAllocator(&allocator), "the allocator");
    /* PhysFS 3.0.2 crashes in an init without memory for its two locks, so these bytes are always
     * free. */
    client_shrink(sizes, 512 << 10, RESERVE + 4096, run);
    return client_done();
}
