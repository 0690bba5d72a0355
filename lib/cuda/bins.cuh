// SPDX-License-Identifier: MIT
// Complex numbers as kernels hold them.
#ifndef PARTITA_CUDA_BINS_CUH
#define PARTITA_CUDA_BINS_CUH

template <typename T> struct __align__(2 * sizeof(T)) bin
{
    T re, im;
};

template <typename T> inline __device__ bin<T> operator+(bin<T> a, bin<T> b)
{
    return {a.re + b.re, a.im + b.im};
}

template <typename T> inline __device__ bin<T> operator-(bin<T> a, bin<T> b)
{
    return {a.re - b.re, a.im - b.im};
}

template <typename T> inline __device__ bin<T> operator*(bin<T> a, bin<T> b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <typename T> inline __device__ bin<T> scaled(bin<T> a, T factor)
{
    return {a.re * factor, a.im * factor};
}

template <typename T> inline __device__ bin<T> conjugate(bin<T> a)
{
    return {a.re, -a.im};
}

// i times a.
template <typename T> inline __device__ bin<T> turned(bin<T> a)
{
    return {-a.im, a.re};
}

#endif
