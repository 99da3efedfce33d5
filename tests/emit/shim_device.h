/* shim_device.h - enough of CUDA to run emitted kernels as C++ on the host: one fiber per thread of
 * a block, blocks one after the other, shuffles and barriers by switching fibers.
 *
 *   in:  this file, the .cu text, its .h, then shim_run.h, compiled by g++ -x c++
 *   out: a shared library with shim_step(const ShimStep *)
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __CUDACC__ 1
#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __builtin_assume(x) ((void)0)

struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));
struct ushort4 {
    unsigned short x, y, z, w;
} __attribute__((aligned(8)));

static struct ShimIndex {
    unsigned x, y;
} threadIdx, blockIdx, blockDim, gridDim;

namespace shim
{
enum { THREADS = 256, STACK = 256 * 1024 };
enum State { FRESH, RUNNING, WAITING, DONE };
/* Contexts begin a fiber; later switches are jumps, which ask nothing of the kernel. */
static ucontext_t scheduler, fiber[THREADS];
static jmp_buf back, there[THREADS];
static State state[THREADS];
static double lane_value[2][THREADS];
static unsigned parity[THREADS];
static void (*body)(void *);
static void *argument;

static void leave(State s)
{
    unsigned me = threadIdx.x;
    state[me] = s;
    if (_setjmp(there[me]) == 0) _longjmp(back, 1);
}
static void enter(unsigned t)
{
    bool fresh = state[t] == FRESH;
    threadIdx.x = t;
    state[t] = RUNNING;
    if (_setjmp(back) == 0) {
        if (fresh) swapcontext(&scheduler, &fiber[t]);
        _longjmp(there[t], 1);
    }
}
static void run_body()
{
    body(argument);
    leave(DONE);
}
static struct Stacks {
    char *all;
    Stacks() : all((char *)malloc((size_t)THREADS * STACK)) {}
    ~Stacks() { free(all); }
} stacks;
static void run_block()
{
    for (unsigned t = 0; t < blockDim.x; t++) {
        getcontext(&fiber[t]);
        fiber[t].uc_stack.ss_sp = stacks.all + (size_t)t * STACK;
        fiber[t].uc_stack.ss_size = STACK;
        fiber[t].uc_link = &scheduler;
        makecontext(&fiber[t], run_body, 0);
        state[t] = FRESH;
        parity[t] = 0;
    }
    for (;;) {
        bool ran = false, waits = false;
        for (unsigned t = 0; t < blockDim.x; t++) {
            if (state[t] == FRESH || state[t] == RUNNING) {
                enter(t);
                ran = true;
            }
            waits = waits || state[t] == WAITING;
        }
        if (!ran && !waits) return;
        for (unsigned t = 0; !ran && t < blockDim.x; t++) {
            if (state[t] == WAITING) state[t] = RUNNING;
        }
    }
}
static void launch(unsigned x, unsigned y, void (*fn)(void *), void *arg)
{
    body = fn;
    argument = arg;
    gridDim.x = x;
    gridDim.y = y;
    blockDim.x = THREADS;
    for (unsigned b = 0; b < x * y; b++) {
        blockIdx.x = b % x;
        blockIdx.y = b / x;
        run_block();
    }
}
} // namespace shim

static inline void __syncthreads()
{
    shim::leave(shim::WAITING);
}
/* All lanes of a warp come here together; each publishes, lets the others publish, then reads. */
static inline double __shfl_down_sync(unsigned, double x, int by)
{
    unsigned me = threadIdx.x, side = shim::parity[me]++ & 1;
    shim::lane_value[side][me] = x;
    shim::leave(shim::RUNNING);
    return (me & 31) + by < 32 ? shim::lane_value[side][me + by] : x;
}

static inline double __shfl_sync(unsigned, double x, int from)
{
    unsigned me = threadIdx.x, side = shim::parity[me]++ & 1;
    shim::lane_value[side][me] = x;
    shim::leave(shim::RUNNING);
    return shim::lane_value[side][(me & ~31u) + (from & 31)];
}

template <class To, class From> static inline To shim_bits(From x)
{
    To y;
    static_assert(sizeof x == sizeof y, "a cast of bits");
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline long long __double_as_longlong(double x)
{
    return shim_bits<long long>(x);
}
static inline double __longlong_as_double(long long x)
{
    return shim_bits<double>(x);
}
static inline unsigned __float_as_uint(float x)
{
    return shim_bits<unsigned>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return shim_bits<float>(x);
}
static inline bool __isGlobal(const void *)
{
    return true;
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fsqrt_rn(float a)
{
    return __builtin_sqrtf(a);
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dsub_rn(double a, double b)
{
    return a - b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
static inline double __dsqrt_rn(double a)
{
    return __builtin_sqrt(a);
}
static inline double __fma_rn(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}
