// SPDX-License-Identifier: MIT
// Complex numbers of kernels, as arrays have them: real part first.
#ifndef PARTITA_CUDA_COMPLEX_CUH
#define PARTITA_CUDA_COMPLEX_CUH

#include <cuda_runtime.h>

template <typename T> struct __align__(2 * sizeof(T)) complex_of
{
    T re, im;
};

template <typename T> inline __device__ complex_of<T> operator+(complex_of<T> a, complex_of<T> b)
{
    return {a.re + b.re, a.im + b.im};
}

template <typename T> inline __device__ complex_of<T> operator-(complex_of<T> a, complex_of<T> b)
{
    return {a.re - b.re, a.im - b.im};
}

template <typename T> inline __device__ complex_of<T> operator*(complex_of<T> a, complex_of<T> b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <typename T> inline __device__ complex_of<T> conjugated(complex_of<T> a)
{
    return {a.re, -a.im};
}

template <typename T> inline __device__ complex_of<T> scaled(complex_of<T> a, T factor)
{
    return {a.re * factor, a.im * factor};
}

template <typename T> inline __device__ void multiply_add(T &sum, T a, T b)
{
    sum += a * b;
}

template <typename T>
inline __device__ void multiply_add(complex_of<T> &sum, complex_of<T> a, complex_of<T> b)
{
    sum.re += a.re * b.re;
    sum.im += a.re * b.im;
    sum.re -= a.im * b.im;
    sum.im += a.im * b.re;
}

#endif
