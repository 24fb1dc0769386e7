#!/usr/bin/python3
"""Code that patches add to PyTorch, taken out of the patch, compiled alone and run: radix-sort.patch and keep-freed-memory.patch."""
import os
import re
import subprocess
import tempfile
import unittest

PATCHES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../patches/pytorch/2.6.0-debian")

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
struct range { int64_t a, b; struct it { int64_t i; int64_t operator*() const { return i; } void operator++() { ++i; } bool operator!=(it o) const { return i != o.i; } }; it begin() const { return {a}; } it end() const { return {b}; } };
static range irange(int64_t n) { return {0, n}; }
}
template <typename T> bool _isnan(T v) { if constexpr (std::is_integral_v<T>) return false; else return real(v) != real(v); }
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


def added(name, begin, end):
    """The lines that a patch adds, from the one that begins so to the one before that which begins so."""
    with open(os.path.join(PATCHES, name), encoding="utf-8") as file:
        lines = re.split(r"^--- a/", file.read(), maxsplit=1, flags=re.M)[1].splitlines()
    text = [line[1:] for line in lines if line[:1] in "+ "]
    first = next(i for i, line in enumerate(text) if line.startswith(begin))
    last = next(i for i, line in enumerate(text) if i > first and line.startswith(end))
    return "\n".join(text[first:last])


def run(source, **env):
    with tempfile.TemporaryDirectory() as d:
        with open(f"{d}/x.cpp", "w", encoding="utf-8") as file:
            file.write(source)
        done = subprocess.run(["g++", "-std=c++17", "-O2", "-Wall", "-Werror", "-Wno-unused-function", f"{d}/x.cpp", "-o", f"{d}/x"], capture_output=True, text=True)
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


if __name__ == "__main__":
    unittest.main()
