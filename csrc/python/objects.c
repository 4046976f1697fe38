#include "objects.h"

PyObject *gpr_imported(const char *module, const char *name) {
  PyObject *imported = PyImport_ImportModule(module);
  PyObject *attribute = imported ? PyObject_GetAttrString(imported, name) : NULL;
  Py_XDECREF(imported);
  return attribute;
}

PyObject *gpr_ask(const char *module, const char *function, PyObject *arguments) {
  PyObject *callable = arguments ? gpr_imported(module, function) : NULL;
  PyObject *answer = callable ? PyObject_CallObject(callable, arguments) : NULL;
  Py_XDECREF(callable);
  Py_XDECREF(arguments);
  return answer;
}

void gpr_append(PyObject **list, PyObject *item) {
  if (!item || PyList_Append(*list, item)) Py_CLEAR(*list);
  Py_XDECREF(item);
}

PyObject *gpr_tuple_of(int n, const int64_t *numbers, int64_t scale) {
  PyObject *tuple = PyTuple_New(n);
  for (int i = 0; tuple && i < n; i++) {
    PyObject *number = PyLong_FromLongLong(numbers[i] * scale);
    if (!number) Py_CLEAR(tuple);
    if (tuple) PyTuple_SET_ITEM(tuple, i, number);
  }
  return tuple;
}

int gpr_refuse(PyObject *type, const char *function, const char *format, ...) {
  va_list arguments;
  PyErr_Clear(); /* as what is written may call Python */
  va_start(arguments, format);
  PyObject *text = PyUnicode_FromFormatV(format, arguments);
  va_end(arguments);
  if (text) PyErr_Format(type, "gpureduce.%s: %U", function, text);
  Py_XDECREF(text);
  return 0;
}
