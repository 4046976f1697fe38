/* The extension module. */
#include "arguments.h"

#include "device_array.h"
#include "foreign.h"
#include "libraries.h"
#include "module.h"
#include "warn.h"

static PyObject *device_error;

/* "sum: ..." of the library is "gpureduce.sum: ..." of the package. */
static const char *package_of(const char *text) {
  char name[32];
  const size_t length = strcspn(text, ":");
  if (!text[length] || length >= sizeof name) return "";
  memcpy(name, text, length);
  name[length] = 0;
  return gpr_op_index(name) >= 0 ? "gpureduce." : "";
}

PyObject *gpr_raise(gpr_status status) {
  PyObject *type = status == GPR_BAD_VALUE       ? PyExc_ValueError
                   : status == GPR_BAD_TYPE      ? PyExc_TypeError
                   : status == GPR_OUT_OF_MEMORY ? PyExc_MemoryError
                                                 : device_error;
  return PyErr_Format(type, "%s%s", package_of(gpr_error()), gpr_error());
}

PyObject *gpr_nothing(gpr_status status) { return status ? gpr_raise(status) : Py_NewRef(Py_None); }

static int exec_module(PyObject *module) {
  if (PyArray_ImportNumPyAPI() < 0) return -1;
  gpr_match_builtin_dtypes();
  if (!gpr_arguments_init() || !gpr_foreign_init() || !gpr_libraries_init() ||
      !gpr_device_array_init(module) || !gpr_warn_init())
    return -1;
  if (!device_error)
    device_error = PyErr_NewExceptionWithDoc(
        "gpureduce.DeviceError", "The device asked for is missing, or a call to it failed.",
        PyExc_RuntimeError, NULL);
  gpr_programs_open();
  PyMethodDef *const methods[] = {gpr_call_methods,   gpr_list_methods,    gpr_partials_methods,
                                  gpr_timing_methods, gpr_program_methods, gpr_operator_methods,
                                  gpr_part_methods,   gpr_warn_methods};
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (PyModule_AddFunctions(module, methods[i])) return -1;
  if (PyModule_AddStringConstant(module, "__version__", GPUREDUCE_VERSION)) return -1;
  return PyModule_AddObjectRef(module, "DeviceError", device_error);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "gpureduce._core", .m_slots = slots};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
