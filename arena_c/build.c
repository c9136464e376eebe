#include "upfront.h"

const char UPFRONT_BUILD[] = "upfront " UPFRONT_VERSION;
