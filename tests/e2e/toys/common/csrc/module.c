#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "toy.h"

static PyObject *sum(PyObject *self, PyObject *args)
{
	int n;
	(void)self;
	return PyArg_ParseTuple(args, "i", &n) ? PyLong_FromLong(toy_sum(n)) : NULL;
}

static PyObject *facts(PyObject *self, PyObject *args)
{
	(void)self;
	(void)args;
	return Py_BuildValue("{s:s,s:s,s:s}", "flags", toy_flags(), "file", toy_file(), "yaml",
			     toy_yaml());
}

static PyMethodDef methods[] = {{"sum", sum, METH_VARARGS, NULL},
				{"facts", facts, METH_NOARGS, NULL},
				{NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_C", .m_size = -1,
				    .m_methods = methods};

PyMODINIT_FUNC PyInit__C(void)
{
	return PyModule_Create(&module);
}
