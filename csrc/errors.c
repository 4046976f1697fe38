#include "errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[512];

/* What was said before may be part of it. */
gpr_status gpr_fail(gpr_status status, const char *format, ...) {
  char text[sizeof message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  strcpy(message, text);
  return status;
}

const char *gpr_error(void) { return message; }
