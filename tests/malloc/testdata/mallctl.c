/* A library with an allocator of its own, as jemalloc is in a database. */
int x_je_mallctl(const char *name) { return name != 0; }
