#include <torch/extension.h>

at::Tensor scale(const at::Tensor &x, double by);
double total(const at::Tensor &x);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
	m.def("scale", &scale);
	m.def("total", &total);
}
