/* Arithmetic that no compiler flag contracts: two classes whose operators are the round-to-nearest
 * intrinsics. A multiplication and an addition of these stay two operations even where nvcc's
 * default, --fmad=true, would fuse them. */
struct ds_d;
struct ds_f {
    float v;
    __device__ ds_f()
    {
    }
    __device__ ds_f(float x) : v(x)
    {
    }
    __device__ ds_f(int x) : v((float)x)
    {
    }
    __device__ explicit ds_f(double x) : v((float)x)
    {
    }
    __device__ explicit inline ds_f(ds_d x);
    template <class T> ds_f(T) = delete; /* nothing narrows by itself */
    __device__ explicit operator float() const
    {
        return v;
    }
    __device__ explicit operator double() const
    {
        return v;
    }
    __device__ friend ds_f operator+(ds_f a, ds_f b)
    {
        return __fadd_rn(a.v, b.v);
    }
    __device__ friend ds_f operator-(ds_f a, ds_f b)
    {
        return __fsub_rn(a.v, b.v);
    }
    __device__ friend ds_f operator*(ds_f a, ds_f b)
    {
        return __fmul_rn(a.v, b.v);
    }
    __device__ friend ds_f operator/(ds_f a, ds_f b)
    {
        return __fdiv_rn(a.v, b.v);
    }
    __device__ friend ds_f operator-(ds_f a)
    {
        return -a.v;
    }
    __device__ friend bool operator<(ds_f a, ds_f b)
    {
        return a.v < b.v;
    }
    __device__ friend bool operator<=(ds_f a, ds_f b)
    {
        return a.v <= b.v;
    }
    __device__ friend bool operator>(ds_f a, ds_f b)
    {
        return a.v > b.v;
    }
    __device__ friend bool operator>=(ds_f a, ds_f b)
    {
        return a.v >= b.v;
    }
    __device__ friend bool operator==(ds_f a, ds_f b)
    {
        return a.v == b.v;
    }
    __device__ friend bool operator!=(ds_f a, ds_f b)
    {
        return a.v != b.v;
    }
};
struct ds_d {
    double v;
    __device__ ds_d()
    {
    }
    __device__ ds_d(double x) : v(x)
    {
    }
    __device__ ds_d(float x) : v(x)
    {
    }
    __device__ ds_d(int x) : v(x)
    {
    }
    __device__ ds_d(ds_f x) : v(x.v)
    {
    }
    __device__ explicit ds_d(long long x) : v((double)x)
    {
    }
    __device__ explicit operator double() const
    {
        return v;
    }
    __device__ explicit operator float() const
    {
        return (float)v;
    }
    __device__ explicit operator int() const
    {
        return (int)v;
    }
    __device__ explicit operator long long() const
    {
        return (long long)v;
    }
    __device__ friend ds_d operator+(ds_d a, ds_d b)
    {
        return __dadd_rn(a.v, b.v);
    }
    __device__ friend ds_d operator-(ds_d a, ds_d b)
    {
        return __dsub_rn(a.v, b.v);
    }
    __device__ friend ds_d operator*(ds_d a, ds_d b)
    {
        return __dmul_rn(a.v, b.v);
    }
    __device__ friend ds_d operator/(ds_d a, ds_d b)
    {
        return __ddiv_rn(a.v, b.v);
    }
    __device__ friend ds_d operator-(ds_d a)
    {
        return -a.v;
    }
    __device__ friend bool operator<(ds_d a, ds_d b)
    {
        return a.v < b.v;
    }
    __device__ friend bool operator<=(ds_d a, ds_d b)
    {
        return a.v <= b.v;
    }
    __device__ friend bool operator>(ds_d a, ds_d b)
    {
        return a.v > b.v;
    }
    __device__ friend bool operator>=(ds_d a, ds_d b)
    {
        return a.v >= b.v;
    }
    __device__ friend bool operator==(ds_d a, ds_d b)
    {
        return a.v == b.v;
    }
    __device__ friend bool operator!=(ds_d a, ds_d b)
    {
        return a.v != b.v;
    }
};
__device__ inline ds_f::ds_f(ds_d x) : v((float)x.v)
{
}
DS_FN ds_u64 ds_bits(ds_d x)
{
    return ds_bits(x.v);
}
DS_FN ds_u32 ds_bitsf(ds_f x)
{
    return ds_bitsf(x.v);
}
DS_FN ds_f ds_root(ds_f x)
{
    return __fsqrt_rn(x.v);
}
DS_FN ds_d ds_root(ds_d x)
{
    return __dsqrt_rn(x.v);
}
DS_FN ds_f ds_fused(ds_f a, ds_f b, ds_f c)
{
    return __fmaf_rn(a.v, b.v, c.v);
}
DS_FN ds_d ds_fused(ds_d a, ds_d b, ds_d c)
{
    return __fma_rn(a.v, b.v, c.v);
}
DS_FN double ds_raw(ds_d x)
{
    return x.v;
}
DS_FN double ds_raw(ds_f x)
{
    return x.v;
}
DS_FN double ds_raw(double x)
{
    return x;
}
DS_FN double ds_raw(float x)
{
    return x;
}
DS_FN double ds_raw(int x)
{
    return x;
}
#define ds_from(u) ds_d(ds_from(u))
#define ds_fromf(u) ds_f(ds_fromf(u))
#undef DS_SQRT
#undef DS_SQRTF
#define DS_SQRT(x) ds_root(ds_d(x))
#define DS_SQRTF(x) ds_root(ds_f(x))
#define DS_FMA(a, b, c) ds_fused(a, b, c)
#define DS_FMAF(a, b, c) ds_fused(a, b, c)
#define double ds_d
#define float ds_f
