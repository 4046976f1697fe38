#include "errors.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[512];

gpr_status gpr_fail(gpr_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return status;
}

const char *gpr_error(void) { return message; }
