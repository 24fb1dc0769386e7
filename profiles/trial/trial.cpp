// A small extension that goes the way of every package before a long build begins: compiled with the plan's flags, linked with OpenMP, whose library must
// be taken into the wheel, and imported at the end.
#include <Python.h>

#include <string>
#include <vector>

static PyObject *sum(PyObject *, PyObject *args)
{
	int n;
	if (!PyArg_ParseTuple(args, "i", &n))
		return nullptr;
	std::vector<float> values(n);
	float total = 0;
#pragma omp parallel for reduction(+ : total)
	for (int i = 0; i < n; i++) {
		values[i] = static_cast<float>(i) * 0.5F;
		total += values[i];
	}
	return PyUnicode_FromString(std::to_string(total).c_str());
}

static PyMethodDef methods[] = {{"sum", sum, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__C()
{
	return PyModule_Create(&module);
}
