// What the native tests share: a check that ends the program, and the test functions of each file.
#pragma once

#include <cstdio>
#include <cstdlib>

inline void check(bool condition, const char* what) {
  if (!condition) {
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
  }
}

void test_parallel();
void test_kernel_blocks();
void test_pairwise();
void test_free_variables();
void test_selection();
void test_linear_models();
void test_ridged_newton();
void test_passes();
void test_online();
void test_extended();
