// What a sample answers to its slack z: response(z) = argmax over [lower, upper] of βz − ½ ridge β², and sums over
// samples.
#pragma once

#include <cstdint>

#include "linear_rows.hpp"
#include "loops.hpp"
#include "vectors.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// One sample, or several side by side.
template <class V> MAXMARGIN_INLINE V clipped(V value, V lower, V upper) {
  const V above = value < lower ? lower : value;
  return above > upper ? upper : above;
}

template <class V> struct SumsOf {
  V loss{}, linear{}, ridge{}, size{};
};

// For the slack z: the response to z + σ c with ridge + σ > 0, and sums: the loss of z itself, and what the dual value
// of the responses takes. A ridge of 0 makes the wish infinite, whose loss has no ridge.
template <class V>
MAXMARGIN_INLINE V answer_to(V z, V rounded, V linear, V lower, V upper, V ridge, double sigma, SumsOf<V>& sums) {
  V wish = z / ridge;
  wish = clipped<V>(wish == wish ? wish : V{}, lower, upper);  // 0/0
  const V answer = sigma == 0.0 ? wish : clipped<V>(rounded / (ridge + sigma), lower, upper);
  const V curved = ridge > 0 ? V(0.5 * ridge * wish * wish) : V{}, loss = wish * z - curved;
  sums.loss += z == 0 ? V{} : loss;
  sums.linear += linear * answer;
  sums.ridge += ridge * answer * answer;
  sums.size += answer < 0 ? V(-answer) : answer;
  return answer;
}

// For samples [begin, end): the slack z = linear − image − ρ, the rounded slack z + σ c, the response to it, and the
// sums.
static void respond(const Rounded& r, const double* image, std::int64_t begin, std::int64_t end, SlackSums& sums,
                    double* group_sums) {
  constexpr int step = kWidth<double>;
  const auto offset = [&](std::int64_t k) { return r.group && r.group[k] >= 0 ? r.offset[r.group[k]] : 0.0; };
  SumsOf<Vec<double>> several;
  SumsOf<double> single;
  std::int64_t k = begin;
  for (; k + step <= end; k += step) {
    Vec<double> offsets{};
    if (r.group)
      for (int l = 0; l < step; ++l) offsets[l] = offset(k + l);
    const Vec<double> linear = load_vector(r.linear + k), z = linear - load_vector(image + k) - offsets;
    const Vec<double> rounded = z + r.sigma * load_vector(r.centre + k);
    store_vector(r.slack + k, rounded);
    store_vector(r.response + k,
                 answer_to<Vec<double>>(z, rounded, linear, load_vector(r.lower + k), load_vector(r.upper + k),
                                        load_vector(r.ridge + k), r.sigma, several));
  }
  for (; k < end; ++k) {
    const double z = r.linear[k] - image[k] - offset(k), rounded = z + r.sigma * r.centre[k];
    r.slack[k] = rounded;
    r.response[k] = answer_to<double>(z, rounded, r.linear[k], r.lower[k], r.upper[k], r.ridge[k], r.sigma, single);
  }
  if (r.group)
    for (k = begin; k < end; ++k)
      if (r.group[k] >= 0) group_sums[r.group[k]] += r.response[k];
  sums.loss += sum_of(several.loss) + single.loss;
  sums.linear += sum_of(several.linear) + single.linear;
  sums.ridge += sum_of(several.ridge) + single.ridge;
  sums.size += sum_of(several.size) + single.size;
}

// The same at weights w, and a shift that all images have: computes the images too, and adds the rows times their
// responses to `own`. Rows are taken a few at a time, so that they are still at hand the second time.
template <class Rows>
void respond_rows(const Rows& rows, const std::int64_t* picks, const Rounded& r, const double* w, double shift,
                  double* image, double* own, std::int64_t begin, std::int64_t end, SlackSums& sums,
                  double* group_sums) {
  constexpr std::int64_t kFew = 64;
  for (std::int64_t first = begin; first < end; first += kFew) {
    const std::int64_t last = first + kFew < end ? first + kFew : end;
    decisions(rows, picks, first, last, w, image);
    for (std::int64_t k = first; k < last; ++k) image[k] += shift;
    respond(r, image, first, last, sums, group_sums);
    combine_rows(rows, picks, first, last, r.response, own);
  }
}

// Σ conjugate(z): the loss of samples with the slacks z.
static double loss(const SlackArrays& s, std::int64_t begin, std::int64_t end) {
  constexpr int step = kWidth<double>;
  SumsOf<Vec<double>> several;
  SumsOf<double> single;
  std::int64_t k = begin;
  for (; k + step <= end; k += step) {
    const Vec<double> z = load_vector(s.slack + k);
    answer_to<Vec<double>>(z, z, z, load_vector(s.lower + k), load_vector(s.upper + k), load_vector(s.ridge + k), 0.0,
                           several);
  }
  for (; k < end; ++k) answer_to<double>(s.slack[k], s.slack[k], 0.0, s.lower[k], s.upper[k], s.ridge[k], 0.0, single);
  return sum_of(several.loss) + single.loss;
}

// response(z − t d) d, and d²/ridge where it lies strictly between its bounds. A ridge of 0
// makes the wish infinite, and the response the bound on the slack's side.
template <class V> MAXMARGIN_INLINE void add_slope(V slack, V lower, V upper, V ridge, V d, double t, V& sum, V& bend) {
  const V z = slack - t * d;
  V wish = z / ridge;
  wish = wish == wish ? wish : V{};  // 0/0
  const V answer = clipped<V>(wish, lower, upper);
  sum += answer * d;
  bend += ((answer == wish) & (ridge > 0)) ? d * d / ridge : V{};
}

// Σ response(z − t d) d and Σ over those strictly between their bounds of d²/ridge: the slope of the loss along d and
// how it bends.
static Slope slope(const SlackArrays& s, const double* direction, double t, std::int64_t begin, std::int64_t end) {
  constexpr int step = kWidth<double>;
  Vec<double> sums{}, bends{};
  const Vec<double> ones = repeat(1.0);
  std::int64_t k = begin;
  for (; k + step <= end; k += step)
    add_slope<Vec<double>>(load_vector(s.slack + k), load_vector(s.lower + k), load_vector(s.upper + k),
                           load_vector(s.ridge + k), direction ? load_vector(direction + k) : ones, t, sums, bends);
  Slope out;
  out.sum = sum_of(sums), out.bend = sum_of(bends);
  for (; k < end; ++k)
    add_slope<double>(s.slack[k], s.lower[k], s.upper[k], s.ridge[k], direction ? direction[k] : 1.0, t, out.sum,
                      out.bend);
  return out;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
