/* late.c - thread-local data that is too large for the spare part of a thread's static block. */
static __thread char data[4096];

char *get(void) { return data; }
