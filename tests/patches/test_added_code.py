#!/usr/bin/python3
"""Code that patches add to PyTorch, taken out of the patch, compiled alone and run."""
import itertools
import os
import re
import subprocess
import tempfile
import unittest

PATCHES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../patches/pytorch/2.6.0-debian")

# PyTorch's c10::irange, where no header of PyTorch is at hand.
IRANGE = r"""
namespace c10 {
struct range {
	int64_t a, b;
	struct it {
		int64_t i;
		int64_t operator*() const { return i; }
		void operator++() { ++i; }
		bool operator!=(it o) const { return i != o.i; }
	};
	it begin() const { return {a}; }
	it end() const { return {b < a ? a : b}; }
};
static range irange(int64_t n) { return {0, n}; }
static range irange(int64_t a, int64_t b) { return {a, b}; }
}
"""

# What the code uses of PyTorch.
SORT = r"""
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>
struct Half { uint16_t x; };
static float real(Half h)
{
	float f = std::ldexp((h.x & 1023) + (h.x >> 10 & 31 ? 1024 : 0), (h.x >> 10 & 31 ? h.x >> 10 & 31 : 1) - 25);
	if ((h.x >> 10 & 31) == 31)
		f = h.x & 1023 ? NAN : INFINITY;
	return h.x & 0x8000 ? -f : f;
}
template <typename T> T real(T v) { return v; }
namespace std { template <typename T> constexpr bool is_reduced_floating_point_v = is_same_v<T, Half>; }
namespace c10 {
template <typename To, typename From> To bit_cast(From f) { static_assert(sizeof(To) == sizeof(From)); To t; memcpy(&t, &f, sizeof(t)); return t; }
}
""" + IRANGE + r"""template <typename T> bool _isnan(T v) { if constexpr (std::is_integral_v<T>) return false; else return real(v) != real(v); }
%s
template <typename T, typename F> void check(const char *name, F random, const std::vector<T> special)
{
	std::mt19937_64 engine(1);
	for (int64_t n : {1, 2, 1000, 5000, 70000})
		for (bool descending : {false, true})
			for (int kind = 0; kind < 3; kind++)
				for (int64_t stride : {1, 3}) {
					std::unique_ptr<T[]> values(new T[n * stride]), sorted(new T[n * stride]); /* no vector: that of bool has no addresses */
					for (int64_t i = 0; i < n * stride; i++)
						values[i] = kind == 2 ? special[0] : kind == 1 || engine() %% 50 == 0 ? special[engine() %% special.size()] : random(engine);
					std::vector<int64_t> want(n), got(n * stride);
					std::iota(want.begin(), want.end(), 0);
					std::stable_sort(want.begin(), want.end(), [&](int64_t a, int64_t b) {
						auto x = real(values[a * stride]), y = real(values[b * stride]);
						if (descending)
							return (_isnan(x) && !_isnan(y)) || x > y;
						return (!_isnan(x) && _isnan(y)) || x < y;
					});
					std::copy(&values[0], &values[0] + n * stride, &sorted[0]);
					RadixSort<T>::sort(sorted.get(), stride, got.data(), stride, n, descending);
					for (int64_t i = 0; i < n; i++)
						if (got[i * stride] != want[i] || memcmp(&sorted[i * stride], &values[want[i] * stride], sizeof(T)) != 0) {
							std::printf("%%s: n %%lld, descending %%d, kind %%d, stride %%lld: place %%lld\n", name, (long long)n, descending, kind, (long long)stride, (long long)i);
							std::exit(1);
						}
				}
}
template <typename T> void whole(const char *name)
{
	check<T>(name, [](auto &e) { return static_cast<T>(e()); }, {0, 1, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(7)});
}
template <typename T> void floating(const char *name)
{
	const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
	check<T>(name, [](auto &e) { return std::normal_distribution<T>()(e); }, {T(0), T(-0.0), nan, -nan, inf, -inf, std::numeric_limits<T>::denorm_min(), T(-1), T(1)});
}
int main()
{
	floating<float>("float");
	floating<double>("double");
	check<Half>("half", [](auto &e) { return Half{static_cast<uint16_t>(e())}; }, {{0}, {0x8000}, {0x7e00}, {0xfe01}, {0x7c00}, {0xfc00}, {1}});
	whole<int8_t>("int8"); whole<uint8_t>("uint8"); whole<int16_t>("int16"); whole<uint16_t>("uint16");
	whole<int32_t>("int32"); whole<uint32_t>("uint32"); whole<int64_t>("int64"); whole<uint64_t>("uint64"); whole<bool>("bool");
	std::puts("all as std::stable_sort");
}
"""

MEMORY = r"""
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <sys/resource.h>
%s
int main()
{
	long faults = 0;
	for (int turn = 0; turn < 20; turn++) {
		struct rusage before, after;
		getrusage(RUSAGE_SELF, &before);
		void *blocks[6];
		for (void *&b : blocks) {
			b = malloc(6 << 20);
			memset(b, 1, 6 << 20);
		}
		for (void *b : {blocks[5], blocks[4], blocks[3], blocks[2], blocks[1], blocks[0]})
			free(b);
		getrusage(RUSAGE_SELF, &after);
		faults = turn < 10 ? 0 : faults + after.ru_minflt - before.ru_minflt;
	}
	std::printf("%%ld", faults);
}
"""

# What both of the next two use of PyTorch.
PYTORCH = r"""
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>
#define TORCH_CHECK(what, ...) do { if (!(what)) std::abort(); } while (0)
#define AT_BUILD_WITH_BLAS() 1
#define AT_BUILD_WITH_LAPACK() 1
#define AT_MKL_ENABLED() 0
#define AT_POCKETFFT_ENABLED() 1
static std::mt19937_64 engine(1);
static double somewhere() { return std::uniform_real_distribution<double>(-1, 1)(engine); }
static void expect(double error, double limit, const char *what, long a, long b, long c)
{
	if (error < limit)
		return;
	std::printf("%%s %%ld %%ld %%ld: %%g, not below %%g\n", what, a, b, c, error, limit);
	std::exit(1);
}
"""

# Against the definition of the transform, for every kind, length, stride and number of lines that take another way.
FFT = PYTORCH + r"""
namespace at { enum ScalarType { kFloat, kDouble }; }
#define DECLARE_DISPATCH(type, name) extern type name;
#define REGISTER_DISPATCH(name, kernel) fft_lines_fn name = kernel;
%s
%s
using namespace at;
using namespace at::native;
using Number = std::complex<double>;
static std::vector<Number> defined(const std::vector<Number> &x, double sign)
{
	const long n = static_cast<long>(x.size());
	std::vector<Number> y(n), root(n);
	for (long k = 0; k < n; k++)
		root[k] = std::polar(1.0, sign * 2 * M_PI * static_cast<double>(k) / static_cast<double>(n));
	for (long k = 0; k < n; k++)
		for (long j = 0; j < n; j++)
			y[k] += x[j] * root[j * k %% n];
	return y;
}
template <typename T> void check(long n, long lines, bool beside, FftLines::Kind kind, bool forward)
{
	const long in_n = kind == FftLines::complex_to_real ? n / 2 + 1 : n, out_n = kind == FftLines::real_to_complex ? n / 2 + 1 : n;
	const long in_w = kind == FftLines::real_to_complex ? 1 : 2, out_w = kind == FftLines::complex_to_real ? 1 : 2;
	const auto step = [&](long) { return beside ? lines : 1; };
	std::vector<T> in(in_n * lines * in_w), out(out_n * lines * out_w, T(77));
	for (T &v : in)
		v = static_cast<T>(somewhere());
	const long in_step = step(in_n), in_line = beside ? 1 : in_n, out_step = step(out_n), out_line = beside ? 1 : out_n, s = sizeof(T);
	FftLines task{kind, forward, n, lines, in.data(), in_step * in_w * s, in_line * in_w * s, out.data(), out_step * out_w * s, out_line * out_w * s, 0.5};
	fft_lines_stub(sizeof(T) == 4 ? kFloat : kDouble, task);
	for (long line = 0; line < lines; line++) {
		std::vector<Number> x(n);
		for (long j = 0; j < in_n; j++) {
			const T *v = &in[(line * in_line + j * in_step) * in_w];
			x[j] = in_w == 1 ? Number(v[0]) : Number(v[0], v[1]);
		}
		if (kind == FftLines::complex_to_real) {
			x[0] = x[0].real(); /* of these two the imaginary part does not count */
			x[n / 2] = x[n / 2].real();
			for (long j = n / 2 + 1; j < n; j++)
				x[j] = std::conj(x[n - j]);
		}
		const auto want = defined(x, forward ? -1 : 1);
		double worst = 0;
		for (long k = 0; k < out_n; k++) {
			const T *v = &out[(line * out_line + k * out_step) * out_w];
			worst = std::max(worst, std::abs(0.5 * (out_w == 1 ? Number(want[k].real()) : want[k]) - (out_w == 1 ? Number(v[0]) : Number(v[0], v[1]))));
		}
		expect(worst, (sizeof(T) == 4 ? 1e-6 : 2e-15) * static_cast<double>(n), beside ? "lines side by side" : "lines one after the other", n, lines, static_cast<long>(kind));
	}
}
int main()
{
	for (long n : {4, 8, 16, 32, 64, 128, 256, 512, 1024})
		for (long lines : {1L, 3L, 16L, 37L})
			for (bool beside : {false, true}) {
				if (n * lines > 12000)
					continue;
				check<float>(n, lines, beside, FftLines::complex_to_complex, true);
				check<double>(n, lines, beside, FftLines::complex_to_complex, false);
				check<float>(n, lines, beside, FftLines::complex_to_complex, false);
				check<double>(n, lines, beside, FftLines::real_to_complex, true);
				check<float>(n, lines, beside, FftLines::real_to_complex, true);
				check<double>(n, lines, beside, FftLines::complex_to_real, false);
				check<float>(n, lines, beside, FftLines::complex_to_real, false);
			}
	for (long n : {3, 6, 48, 1 << 17})
		if (FftLines::has(n))
			return 1;
	std::puts("all as defined");
}
"""

# Against A X = B itself: the residual, in units of the rounding error.
SOLVE = PYTORCH + r"""
#include <numeric>
""" + IRANGE + r"""template <typename T> struct ArrayRef {
	const T *p = nullptr; size_t n = 0;
	ArrayRef(const std::vector<T> &v) : p(v.data()), n(v.size()) {}
	ArrayRef(std::initializer_list<T>) {}
	bool empty() const { return n == 0; }
	const T &operator[](int64_t i) const { return p[i]; }
};
enum class TransposeType { NoTranspose, Transpose };
namespace internal { constexpr int64_t GRAIN_SIZE = 32768; }
namespace at { template <typename F> void parallel_for(int64_t begin, int64_t end, int64_t, const F &f) { const int64_t half = (begin + end) / 2; if (half > begin) f(begin, half); if (end > half) f(half, end); } }
namespace cpublas {
template <typename T> void gemm(TransposeType ta, TransposeType tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, const T *b, int64_t ldb, T beta, T *c, int64_t ldc)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			T sum = 0;
			for (int64_t l = 0; l < k; l++)
				sum += (ta == TransposeType::NoTranspose ? a[i + l * lda] : a[l + i * lda]) * (tb == TransposeType::NoTranspose ? b[l + j * ldb] : b[j + l * ldb]);
			c[i + j * ldc] = alpha * sum + beta * c[i + j * ldc];
		}
}
}
template <typename T> void lapackLu(int m, int n, T *a, int lda, int *pivots, int *info)
{
	*info = 0;
	for (int j = 0; j < std::min(m, n); j++) {
		int p = j;
		for (int i = j; i < m; i++)
			if (std::abs(a[i + j * static_cast<int64_t>(lda)]) > std::abs(a[p + j * static_cast<int64_t>(lda)]))
				p = i;
		pivots[j] = p + 1;
		if (a[p + j * static_cast<int64_t>(lda)] == 0) {
			*info = *info ? *info : j + 1;
			continue;
		}
		for (int k = 0; k < n; k++)
			std::swap(a[j + k * static_cast<int64_t>(lda)], a[p + k * static_cast<int64_t>(lda)]);
		for (int i = j + 1; i < m; i++) {
			T f = a[i + j * static_cast<int64_t>(lda)] /= a[j + j * static_cast<int64_t>(lda)];
			for (int k = j + 1; k < n; k++)
				a[i + k * static_cast<int64_t>(lda)] -= f * a[j + k * static_cast<int64_t>(lda)];
		}
	}
}
%s
template <typename T> void triangle(int64_t n, int64_t nrhs, bool transposed, bool lower, bool unit, bool rows)
{
	const int64_t lda = n + 3, rs = rows ? 1 : nrhs + 1, cs = rows ? n + 2 : 1;
	std::vector<T> a(lda * n), x(rows ? cs * nrhs : rs * n);
	for (T &v : a)
		v = static_cast<T>(somewhere() / static_cast<double>(n));
	for (int64_t i = 0; i < n; i++)
		a[i + i * lda] = static_cast<T>(1 + std::abs(somewhere()));
	for (T &v : x)
		v = static_cast<T>(somewhere());
	const std::vector<T> b = x;
	solve_rows<T>({{a.data(), lda, transposed, lower, unit}}, n, nrhs, x.data(), rs, cs, {}, {});
	double worst = 0;
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < nrhs; j++) {
			double sum = unit ? x[i * rs + j * cs] : 0;
			for (int64_t l = lower ? 0 : i + unit; l < (lower ? i + !unit : n); l++)
				sum += static_cast<double>(transposed ? a[l + i * lda] : a[i + l * lda]) * x[l * rs + j * cs];
			worst = std::max(worst, std::abs(sum - b[i * rs + j * cs]));
		}
	expect(worst, sizeof(T) == 4 ? 1e-5 : 1e-14, "triangle", n, nrhs, transposed * 8 + lower * 4 + unit * 2 + rows);
}
template <typename T> void lu(int64_t m, int64_t n, bool singular)
{
	const int64_t lda = m + 5;
	std::vector<T> a(lda * n);
	for (T &v : a)
		v = static_cast<T>(somewhere());
	if (singular)
		std::fill(&a[lda * 100], &a[lda * 100] + m, T(0));
	const std::vector<T> was = a;
	std::vector<int> pivots(std::min(m, n));
	int info = -1;
	lu_in_panels<T>(m, n, a.data(), lda, pivots.data(), &info);
	expect(std::abs(info - (singular ? 101 : 0)), 1, "first zero pivot", m, n, info);
	std::vector<int64_t> row(m);
	std::iota(row.begin(), row.end(), 0);
	for (size_t i = 0; i < pivots.size(); i++)
		std::swap(row[i], row[pivots[i] - 1]);
	double worst = 0;
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = 0;
			for (int64_t l = 0; l <= std::min({i, j, std::min(m, n) - 1}); l++)
				sum += (l == i ? 1.0 : static_cast<double>(a[i + l * lda])) * a[l + j * lda];
			worst = std::max(worst, std::abs(sum - was[row[i] + j * lda]));
		}
	expect(worst, sizeof(T) == 4 ? 2e-4 : 5e-13, "L U", m, n, singular);
}
int main()
{
	for (int64_t n : {32, 33, 64, 97, 130})
		for (int64_t nrhs : {32, 37, 600})
			for (int bits = 0; bits < 16; bits++) {
				triangle<float>(n, nrhs, bits & 8, bits & 4, bits & 2, bits & 1);
				triangle<double>(n, nrhs, bits & 8, bits & 4, bits & 2, bits & 1);
			}
	for (bool singular : {false, true}) {
		lu<float>(200, 200, singular);
		lu<double>(300, 230, singular);
		lu<double>(192, 310, singular);
	}
	std::puts("all solved");
}
"""


# The loop of max_kernel_impl and min_kernel_impl around the added functions, against the plain one.
ROWS = r"""
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>
""" + IRANGE + r"""namespace c10 {
template <typename T> T load(const T *p) { return *p; }
}
template <typename T> bool is_nan(T v) { return v != v; }
%s
template <typename T, typename O> std::pair<T, int64_t> row(const T *data, int64_t size, int64_t stride, bool blocks, O not_better)
{
	T best = data[0];
	int64_t index = 0;
	const auto takes = [&](T value) { return !not_better(value, best); };
	for (int64_t i = 0; i < size; i++) {
		if (blocks)
			i = pass_over(data, i, size, stride, takes);
		if (i == size)
			break;
		T value = data[i * stride];
		if (takes(value)) {
			best = value;
			index = i;
			if (is_nan(value))
				break;
		}
	}
	return {best, index};
}
static int64_t compared;
template <typename T> void check(std::vector<T> from)
{
	std::mt19937_64 engine(1);
	for (int64_t size = 1; size <= 330; size += size < 70 || size > 250 ? 1 : 7)
		for (int64_t stride : {1, 2})
			for (int turn = 0; turn < 12; turn++) {
				std::unique_ptr<T[]> data(new T[size * stride]); /* no vector: that of bool has no addresses */
				for (int64_t i = 0; i < size * stride; i++)
					data[i] = turn == 0 ? from[0] : turn == 1 ? T(i) : turn == 2 ? T(size - i) : from[engine() %% (turn < 8 ? from.size() : 3)];
				for (bool largest : {true, false}) {
					auto order = [&](T a, T b) { return largest ? a <= b : a >= b; };
					auto want = row(data.get(), size, stride, false, order), got = row(data.get(), size, stride, true, order);
					compared++;
					if (want.second != got.second || std::signbit(double(want.first)) != std::signbit(double(got.first)) ||
					    (want.first != got.first && !(is_nan(want.first) && is_nan(got.first)))) {
						std::printf("%%lld of %%lld, stride %%lld\n", (long long)got.second, (long long)size, (long long)stride);
						std::exit(1);
					}
				}
			}
}
int main()
{
	const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
	check<float>({1, -0.0f, 0, 3, -5, inf, -inf, 1e-40f, 2, 2, 2, 7, nan});
	check<double>({1, -0.0, 0, 3, -5, inf, -inf, 1e-310, 2, 2, 2, 7, nan});
	check<float>({1, 2, 3, 4, 5, 6, 7, 8, 9});
	check<int64_t>({1, -2, 3, INT64_MAX, INT64_MIN, 0});
	check<uint8_t>({1, 2, 3, 255, 0});
	check<bool>({true, false, true});
	std::printf("%%lld rows as one by one\n", (long long)compared);
}
"""


# Against the indexer itself, element by element: reading (the offset goes to the source) and writing (to the result).
INDEX = r"""
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <vector>
#define C10_UNLIKELY(what) __builtin_expect(static_cast<bool>(what), 0)
""" + IRANGE + r"""struct Indexer {
	const char *index;
	int64_t index_stride;
	const int64_t *original_sizes, *original_strides;
	int64_t get(int64_t i)
	{
		int64_t value = *reinterpret_cast<const int64_t *>(index + i * index_stride), size = original_sizes[0];
		if (value < -size || value >= size)
			throw std::out_of_range("index " + std::to_string(value));
		return (value < 0 ? value + size : value) * original_strides[0];
	}
};
%s
static long compared, refused;
template <typename T> void check(int64_t n, int64_t size, int64_t step, int64_t index_step, bool writes, int bad)
{
	std::mt19937_64 engine(static_cast<unsigned long>(n * 7 + size));
	std::vector<T> table(size * step), values(n * step);
	std::vector<int64_t> index(n * index_step);
	for (T &v : table)
		v = static_cast<T>(engine() %% 100);
	for (T &v : values)
		v = static_cast<T>(engine() %% 100);
	for (int64_t &v : index)
		v = static_cast<int64_t>(engine() %% (2 * size)) - size;
	if (bad)
		index[n / 2 * index_step] = bad == 1 ? size : bad == 2 ? -size - 1 : bad == 3 ? INT64_MAX : INT64_MIN;
	const int64_t original_stride = step * static_cast<int64_t>(sizeof(T)), s = step * static_cast<int64_t>(sizeof(T));
	const auto write = [](char *dst, char *src, int64_t offset) { *reinterpret_cast<T *>(dst + offset) = *reinterpret_cast<T *>(src); };
	const auto read = [](char *dst, char *src, int64_t offset) { *reinterpret_cast<T *>(dst) = *reinterpret_cast<T *>(src + offset); };
	std::string said[2];
	std::vector<T> results[2];
	for (int way = 0; way < 2; way++) {
		std::vector<T> a = table, b = values;
		char *t = reinterpret_cast<char *>(a.data()), *v = reinterpret_cast<char *>(b.data());
		char *data[3] = {writes ? t : v, writes ? v : t, reinterpret_cast<char *>(index.data())};
		const int64_t strides[3] = {writes ? 0 : s, writes ? s : 0, index_step * 8};
		Indexer indexer{data[2], strides[2], &size, &original_stride};
		try {
			if (way == 0)
				for (int64_t i = 0; i < n; i++) {
					int64_t offset = indexer.get(i);
					writes ? write(data[0], data[1] + s * i, offset) : read(data[0] + s * i, data[1], offset);
				}
			else if (writes)
				index_by_one(indexer, data, strides, n, write);
			else
				index_by_one(indexer, data, strides, n, read);
		} catch (const std::out_of_range &e) {
			said[way] = e.what();
			refused++;
		}
		results[way] = writes ? a : b;
	}
	compared++;
	if (results[0] != results[1] || said[0] != said[1] || said[0].empty() != (bad == 0)) {
		std::printf("n %%lld, size %%lld, step %%lld, %%d, bad %%d: %%s and %%s\n", (long long)n, (long long)size, (long long)step, writes, bad, said[0].c_str(), said[1].c_str());
		std::exit(1);
	}
}
int main()
{
	for (int64_t n : {1, 2, 15, 16, 17, 64, 1000})
		for (int64_t size : {1, 3, 100, 5000})
			for (int64_t step : {1, 3})
				for (int64_t index_step : {1, 2})
					for (bool writes : {false, true})
						for (int bad = 0; bad < 5; bad++) {
							check<float>(n, size, step, index_step, writes, bad);
							check<int8_t>(n, size, step, index_step, writes, bad);
							check<int64_t>(n, size, step, index_step, writes, bad);
							check<std::complex<double>>(n, size, step, index_step, writes, bad);
						}
	std::printf("%%ld as the indexer, %%ld refused\n", compared, refused / 2);
}
"""

# Blocks as alloc_cpu takes them: where each begins, and what a small one gets.
ROOM = r"""
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
static bool is_thp_alloc(size_t n) { return n >= (2 << 20); }
%s
int main()
{
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	char *start[8];
	const size_t n = 4 << 20;
	size_t nearest = n;
	for (char *&p : start)
		if (posix_memalign(reinterpret_cast<void **>(&p), 64, getenv("PLAIN") ? n : with_room(n)))
			return 1;
	for (char *a : start)
		for (char *b : start)
			if (a != b && static_cast<size_t>(b - a) %% (1 << 20) < nearest)
				nearest = static_cast<size_t>(b - a) %% (1 << 20);
	std::printf("%%zu %%zu", with_room(1000), nearest);
}
"""

# Against exp of a double, in units of the last place.
EXP = r"""
#include <immintrin.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
template <typename T> struct Vectorized {
	__m512 values;
	Vectorized(__m512 v) : values(v) {}
%s
};
static float one(float x)
{
	return _mm512_cvtss_f32(Vectorized<float>(_mm512_set1_ps(x)).exp().values);
}
int main()
{
	double worst[2] = {0, 0};
	float in[16], out[16];
	for (uint64_t bits = 0; bits < UINT32_MAX - 16 * 1009; bits += 16 * 1009) {
		for (int i = 0; i < 16; i++) {
			uint32_t u = static_cast<uint32_t>(bits + i * 1009);
			memcpy(in + i, &u, 4);
		}
		_mm512_storeu_ps(out, Vectorized<float>(_mm512_loadu_ps(in)).exp().values);
		for (int i = 0; i < 16; i++) {
			if (!(in[i] > -105 && in[i] < 88.7228f))
				continue;
			const double want = std::exp(static_cast<double>(in[i]));
			const bool small = want < 0x1p-126;
			int e;
			std::frexp(want, &e);
			worst[small] = std::fmax(worst[small], std::fabs(want - static_cast<double>(out[i])) / std::ldexp(1.0, (small ? -125 : e) - 24));
		}
	}
	const float inf = INFINITY;
	bool right = one(inf) == inf && one(-inf) == 0 && one(NAN) != one(NAN) && one(0) == 1 && one(-0.0f) == 1 && one(1e-45f) == 1;
	right = right && one(88.73f) == inf && one(1e30f) == inf && one(-104) == 0 && one(-1e30f) == 0 && one(-103.9f) > 0;
	std::printf("%%s %%.4f %%.4f", right ? "right" : "wrong", worst[0], worst[1]);
}
"""

# Against one addition after the other. Sums of these numbers are exact in double precision.
SUMS = r"""
#include <immintrin.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <type_traits>
#include <vector>
%s
int main()
{
	std::mt19937_64 engine(1);
	long compared = 0;
	for (int64_t n = 0; n < 70000; n += n < 70 ? 1 : 6997)
		for (int kind = 0; kind < 4; kind++) {
			std::vector<float> x(n + 1, 5), got(n + 1, 77);
			for (int64_t i = 0; i < n; i++)
				x[i] = static_cast<float>(static_cast<int64_t>(engine() %% (1 << 21)) - (1 << 20)) / 1024;
			if (kind && n)
				x[engine() %% n] = kind == 1 ? INFINITY : kind == 2 ? -INFINITY : NAN;
			std::vector<float> want = x;
			double sum = 0;
			for (int64_t i = 0; i < n; i++)
				want[i] = static_cast<float>(sum += x[i]);
			want[n] = 77;
			cumsum_of_eights(got.data(), x.data(), n);
			cumsum_of_eights(x.data(), x.data(), n);
			for (int64_t i = 0; i <= n; i++, compared++) {
				const bool same = want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]));
				const bool in_place = i == n ? x[i] == 5 : x[i] == got[i] || std::isnan(got[i]);
				if (same && in_place)
					continue;
				std::printf("n %%lld, kind %%d, place %%lld: %%g and %%g", (long long)n, kind, (long long)i, want[i], got[i]);
				return 1;
			}
		}
	std::printf("%%ld as one by one", compared);
}
"""

GEMV = r"""
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <vector>
""" + IRANGE + r"""
enum class TransposeType { NoTranspose, Transpose };
/* As the BLAS describes it; where beta is 0, y is multiplied all the same. */
extern "C" void sgemv_(char *trans, int *m, int *n, float *alpha, float *a, int *lda, float *x, int *incx, float *beta, float *y, int *incy)
{
	const bool turned = *trans == 't';
	if (*lda < *m)
		std::abort();
	for (int i = 0; i < (turned ? *n : *m); i++) {
		float sum = 0;
		for (int j = 0; j < (turned ? *m : *n); j++)
			sum += (turned ? a[i * *lda + j] : a[j * *lda + i]) * x[j * *incx];
		y[i * *incy] = *alpha * sum + *beta * y[i * *incy];
	}
}
%s
int main()
{
	using T = TransposeType;
	long compared = 0;
	for (int64_t kind = 0; kind < 1 << 7; kind++)
		for (int64_t outer : {1, 2, 7})
			for (int64_t k : {1, 3, 8}) {
				const T ta = kind & 1 ? T::Transpose : T::NoTranspose, tb = kind & 2 ? T::Transpose : T::NoTranspose;
				const int64_t m = kind & 4 ? 1 : outer, n = kind & 4 ? outer : 1, more = kind & 8 ? 2 : 0;
				const int64_t lda = (kind & 1 ? k : m) + more, ldb = (kind & 2 ? n : k) + more, ldc = m + more;
				const float alpha = kind & 16 ? 2 : 1, beta = kind & 32 ? (kind & 64 ? 3 : 1) : 0;
				std::vector<float> a(lda * (kind & 1 ? m : k)), b(ldb * (kind & 2 ? k : n)), c(ldc * n);
				for (size_t i = 0; i < a.size(); i++)
					a[i] = static_cast<float>(i %% 11) - 5;
				for (size_t i = 0; i < b.size(); i++)
					b[i] = static_cast<float>(i %% 7) - 3;
				for (size_t i = 0; i < c.size(); i++)
					c[i] = kind & 64 && beta == 0 ? NAN : static_cast<float>(i %% 5);
				std::vector<float> got = c;
				gemm_by_gemv(ta, tb, m, n, k, alpha, a.data(), lda, b.data(), ldb, beta, got.data(), ldc);
				for (int64_t col = 0; col < n; col++)
					for (int64_t row = 0; row < ldc; row++, compared++) {
						float want = c[col * ldc + row];
						if (row < m) {
							float sum = 0;
							for (int64_t i = 0; i < k; i++)
								sum += (kind & 1 ? a[row * lda + i] : a[i * lda + row]) * (kind & 2 ? b[i * ldb + col] : b[col * ldb + i]);
							want = alpha * sum + (beta == 0 ? 0 : beta * want);
						}
						const float is = got[col * ldc + row];
						if (is == want || (row >= m && std::isnan(is) && std::isnan(want)))
							continue;
						std::printf("kind %%d, m %%d, n %%d, k %%d: %%g and %%g", (int)kind, (int)m, (int)n, (int)k, is, want);
						return 1;
					}
			}
	std::printf("%%ld as the product of matrices", compared);
}
"""


def added(name, begin, end):
    """The lines that a patch adds, from the one that begins so to the one before that which begins so."""
    with open(os.path.join(PATCHES, name), encoding="utf-8") as file:
        lines = re.split(r"^--- a/", file.read(), maxsplit=1, flags=re.M)[1].splitlines()
    text = [line[1:] for line in lines if line[:1] in "+ "]
    first = next(i for i, line in enumerate(text) if line.startswith(begin))
    last = next(i for i, line in enumerate(text) if i > first and line.startswith(end))
    return "\n".join(text[first:last])


def added_file(name, path):
    """A file that a patch adds, without its includes of PyTorch."""
    with open(os.path.join(PATCHES, name), encoding="utf-8") as file:
        text = file.read().split(f"+++ b/{path}\n", 1)[1]
    lines = [line[1:] for line in itertools.takewhile(lambda line: line[:1] in "+@", text.splitlines()) if line[0] == "+"]
    return "\n".join(line for line in lines if not re.match(r"#include <(ATen|c10)/|#pragma once", line))


def run(source, flags=(), **env):
    with tempfile.TemporaryDirectory() as d:
        with open(f"{d}/x.cpp", "w", encoding="utf-8") as file:
            file.write(source)
        done = subprocess.run(["g++", "-std=c++17", "-O1", "-Wall", "-Werror", "-Wno-unused-function", *flags, f"{d}/x.cpp", "-o", f"{d}/x"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        there = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_") and k != "GLIBC_TUNABLES"}
        done = subprocess.run([f"{d}/x"], capture_output=True, text=True, env={**there, **env})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


class Added(unittest.TestCase):
    def test_sort(self):
        self.assertEqual(run(SORT % added("radix-sort.patch", "template <typename scalar_t>", "static void sort_kernel(")), "all as std::stable_sort\n")

    def test_freed_memory(self):
        code = MEMORY % ("#include <malloc.h>\n#include <cstdlib>\n" + added("keep-freed-memory.patch", "[[maybe_unused]] const bool keeps_freed_memory", "#endif"))
        # 36 MiB a turn. What the user sets counts; glibc 2.41's default as well as 2.36's faults each page in anew.
        self.assertLess(int(run(code)), 1000)
        self.assertGreater(int(run(code, MALLOC_TRIM_THRESHOLD_="131072", MALLOC_MMAP_THRESHOLD_="131072")), 10 * 36 * 256 // 2)

    def test_fft(self):
        path = "aten/src/ATen/native/cpu/FftLines"
        code = FFT % (added_file("fft-in-vectors.patch", f"{path}.h"), added_file("fft-in-vectors.patch", f"{path}Kernel.cpp"))
        for flags in (self.vectors()[0], self.vectors()[-1]):
            with self.subTest(flags=flags):
                self.assertEqual(run(code, flags), "all as defined\n")

    def test_linear_systems(self):
        code = added("linear-systems.patch", "#if AT_BUILD_WITH_BLAS()", "/*")
        self.assertEqual(run(SOLVE % code, self.vectors()[-1]), "all solved\n")

    def test_rows_in_blocks(self):
        code = added("rows-in-blocks.patch", "// Of a row most blocks", "static void min_kernel_impl(")
        for flags in self.vectors():
            with self.subTest(flags=flags):
                self.assertEqual(run(ROWS % code, [*flags, "-O3"]), "50112 rows as one by one\n")

    def test_index_by_one(self):
        code = added("index-by-one.patch", "// With one index tensor", "template <typename scalar_t, typename func_t>")
        for flags in self.vectors():
            with self.subTest(flags=flags):
                self.assertEqual(run(INDEX % code, [*flags, "-O3"]), "4480 as the indexer, 3584 refused\n")

    def test_room_behind_blocks(self):
        code = ROOM % added("huge-pages.patch", "inline size_t with_room", "#endif")
        small, nearest = map(int, run(code).split())
        self.assertEqual(small, 1000)
        self.assertGreaterEqual(nearest, 16384)
        self.assertLess(int(run(code, PLAIN="1").split()[1]), 1024)

    def avx512(self):
        flags = self.vectors()[-1]
        if "-mavx512f" not in flags:
            self.skipTest("this processor has no AVX-512")
        return [*flags, "-O2", "-Wno-maybe-uninitialized", "-Wno-uninitialized"]  # GCC 12, of its own header

    def test_exp(self):
        flags = self.avx512()
        said, normal, denormal = run(EXP % added("exp-by-table.patch", "  // 2^(n/16)", "  Vectorized<float> exp2()"), flags).split()
        self.assertEqual(said, "right")
        self.assertLess(float(normal), 0.68)
        self.assertLess(float(denormal), 0.76)

    def test_running_sums(self):
        flags = self.avx512()
        self.assertRegex(run(SUMS % added("running-sums.patch", "static inline void cumsum_of_eights", "#endif"), flags), r"^\d+ as one by one$")

    def test_vectors_by_gemv(self):
        code = added("vectors-by-gemv.patch", "static void gemm_by_gemv(", "#endif")
        self.assertRegex(run(GEMV % code), r"^\d+ as the product of matrices$")

    @staticmethod
    def vectors():
        """What PyTorch compiles its kernels with, as far as this processor goes."""
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            has = set(file.read().split())
        flags = [[]]
        if {"avx2", "fma"} <= has:
            flags.append(["-DCPU_CAPABILITY_AVX2", "-mavx2", "-mfma"])
        if {"avx512f", "avx512dq", "avx512vl", "avx512bw"} <= has:
            flags.append(["-DCPU_CAPABILITY_AVX512", "-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma"])
        return flags

    def test_own_libraries_come_first(self):
        line = added("link-own-libraries.patch", "    libraries_dirs = torch", "    libraries =")
        names = {"python_libraries_dirs": ["/usr/lib"], "torch_libraries_dirs": ["torch/lib"], "omp_lib_dir_paths": []}
        exec(line.strip(), names)
        self.assertEqual(names["libraries_dirs"], ["torch/lib", "/usr/lib"])


if __name__ == "__main__":
    unittest.main()
