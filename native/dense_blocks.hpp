// Blocks of kernel values of dense samples: the sum over features, the kernel function and the store are one pass, in
// which the values stay in registers.
//
// Columns are packed into panels of two vectors, feature by feature; rows into strips of as many as the registers hold.
// The sum of a pair runs over the features in order and in one lane, so a value depends on the two samples alone, never
// on the block they were computed in: a fit is repeatable at any cache size and number of threads.
//
// The Gaussian of a product, exp(γ (x·z − ½‖x‖² − ½‖z‖²)), takes one multiplication a feature, but the error of its
// exponent grows with the norms, about 1e-7 γ (½‖x‖² + ½‖z‖²). If one of the samples is near the centre of the data,
// the value is small where that error is large. If both are far from it, the differences of the features are summed.
#pragma once

#include <cstdint>

#include "kernel_loops.hpp"
#include "kernel_terms.hpp"
#include "simd.hpp"
#include "transpose.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

template <class T> constexpr int kPanel = 2 * kWidth<T>;

// Interleave samples in groups of `width`: out[group][feature][member] = scale (x − shift), shift 0 and scale 1
// where they are null; the last group is padded with 0.
// half_norms[k] = ½ Σ of the squares of the stored values.
template <class T, class Source>
void pack(const Source* data, const std::int64_t* indices, std::int64_t count, std::int64_t features, int width,
          const double* shift, const double* scale, T* out, T* half_norms) {
  typedef double Four __attribute__((vector_size(4 * sizeof(double))));
  typedef T FourStored __attribute__((vector_size(4 * sizeof(T))));
  for (std::int64_t begin = 0; begin < count; begin += width, out += features * width) {
    int w = 0;
    for (; w + 4 <= width && begin + w + 4 <= count; w += 4) {  // four independent sums at a time
      const std::int64_t* which = indices + begin + w;
      const Source *x = data + which[0] * features, *y = data + which[1] * features;
      const Source *z = data + which[2] * features, *v = data + which[3] * features;
      Four norms{};
      for (std::int64_t k = 0; k < features; ++k) {
        const Four four = {static_cast<double>(x[k]), static_cast<double>(y[k]), static_cast<double>(z[k]),
                           static_cast<double>(v[k])};
        const Four moved = (four - (shift ? shift[k] : 0.0)) * (scale ? scale[k] : 1.0);
        const FourStored values = __builtin_convertvector(moved, FourStored);
        std::memcpy(out + k * width + w, &values, sizeof values);
        const Four stored = __builtin_convertvector(values, Four);
        norms += stored * stored;
      }
      for (int m = 0; m < 4; ++m) half_norms[begin + w + m] = static_cast<T>(0.5 * norms[m]);
    }
    for (; w < width; ++w) {
      const bool padding = begin + w >= count;
      const Source* x = padding ? nullptr : data + indices[begin + w] * features;
      double norm = 0.0;
      for (std::int64_t k = 0; k < features; ++k) {
        const double moved = padding ? 0.0 : (x[k] - (shift ? shift[k] : 0.0)) * (scale ? scale[k] : 1.0);
        const T value = static_cast<T>(moved);
        out[k * width + w] = value;
        norm += static_cast<double>(value) * value;
      }
      half_norms[begin + w] = static_cast<T>(0.5 * norm);
    }
  }
}

// From the sum of a pair to its kernel value; the sum of gaussian_of_product is −½‖x − z‖².
template <class T> MAXMARGIN_INLINE Vec<T> kernel_value(const Formula& f, Vec<T> sum) {
  switch (f.function) {
    case Function::power: {
      Vec<T> base = sum * static_cast<T>(f.gamma) + static_cast<T>(f.coef0), result = repeat<T>(T(1));
      for (int rest = f.degree; rest; rest /= 2, base *= base)
        if (rest % 2) result *= base;
      return result;
    }
    case Function::exponential: {
      const Vec<T> distance = sum < 0 ? Vec<T>{} : sum;  // sums over sparse rows may round below zero
      return exponential<T>(distance * static_cast<T>(-f.gamma));
    }
    case Function::gaussian_of_product: {
      const Vec<T> exponent = sum * static_cast<T>(f.gamma);
      return exponential<T>(exponent > 0 ? Vec<T>{} : exponent);
    }
    case Function::tangent:
      return hyperbolic_tangent<T>(sum * static_cast<T>(f.gamma) + static_cast<T>(f.coef0));
    default:
      return sum;
  }
}

// The sums of one strip of rows with one panel of columns.
template <class T, class Term>
MAXMARGIN_INLINE void strip_by_panel(const T* strip, const T* panel, std::int64_t features, Vec<T> (&sums)[kStrip][2]) {
#pragma GCC unroll 16
  for (int r = 0; r < kStrip; ++r) sums[r][0] = sums[r][1] = Vec<T>{};
  for (std::int64_t k = 0; k < features; ++k, strip += kStrip, panel += kPanel<T>) {
    const Vec<T> first = load_vector(panel), second = load_vector(panel + kWidth<T>);
#pragma GCC unroll 16
    for (int r = 0; r < kStrip; ++r) {
      const Vec<T> x = repeat<T>(strip[r]);
      sums[r][0] += Term::template term<Vec<T>>(x, first);
      sums[r][1] += Term::template term<Vec<T>>(x, second);
    }
  }
}

template <class T> MAXMARGIN_INLINE bool is_far(const Formula& f, T half_norm) {
  return static_cast<double>(half_norm) * f.gamma > kMaxProductExponent;
}

template <class T> MAXMARGIN_INLINE bool any_far(const Formula& f, const T* half_norms, int count) {
  if (f.function != Function::gaussian_of_product) return false;
  bool any = false;
  for (int k = 0; k < count; ++k) any |= is_far(f, half_norms[k]);
  return any;
}

// Sum the differences of a far sample x to the far samples of a panel. The features of x are `stride` apart.
template <class T>
[[gnu::noinline]] void replace_far_sums(const Formula& f, const T* x, std::int64_t stride, const T* panel,
                                        const T* half_norms, std::int64_t features, Vec<T> (&sums)[2]) {
  Vec<T> squares[2] = {};
  for (std::int64_t k = 0; k < features; ++k)
    for (int half = 0; half < 2; ++half)
      squares[half] += SquaredDifference::term<Vec<T>>(repeat<T>(x[k * stride]),
                                                       load_vector(panel + k * kPanel<T> + half * kWidth<T>));
  for (int half = 0; half < 2; ++half)
    for (int l = 0; l < kWidth<T>; ++l)
      if (is_far(f, half_norms[half * kWidth<T> + l])) sums[half][l] = T(-0.5) * squares[half][l];
}

// The same for the far samples of a strip.
template <class T>
[[gnu::noinline]] void replace_far_sums(const Formula& f, const T* strip, const T* strip_norms, const T* panel,
                                        const T* panel_norms, std::int64_t features, Vec<T> (&sums)[kStrip][2]) {
  for (int r = 0; r < kStrip; ++r)
    if (is_far(f, strip_norms[r])) replace_far_sums<T>(f, strip + r, kStrip, panel, panel_norms, features, sums[r]);
}

// The sums of one strip of rows with one panel of columns, of which kernel values are functions.
template <class T, class Term>
MAXMARGIN_INLINE void kernel_sums(const Formula& f, const T* strip, const T* strip_norms, bool far_strip,
                                  const T* panel, const T* panel_norms, std::int64_t features,
                                  Vec<T> (&sums)[kStrip][2]) {
  strip_by_panel<T, Term>(strip, panel, features, sums);
  if (f.function != Function::gaussian_of_product) return;
  const Vec<T> first = load_vector(panel_norms), second = load_vector(panel_norms + kWidth<T>);
#pragma GCC unroll 16
  for (int r = 0; r < kStrip; ++r) {
    sums[r][0] -= strip_norms[r] + first;
    sums[r][1] -= strip_norms[r] + second;
  }
  if (far_strip && any_far(f, panel_norms, kPanel<T>)) {
    Vec<T> in_memory[kStrip][2];  // those of other strips stay in registers
    std::memcpy(in_memory, sums, sizeof sums);
    replace_far_sums<T>(f, strip, strip_norms, panel, panel_norms, features, in_memory);
    std::memcpy(sums, in_memory, sizeof sums);
  }
}

template <class T> MAXMARGIN_INLINE void store_some(T* out, Vec<T> first, Vec<T> second, std::int64_t count) {
  if (count >= kPanel<T>) {
    store_vector(out, first);
    store_vector(out + kWidth<T>, second);
  } else {
    T values[kPanel<T>];
    store_vector(values, first);
    store_vector(values + kWidth<T>, second);
    std::memcpy(out, values, count * sizeof(T));
  }
}

// out[r][c] for the rows of strip s, from `first_row` on, and the columns of panel p.
template <class T, class Term>
MAXMARGIN_INLINE void write_strip(const Formula& f, const PackedSamples<T>& rows, const PackedSamples<T>& columns,
                                  std::int64_t features, std::int64_t s, std::int64_t p, std::int64_t first_row,
                                  T* const* out) {
  const std::int64_t at = p * kPanel<T>;
  const T* norms = rows.half_norms + s * kStrip;
  Vec<T> sums[kStrip][2];
  kernel_sums<T, Term>(f, rows.values + s * features * kStrip, norms, any_far(f, norms, kStrip),
                       columns.values + at * features, columns.half_norms + at, features, sums);
  for (int r = 0; r < kStrip && s * kStrip + r < rows.count; ++r) {
    if (s * kStrip + r < first_row) continue;
    store_some<T>(out[s * kStrip + r] + at, kernel_value<T>(f, sums[r][0]), kernel_value<T>(f, sums[r][1]),
                  columns.count - at);
  }
}

// out[r][c] for all rows and the columns of panels [first_panel, last_panel).
template <class T, class Term>
void dense_block(const Formula& f, const PackedSamples<T>& rows, const PackedSamples<T>& columns, std::int64_t features,
                 std::int64_t first_panel, std::int64_t last_panel, T* const* out) {
  // As many panels at a time as fit into the second-level cache; each row is then written from left to right.
  const std::int64_t fit = 300000 / (features * static_cast<std::int64_t>(sizeof(T)) * kPanel<T> + 1);
  const std::int64_t panels_at_once = fit > 1 ? fit : 1, strips = (rows.count + kStrip - 1) / kStrip;
  for (std::int64_t begin = first_panel; begin < last_panel; begin += panels_at_once) {
    const std::int64_t end = begin + panels_at_once < last_panel ? begin + panels_at_once : last_panel;
    for (std::int64_t s = 0; s < strips; ++s)
      for (std::int64_t p = begin; p < end; ++p) write_strip<T, Term>(f, rows, columns, features, s, p, 0, out);
  }
}

// The values of one row, which is sample `row` of the columns, with `Panels` panels from panel p on.
template <class T, class Term, int Panels>
MAXMARGIN_INLINE void write_row(const Formula& f, const PackedSamples<T>& columns, std::int64_t features,
                                std::int64_t row, std::int64_t p, T* out) {
  const T* x = columns.values + row / kPanel<T> * kPanel<T> * features + row % kPanel<T>;
  const T* panels = columns.values + p * kPanel<T> * features;
  Vec<T> sums[Panels][2] = {};
  for (std::int64_t k = 0; k < features; ++k) {
    const Vec<T> value = repeat<T>(x[k * kPanel<T>]);
#pragma GCC unroll 4
    for (int q = 0; q < Panels; ++q) {
      const T* panel = panels + (q * features + k) * kPanel<T>;
      sums[q][0] += Term::template term<Vec<T>>(value, load_vector(panel));
      sums[q][1] += Term::template term<Vec<T>>(value, load_vector(panel + kWidth<T>));
    }
  }
  const T* norm = columns.half_norms + row;
  const bool far = any_far(f, norm, 1);
#pragma GCC unroll 4
  for (int q = 0; q < Panels; ++q) {
    const T* norms = columns.half_norms + (p + q) * kPanel<T>;
    if (f.function == Function::gaussian_of_product)
      for (int half = 0; half < 2; ++half) sums[q][half] -= *norm + load_vector(norms + half * kWidth<T>);
    if (far) {
      Vec<T> in_memory[2] = {sums[q][0], sums[q][1]};
      replace_far_sums<T>(f, x, kPanel<T>, panels + q * features * kPanel<T>, norms, features, in_memory);
      std::memcpy(sums[q], in_memory, sizeof in_memory);
    }
    for (int half = 0; half < 2; ++half)
      store_vector(out + q * kPanel<T> + half * kWidth<T>, kernel_value<T>(f, sums[q][half]));
  }
}

// The kernel values of one row, which is sample `row` of the columns, with all columns of panels [first_panel,
// last_panel), padding included. Several panels at a time: a sum waits for the one before it.
template <class T, class Term>
void dense_row(const Formula& f, const PackedSamples<T>& columns, std::int64_t features, std::int64_t row,
               std::int64_t first_panel, std::int64_t last_panel, T* out) {
  constexpr int together = 4;
  std::int64_t p = first_panel;
  for (; p + together <= last_panel; p += together, out += together * kPanel<T>)
    write_row<T, Term, together>(f, columns, features, row, p, out);
  for (; p < last_panel; ++p, out += kPanel<T>) write_row<T, Term, 1>(f, columns, features, row, p, out);
}

// A block whose rows and columns are the same samples: out[r][c] with c in panels [first_panel, last_panel) from the
// diagonal downwards, and out[c][r], mirrored while the values are in the first-level cache.
template <class T, class Term>
void dense_square(const Formula& f, const PackedSamples<T>& rows, const PackedSamples<T>& columns,
                  std::int64_t features, std::int64_t first_panel, std::int64_t last_panel, T* const* out) {
  constexpr std::int64_t panels_at_once = 4, strips_at_once = 16;
  const std::int64_t strips = (rows.count + kStrip - 1) / kStrip;
  for (std::int64_t begin = first_panel; begin < last_panel; begin += panels_at_once) {
    const std::int64_t end = begin + panels_at_once < last_panel ? begin + panels_at_once : last_panel;
    const std::int64_t first = begin * kPanel<T>, last = end * kPanel<T> < rows.count ? end * kPanel<T> : rows.count;
    for (std::int64_t some = first / kStrip; some < strips; some += strips_at_once) {
      const std::int64_t stop = some + strips_at_once < strips ? some + strips_at_once : strips;
      for (std::int64_t s = some; s < stop; ++s)
        for (std::int64_t p = begin; p < end; ++p) write_strip<T, Term>(f, rows, columns, features, s, p, first, out);
      const std::int64_t below = some * kStrip > last ? some * kStrip : last;
      mirror<T>(out, below, stop * kStrip < rows.count ? stop * kStrip : rows.count, first, last);
    }
  }
}

// out[i] = k(x, x) for each of the samples, bit for bit the value of a block, with a sample in every lane.
template <class T, class Term>
void dense_diagonal(const Formula& f, const T* data, const std::int64_t* indices, std::int64_t count,
                    std::int64_t features, T* out) {
  for (std::int64_t at = 0; at < count; at += kWidth<T>) {
    const std::int64_t some = count - at < kWidth<T> ? count - at : kWidth<T>;
    const T* samples[kWidth<T>];
    for (int l = 0; l < kWidth<T>; ++l) samples[l] = data + indices[at + (l < some ? l : 0)] * features;
    Vec<T> sum{};
    for (std::int64_t k = 0; k < features; ++k) {
      Vec<T> x;
      for (int l = 0; l < kWidth<T>; ++l) x[l] = samples[l][k];
      sum += Term::template term<Vec<T>>(x, x);
    }
    const Vec<T> values = kernel_value<T>(f, f.function == Function::gaussian_of_product ? Vec<T>{} : sum);
    std::memcpy(out + at, &values, some * sizeof(T));
  }
}

template <class T> MAXMARGIN_INLINE double sum_of_lanes(Vec<T> v) {
  double lanes[kWidth<T>];
  for (int l = 0; l < kWidth<T>; ++l) lanes[l] = static_cast<double>(v[l]);
  for (int half = kWidth<T> / 2; half; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

// out[r] = Σ_c k(r, c) weights[c] for the rows of strips [first_strip, last_strip): no value is stored. `weights` is
// padded with zeros to whole panels. A few terms are summed in T, the rest in double.
template <class T, class Term>
void dense_combination(const Formula& f, const PackedSamples<T>& rows, const PackedSamples<T>& columns,
                       std::int64_t features, std::int64_t first_strip, std::int64_t last_strip, const T* weights,
                       double* out) {
  constexpr std::int64_t strips_at_once = 8, panels_at_once = 8;
  const std::int64_t panels = (columns.count + kPanel<T> - 1) / kPanel<T>;
  for (std::int64_t begin = first_strip; begin < last_strip; begin += strips_at_once) {
    const std::int64_t end = begin + strips_at_once < last_strip ? begin + strips_at_once : last_strip;
    double totals[strips_at_once][kStrip] = {};
    for (std::int64_t some = 0; some < panels; some += panels_at_once) {
      const std::int64_t stop = some + panels_at_once < panels ? some + panels_at_once : panels;
      for (std::int64_t s = begin; s < end; ++s) {
        Vec<T> parts[kStrip] = {};
        const T* norms = rows.half_norms + s * kStrip;
        const bool far = any_far(f, norms, kStrip);
        for (std::int64_t p = some; p < stop; ++p) {
          const std::int64_t at = p * kPanel<T>;
          const Vec<T> weights_first = load_vector(weights + at),
                       weights_second = load_vector(weights + at + kWidth<T>);
          Vec<T> sums[kStrip][2];
          kernel_sums<T, Term>(f, rows.values + s * features * kStrip, norms, far, columns.values + at * features,
                               columns.half_norms + at, features, sums);
          for (int r = 0; r < kStrip; ++r)
            parts[r] +=
                kernel_value<T>(f, sums[r][0]) * weights_first + kernel_value<T>(f, sums[r][1]) * weights_second;
        }
        for (int r = 0; r < kStrip; ++r) totals[s - begin][r] += sum_of_lanes<T>(parts[r]);
      }
    }
    for (std::int64_t s = begin; s < end; ++s)
      for (int r = 0; r < kStrip && s * kStrip + r < rows.count; ++r) out[s * kStrip + r] = totals[s - begin][r];
  }
}

// target[c] −= Σ_r factors[r] · rows[r][c] for Rows rows.
template <int Rows>
MAXMARGIN_INLINE void subtract_together(double* target, const float* const* rows, const double* factors,
                                        std::int64_t count) {
  constexpr int width = kWidth<double>;
  std::int64_t c = 0;
  for (; c + width <= count; c += width) {
    Vec<double> sum = load_vector(target + c);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) sum -= factors[r] * load_widened(rows[r] + c);
    store_vector(target + c, sum);
  }
  for (; c < count; ++c)
    for (int r = 0; r < Rows; ++r) target[c] -= factors[r] * static_cast<double>(rows[r][c]);
}

// gradient[c] −= Σ_k change[k] · rows[k][c] for c in [begin, end): float32 rows, float64 sums, always added up in the
// same order. `begin` is a multiple of the chunk.
inline void subtract_rows(double* gradient, const float* const* rows, const double* change, std::int64_t count,
                          std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t chunk = 1024;  // stays in the first-level cache
  constexpr int together = 8;
  for (std::int64_t at = begin; at < end; at += chunk) {
    const std::int64_t width = at + chunk < end ? chunk : end - at;
    const float* here[together];
    std::int64_t k = 0;
    for (; k + together <= count; k += together) {
      for (int r = 0; r < together; ++r) here[r] = rows[k + r] + at;
      subtract_together<together>(gradient + at, here, change + k, width);
    }
    for (; k < count; ++k) {
      here[0] = rows[k] + at;
      subtract_together<1>(gradient + at, here, change + k, width);
    }
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
