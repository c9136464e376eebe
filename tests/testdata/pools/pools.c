/* pools.c - pools as the Apache Portable Runtime has them, each in its own arena.
 *
 *     cc $(pkg-config --cflags upfront) pools.c $(pkg-config --libs upfront) -o pools
 *
 * A parent allocates while children are open, children end in any order, a cleanup can be killed,
 * and its status is returned. Each pool is a block of a heap: a linear arena with the pool and its
 * cleanups in it. */
#include <stdio.h>

#include <upfront.h>

typedef int (*action)(void *data);

typedef struct cleanup {
    struct cleanup *next;
    action run;
    void *data;
} cleanup;

typedef struct pool {
    upfront_heap *heap;
    upfront_linear *arena;
    struct pool *parent, *children, *next;
    cleanup *cleanups;
    uint64_t mark; /* after this struct */
} pool;

/* NULL: the heap has no block of that size, or it is too small for a pool. */
static pool *pool_create(upfront_heap *heap, pool *parent, uint64_t size) {
    void *block = upfront_heap_alloc(heap, size, 64);
    upfront_linear *arena = upfront_linear_init(block, size);
    pool *p = upfront_linear_alloc(arena, sizeof *p, 16);
    if (p == NULL) {
        if (block != NULL)
            upfront_heap_free(heap, block);
        return NULL;
    }
    memset(p, 0, sizeof *p);
    p->heap = heap;
    p->arena = arena;
    p->parent = parent;
    p->mark = arena->cursor;
    if (parent != NULL) {
        p->next = parent->children;
        parent->children = p;
    }
    return p;
}

static void *pool_alloc(pool *p, uint64_t size) { return upfront_linear_alloc(p->arena, size, 16); }

/* UPFRONT_FULL: the cleanup has already run. */
static int pool_register(pool *p, action run, void *data) {
    cleanup *c = pool_alloc(p, sizeof *c);
    if (c == NULL) {
        run(data);
        return UPFRONT_FULL;
    }
    c->next = p->cleanups;
    c->run = run;
    c->data = data;
    p->cleanups = c;
    return UPFRONT_OK;
}

static void pool_kill(pool *p, action run, void *data) {
    cleanup **c = &p->cleanups;
    while (*c != NULL && ((*c)->run != run || (*c)->data != data))
        c = &(*c)->next;
    if (*c != NULL)
        *c = (*c)->next;
}

static int pool_destroy(pool *p);

/* Ends the children, then runs the cleanups, newest first; returns the first status that isn't
 * 0. */
static int pool_clear(pool *p) {
    int first = 0;
    while (p->children != NULL) {
        int status = pool_destroy(p->children);
        first = first != 0 ? first : status;
    }
    while (p->cleanups != NULL) {
        cleanup *c = p->cleanups;
        int status;
        p->cleanups = c->next;
        status = c->run(c->data);
        first = first != 0 ? first : status;
    }
    upfront_linear_rewind(p->arena, p->arena->gen, p->mark);
    return first;
}

static int pool_destroy(pool *p) {
    int status = pool_clear(p);
    if (p->parent != NULL) {
        pool **at = &p->parent->children;
        while (*at != p)
            at = &(*at)->next;
        *at = p->next;
    }
    upfront_heap_free(p->heap, p->arena);
    return status;
}

static _Alignas(64) unsigned char memory[1 << 16];

static int closes(void *name) {
    printf("%s closes\n", (char *)name);
    return *(char *)name == 'c' ? 7 : 0; /* cy's fails */
}

int main(void) {
    upfront_heap *heap = upfront_heap_init(memory, sizeof memory, 0);
    pool *server = pool_create(heap, NULL, 2048);
    pool *ada = pool_create(heap, server, 1024), *cy = pool_create(heap, server, 1024);
    char *log = pool_alloc(server, 4); /* the parent allocates while its children are open */
    memcpy(log, "log", 4);
    pool_register(server, closes, log);
    pool_register(server, closes, "socket");
    pool_register(ada, closes, "ada");
    pool_register(cy, closes, "cy");
    pool_kill(server, closes, "socket");
    printf("status %d\n", pool_destroy(ada)); /* the older first */
    printf("status %d\n", pool_destroy(server));
    return (int)heap->live;
}
