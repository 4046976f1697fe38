#define PY_SSIZE_T_CLEAN
#include "module.h"
#include "objects.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../cuda/gpu.h"
#include "module.h"

enum { PROGRAMS_MOST = 1 << 14 };

/* --- what the library asks -------------------------------------------------------------------- */

/* A function of gpureduce.compiler; whatever goes wrong is as if it had given nothing, but Ctrl-C
 * is left to be met again. */
static PyObject *ask(const char *function, PyObject *arguments) {
  PyObject *answer = gpr_ask("gpureduce.compiler", function, arguments);
  if (!answer && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  if (!answer) PyErr_Clear();
  return answer;
}

static void say(int is_warning, const char *text) {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_XDECREF(ask("say", Py_BuildValue("(Ns)", PyBool_FromLong(is_warning), text)));
  PyGILState_Release(state);
}

/* The bytes of an answer, malloc's; NULL where it is None. */
static char *take_bytes(PyObject *answer, size_t *size) {
  char *bytes = NULL;
  if (answer && PyBytes_Check(answer)) {
    *size = (size_t)PyBytes_GET_SIZE(answer);
    bytes = malloc(*size + 1);
    if (bytes) memcpy(bytes, PyBytes_AS_STRING(answer), *size + 1);
  }
  Py_XDECREF(answer);
  return bytes;
}

static char *packed(const char *arch, const char *key, size_t *size) {
  if (!Py_IsInitialized()) return NULL;
  const PyGILState_STATE state = PyGILState_Ensure();
  char *bytes = take_bytes(ask("packed", Py_BuildValue("(ss)", arch, key)), size);
  PyGILState_Release(state);
  if (bytes && memchr(bytes, 0, *size)) return bytes;
  free(bytes);
  return NULL;
}

static char *nvrtc_folders(void) {
  size_t size;
  if (!Py_IsInitialized()) return NULL;
  const PyGILState_STATE state = PyGILState_Ensure();
  char *text = take_bytes(ask("nvrtc_folders", PyTuple_New(0)), &size);
  PyGILState_Release(state);
  return text;
}

void gpr_programs_open(void) { gpr_host = (gpr_surroundings){say, packed, nvrtc_folders}; }

/* --- what Python asks ------------------------------------------------------------------------- */

/* All programs: looked for once, which takes 12 ms. */
static gpr_program *all[PROGRAMS_MOST];
static int programs_count;
static void list_programs(void) { programs_count = gpr_programs(all, PROGRAMS_MOST); }
static int count_programs(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, list_programs);
  return programs_count;
}

/* (kernel, fold, header) of each. */
static PyObject *programs(PyObject *module, PyObject *unused) {
  const int count = count_programs();
  PyObject *list = PyList_New(0);
  (void)module, (void)unused;
  for (int i = 0; list && i < count; i++) {
    gpr_append(&list, Py_BuildValue("(sss)", all[i]->kernel, all[i]->fold ? all[i]->fold : "",
                                    all[i]->header));
  }
  return list;
}

/* program_image(index, arch): (key, image, whether the cache had it). */
static PyObject *program_image(PyObject *module, PyObject *args) {
  const int count = count_programs();
  int index, was_there = 0;
  const char *arch;
  char key[GPR_KEY_CHARS];
  gpr_image image = {NULL, 0};
  (void)module;
  if (!PyArg_ParseTuple(args, "is", &index, &arch)) return NULL;
  if (strncmp(arch, "sm_", 3) && strncmp(arch, "compute_", 8))
    return PyErr_Format(PyExc_ValueError, "%s is no architecture: give sm_90 or compute_90", arch);
  if (index < 0 || index >= count)
    return PyErr_Format(PyExc_IndexError, "there are %d programs, numbered from 0", count);
  gpr_program *program = all[index];
  const gpr_status status = UNLOCKED(gpr_program_image(program, arch, key, &was_there, &image));
  if (status) return gpr_raise(status);
  PyObject *answer =
      Py_BuildValue("(sy#N)", key, image.bytes, (Py_ssize_t)image.size, PyBool_FromLong(was_there));
  free(image.bytes);
  return answer;
}

/* compiler(arch): (whether there is one, which or why not). */
static PyObject *compiler(PyObject *module, PyObject *arch) {
  char text[512];
  (void)module;
  const char *name = PyUnicode_AsUTF8(arch);
  if (!name) return NULL;
  if (!strchr(name, '_')) return PyErr_Format(PyExc_ValueError, "%s is no architecture", name);
  const gpr_status status = UNLOCKED(gpr_compiler_about(name, text, sizeof text));
  return Py_BuildValue("(Ns)", PyBool_FromLong(status == GPR_OK), text);
}

/* cache_folder(): its path, or None. */
static PyObject *cache_folder(PyObject *module, PyObject *unused) {
  char path[4096];
  (void)module, (void)unused;
  if (!gpr_cache_folder(path, sizeof path)) Py_RETURN_NONE;
  return PyUnicode_DecodeFSDefault(path);
}

PyMethodDef gpr_program_methods[] = {
    {"programs", programs, METH_NOARGS, NULL},
    {"program_image", program_image, METH_VARARGS, NULL},
    {"compiler", compiler, METH_O, NULL},
    {"cache_folder", cache_folder, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
