/* stdlib.h - what the checked build takes of it. */
_Noreturn void abort(void);
