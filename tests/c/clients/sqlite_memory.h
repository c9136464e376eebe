/* sqlite_memory.h - SQLite's memory methods, on the heap of client.h. */
#ifndef UPFRONT_SQLITE_MEMORY_H
#define UPFRONT_SQLITE_MEMORY_H

#include <sqlite3.h>

#include "client.h"

/* SQLite's sizes are int. */
static void *sqlite_malloc(int size) { return client_malloc((size_t)size); }
static void *sqlite_realloc(void *p, int size) { return client_realloc(p, (size_t)size); }
static int sqlite_size(void *p) { return (int)client_size(p); }
static int sqlite_roundup(int size) { return (size + 7) & ~7; }
static int sqlite_init(void *unused) { return unused == NULL ? SQLITE_OK : SQLITE_ERROR; }
static void sqlite_shutdown(void *unused) { (void)unused; }

/* Call it before SQLite's first use. */
static int sqlite_take_client(void) {
    static const sqlite3_mem_methods methods = {sqlite_malloc,  client_free, sqlite_realloc,  sqlite_size,
                                                sqlite_roundup, sqlite_init, sqlite_shutdown, NULL};
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

#endif
