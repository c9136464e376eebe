/* A library that sets jemalloc's options if the process has it. */
__attribute__((weak)) int mallctl(const char *name);

int asks(void) { return mallctl != 0 && mallctl("background_thread"); }
