/* device=: where to work. */
#define NO_IMPORT_ARRAY
#include "parse.h"

/* "cuda" or "cuda:N"; -1 of what is neither. */
static int device_of(const char *text) {
  char *end = NULL;
  if (!strcmp(text, "cuda")) return 0;
  if (strncmp(text, "cuda:", 5) || text[5] < '0' || text[5] > '9' || strlen(text) > 9) return -1;
  const long number = strtol(text + 5, &end, 10);
  return *end ? -1 : (int)number;
}

/* What a name stands for, but for several devices; *fine is 0 of what is none. */
static int place_of(const char *text, int *fine) {
  *fine = 1;
  if (!strcmp(text, "auto")) return GPR_DEVICE_AUTO;
  if (!strcmp(text, "cpu")) return GPR_DEVICE_CPU;
  if (!strcmp(text, "cuda:all")) return GPR_DEVICE_CUDA_ALL;
  if (!strcmp(text, "all")) return GPR_DEVICE_ALL;
  const int device = device_of(text);
  *fine = device >= 0;
  return device;
}

static int refuse(PyObject *object) {
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_ValueError,
                 "device %R is not one of 'auto', 'cpu', 'cuda' and 'cuda:0', 'cuda:1', ..., "
                 "'cuda:all' and 'all', nor a list of 'cpu' and such devices",
                 object);
  return 0;
}

static int add_to_list(PyObject *item, gpr_options *options) {
  int fine = 0;
  const char *text = PyUnicode_Check(item) ? PyUnicode_AsUTF8(item) : NULL;
  const int place = text ? place_of(text, &fine) : 0;
  if (!fine || place < GPR_DEVICE_CPU) return 0;
  if (place >= GPR_DEVICES_MAX) {
    PyErr_Format(PyExc_ValueError, "device %R: the devices of a list are below cuda:%d", item,
                 GPR_DEVICES_MAX);
    return 0;
  }
  if (place == GPR_DEVICE_CPU)
    options->and_cpu = 1;
  else
    options->devices |= UINT64_C(1) << place;
  return 1;
}

/* As it is now: without a GIL others may change a list. */
static int parse_list(PyObject *object, gpr_options *options) {
  PyObject *list = PySequence_Tuple(object);
  if (!list) return 0;
  const Py_ssize_t items = PyTuple_GET_SIZE(list);
  int fine = items > 0;
  options->device = GPR_DEVICE_LIST;
  for (Py_ssize_t i = 0; fine && i < items; i++)
    fine = add_to_list(PyTuple_GET_ITEM(list, i), options);
  Py_DECREF(list);
  return fine ? 1 : refuse(object);
}

int gpr_parse_device(PyObject *object, gpr_options *options) {
  int fine = 0;
  if (!object || object == gpr_auto) return 1; /* the default */
  if (PyList_Check(object) || PyTuple_Check(object)) return parse_list(object, options);
  const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
  if (text) options->device = place_of(text, &fine);
  return fine ? 1 : refuse(object);
}
