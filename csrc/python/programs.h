/* Device code as Python sees it: what is there to be compiled, and what the library asks of Python
 * when it compiles. */
#ifndef GPR_PROGRAMS_H
#define GPR_PROGRAMS_H

#include <Python.h>

/* Lets the library ask; once, when the module is made. */
void gpr_programs_open(void);

/* Methods of the module. */
PyObject *gpr_programs_list(PyObject *module, PyObject *unused);
PyObject *gpr_programs_image(PyObject *module, PyObject *args);
PyObject *gpr_programs_compiler(PyObject *module, PyObject *arch);
PyObject *gpr_programs_cache(PyObject *module, PyObject *unused);

#endif
