/* handler.h - what describes an address in a crash. */
#ifndef UPFRONT_CRASH_HANDLER_H
#define UPFRONT_CRASH_HANDLER_H

#include <stddef.h>
#include <stdint.h>

enum { UPFRONT_CRASH_RANGES = 128, UPFRONT_CRASH_NAME = 64 };

/* Writes what the address means into out, at most room bytes, and gives their number. Runs in a signal handler. */
typedef size_t (*upfront_crash_describe)(const void *arg, const char *name, uintptr_t address, char *out, size_t room);

/* Puts the handlers before those there are. 0, or errno. One caller, once. */
int upfront_crash_install(void);

/* These change the table: one caller at a time. watch: 0 when the table is full. The name is cut to fit. */
int upfront_crash_watch(uintptr_t base, uint64_t size, const char *name, size_t length, upfront_crash_describe describe,
                        uintptr_t arg);
void upfront_crash_unwatch(uintptr_t base, upfront_crash_describe after, uintptr_t arg);

#endif
