/* A library with thread-local data, for threads that run when it is loaded. */
static __thread char data[4096];
char *late_data(void) { return data; }
