// One source, several instruction sets: the loader picks the widest that the processor has.
//
// Nothing here allows fused multiply-add or reordering (the build sets -ffp-contract=off), so every
// version returns the same bits; only the speed differs.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(MAXMARGIN_SANITIZE)
#define MAXMARGIN_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MAXMARGIN_CLONES
#endif

#define MAXMARGIN_INLINE inline __attribute__((always_inline))
