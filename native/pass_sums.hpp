// Sums over the samples of a block, from which a pass over blocks takes loss, gradient and dual value.
#pragma once

#include <cmath>
#include <cstdint>

#include "linear_loops.hpp"
#include "responses.hpp"
#include "row_products.hpp"
#include "simd.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// V is a number, or a vector of them for several samples.
template <class V> MAXMARGIN_INLINE V magnitude(V value) { return value < 0 ? V(-value) : value; }

// What exceeds the kink of a slack, with its sign.
template <class V> MAXMARGIN_INLINE V beyond_kink(V slack, V kink) {
  const V size = magnitude(slack);
  return size <= kink ? V{} : slack - (slack < 0 ? V(-kink) : kink);
}

template <class V> MAXMARGIN_INLINE V exact_response(V beyond, V lower, V upper, V ridge) {
  const V unclipped = beyond / ridge;
  return clipped<V>(unclipped == unclipped ? unclipped : V{}, lower, upper);  // 0/0
}

// The loss of a slack: the maximum over β of βz − kink |β| − ½ ridge β².
template <class V> MAXMARGIN_INLINE V conjugate_of(V slack, V lower, V upper, V ridge, V kink) {
  const V beyond = beyond_kink<V>(slack, kink), beta = exact_response<V>(beyond, lower, upper, ridge);
  const V loss = beta * beyond - (ridge > 0 ? V(0.5 * ridge * beta * beta) : V{});
  return beyond == 0 ? V{} : loss;
}

template <class V> struct PassSumsOf {
  V loss{}, slack_square{}, linear[2]{}, ridge[2]{}, total[2]{}, size{};
};

// The response to a slack, smoothed with σ around c; adds to the sums. The loss is the largest of slacks within `error`
// and a few roundings of the numbers that the slack is computed from.
template <class V>
MAXMARGIN_INLINE V sum_sample(V z, V linear, V lower, V upper, V ridge, V kink, V centre, double sigma, double error,
                              PassSumsOf<V>& sums) {
  const V off = error + kSlackRoundings * (magnitude(z) + magnitude(linear));
  const V above = conjugate_of<V>(z + off, lower, upper, ridge, kink);
  const V below = conjugate_of<V>(z - off, lower, upper, ridge, kink);
  const V beyond = beyond_kink<V>(sigma == 0.0 ? z : V(z + sigma * centre), kink);
  const V response = sigma == 0.0 ? exact_response<V>(beyond, lower, upper, ridge)
                                  : clipped<V>(beyond / (ridge + sigma), lower, upper);
  sums.loss += above > below ? above : below;
  sums.slack_square += z * z;
  const V parts[2] = {response > 0 ? response : V{}, response < 0 ? response : V{}};
  for (int sign = 0; sign < 2; ++sign) {
    sums.linear[sign] += linear * parts[sign] - kink * magnitude(parts[sign]);
    sums.ridge[sign] += ridge * parts[sign] * parts[sign];
    sums.total[sign] += parts[sign];
  }
  sums.size += (magnitude(linear) + kink + 1.0) * magnitude(response);
  return response;
}

MAXMARGIN_INLINE void add_sums(const PassSumsOf<Vec<double>>& several, const PassSumsOf<double>& single,
                               PassTotals& out) {
  out.loss += sum_of(several.loss) + single.loss;
  out.slack_square += sum_of(several.slack_square) + single.slack_square;
  out.size += sum_of(several.size) + single.size;
  for (int sign = 0; sign < 2; ++sign) {
    out.linear[sign] += sum_of(several.linear[sign]) + single.linear[sign];
    out.ridge[sign] += sum_of(several.ridge[sign]) + single.ridge[sign];
    out.total[sign] += sum_of(several.total[sign]) + single.total[sign];
  }
}

constexpr std::int64_t kPassRows = 64;          // that are in the first cache for both of their products
constexpr std::int64_t kRequestedBytes = 4096;  // of a row
constexpr int kRowsAtOnce = 4;                  // dense rows that share the loads of weights

// out[r] = row r of a panel · w, and w += Σ_r b_r row r over some rows of a panel. `at` has the rows of the data.
template <class Rows>
MAXMARGIN_INLINE void dot_panel(const Rows& rows, const std::int64_t* at, std::int64_t count, const double* w,
                                double* out) {
  for (std::int64_t r = 0; r < count; ++r) {
    if (r + 1 < count) prefetch_weights(rows, at[r + 1], w);
    out[r] = dot(rows, at[r], w);
  }
}

template <class Rows>
MAXMARGIN_INLINE void add_panel(const Rows& rows, const std::int64_t* at, std::int64_t count, const double* b,
                                double* w) {
  for (std::int64_t r = 0; r < count; ++r) {
    if (r + 1 < count) prefetch_weights(rows, at[r + 1], w);
    add(rows, at[r], b[r], w);
  }
}

template <class T>
MAXMARGIN_INLINE void dot_panel(const DenseRows<T>& rows, const std::int64_t* at, std::int64_t count, const double* w,
                                double* out) {
  constexpr int step = kWidth<double>;
  std::int64_t r = 0;
  for (; r + kRowsAtOnce <= count; r += kRowsAtOnce) {
    const T* x[kRowsAtOnce];
    for (int q = 0; q < kRowsAtOnce; ++q) x[q] = rows.values + at[r + q] * rows.width;
    Vec<double> sums[kRowsAtOnce] = {};
    std::int64_t k = 0;
    for (; k + step <= rows.width; k += step) {
      const Vec<double> weights = load_vector(w + k);
      for (int q = 0; q < kRowsAtOnce; ++q) sums[q] += load_double(x[q] + k) * weights;
    }
    for (int q = 0; q < kRowsAtOnce; ++q) {
      double sum = sum_of(sums[q]);
      for (std::int64_t j = k; j < rows.width; ++j) sum += static_cast<double>(x[q][j]) * w[j];
      out[r + q] = sum;
    }
  }
  for (; r < count; ++r) out[r] = dot(rows, at[r], w);
}

template <class T>
MAXMARGIN_INLINE void add_panel(const DenseRows<T>& rows, const std::int64_t* at, std::int64_t count, const double* b,
                                double* w) {
  constexpr int step = kWidth<double>;
  std::int64_t r = 0;
  for (; r + kRowsAtOnce <= count; r += kRowsAtOnce) {
    const T* x[kRowsAtOnce];
    for (int q = 0; q < kRowsAtOnce; ++q) x[q] = rows.values + at[r + q] * rows.width;
    std::int64_t k = 0;
    for (; k + step <= rows.width; k += step) {
      Vec<double> sum = load_vector(w + k);
      for (int q = 0; q < kRowsAtOnce; ++q) sum += b[r + q] * load_double(x[q] + k);
      store_vector(w + k, sum);
    }
    for (; k < rows.width; ++k)
      for (int q = 0; q < kRowsAtOnce; ++q) w[k] += b[r + q] * static_cast<double>(x[q][k]);
  }
  for (; r < count; ++r) add(rows, at[r], b[r], w);
}

// Dense rows of the next panel are requested from memory while this one is processed: hardware loads ahead only while
// rows are read one after another.
template <class Rows> MAXMARGIN_INLINE void request(const Rows&, std::int64_t) {}
template <class T> MAXMARGIN_INLINE void request(const DenseRows<T>& rows, std::int64_t row) {
  const char* x = reinterpret_cast<const char*>(rows.values + row * rows.width);
  const std::int64_t bytes = rows.width * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t at = 0; at < bytes && at < kRequestedBytes; at += 64) __builtin_prefetch(x + at, 0, 2);
}

// The numbers of some samples, one after another, and their slacks.
struct PassPanel {
  std::int64_t rows[kPassRows];
  double linear[kPassRows], lower[kPassRows], upper[kPassRows], ridge[kPassRows], kink[kPassRows], centre[kPassRows],
      slack[kPassRows];
};

// Samples [first, first + count) of a block.
MAXMARGIN_INLINE void fill_panel(const PassProblem& p, const std::int64_t* indices, std::int64_t first,
                                 std::int64_t count, PassPanel& at) {
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t k = first + r, kind = p.kinds ? p.kinds[k] : k;
    at.rows[r] = indices ? indices[k] : k;
    at.linear[r] = p.linear[kind];
    at.lower[r] = p.lower[kind];
    at.upper[r] = p.upper[kind];
    at.ridge[r] = p.ridge[kind];
    at.kink[r] = p.kink ? p.kink[kind] : 0.0;
    at.centre[r] = p.centre ? static_cast<double>(p.centre[k]) : 0.0;
  }
}

// Add the rows of a panel times their responses to `weights`: positive responses first, then negative ones.
template <class Rows>
MAXMARGIN_INLINE void add_responses(const Rows& rows, const PassPanel& at, const double* response, std::int64_t count,
                                    double* weights) {
  std::int64_t chosen[kPassRows];
  double factors[kPassRows];
  for (int sign = 0; sign < 2; ++sign) {
    std::int64_t found = 0;
    for (std::int64_t r = 0; r < count; ++r) {  // without branches, which nothing could predict
      chosen[found] = at.rows[r];
      factors[found] = response[r];
      found += sign ? response[r] < 0.0 : response[r] > 0.0;
    }
    add_panel(rows, chosen, found, factors, weights + sign * rows.width);
  }
}

// Samples [begin, end), a panel at a time: slacks, responses, whether they are off their bounds and kinks, and the
// sums. Rows times responses are added to `weights`, those of positive ones first.
template <class Rows>
void sum_pass(const Rows& rows, const std::int64_t* indices, const PassProblem& p, const double* w, std::int64_t begin,
              std::int64_t end, PassTotals& out, double* weights) {
  constexpr int step = kWidth<double>;
  PassPanel at;
  PassSumsOf<Vec<double>> several;
  PassSumsOf<double> single;
  for (std::int64_t first = begin; first < end; first += kPassRows) {
    const std::int64_t count = end - first < kPassRows ? end - first : kPassRows;
    fill_panel(p, indices, first, count, at);
    dot_panel(rows, at.rows, count, w, at.slack);
    for (std::int64_t r = 0; r < count; ++r) at.slack[r] = at.linear[r] - (at.slack[r] + p.shift) - p.offset;
    double* response = p.response + first;
    std::int64_t r = 0;
    for (; r + step <= count; r += step)
      store_vector(response + r, sum_sample<Vec<double>>(load_vector(at.slack + r), load_vector(at.linear + r),
                                                         load_vector(at.lower + r), load_vector(at.upper + r),
                                                         load_vector(at.ridge + r), load_vector(at.kink + r),
                                                         load_vector(at.centre + r), p.sigma, p.slack_error, several));
    for (; r < count; ++r)
      response[r] = sum_sample<double>(at.slack[r], at.linear[r], at.lower[r], at.upper[r], at.ridge[r], at.kink[r],
                                       at.centre[r], p.sigma, p.slack_error, single);
    for (r = 0; r < count; ++r) {
      if (first + kPassRows + r < end) request(rows, indices ? indices[first + kPassRows + r] : first + kPassRows + r);
      const double b = response[r];
      const bool free = (b > at.lower[r]) & (b < at.upper[r]) & (!p.kink | (b != 0.0));
      p.free[first + r] = free;
      out.free += free;
    }
    add_responses(rows, at, response, count, weights);
  }
  add_sums(several, single, out);
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
