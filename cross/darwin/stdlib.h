/* stdlib.h - the part that the checked build uses. */
_Noreturn void abort(void);
