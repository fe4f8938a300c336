// The linear equations of the free variables, solved as far as the box lets them (Bottou & Lin 1.4.2).
//
// The free variables of a group keep its sum by moving against one of them, its anchor: along z_k = e_k − e_anchor, or
// z_k = e_k in no group. Their equations are ZᵀHZ c = Zᵀg. With pivots, Cholesky finds as many of them as do not depend
// on one another, the movers, and RᵀR = ZᵀHZ of the movers is kept as they come and go (Gill, Golub, Murray & Saunders
// 1974):
//
//   spend    a variable that depends on the movers goes with them along a direction without curvature, uphill, until it
//   or
//            a mover has reached the box (in the latter case it may take the mover's place) or nothing is left to gain
//   solve    the movers go to the solution of their equations; where one reaches the box, it stays there, and again
//
// Each of these takes operations in proportion to the square of how many movers there are; nothing is factorised anew.
#pragma once

#include <cmath>
#include <cstdint>

#include "loops.hpp"
#include "pairwise.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

class FreeEquations {
 public:
  FreeEquations(const FreeTask& task) : t_(task), n_(task.count) {}

  // Returns how many multiplications it took.
  double solve() {
    if (!factorise()) return work_;
    for (bool refined = false; work_ < t_.most_work;) {
      while (others_ > 0 && work_ < t_.most_work)
        if (!spend(t_.others[others_ - 1])) return work_;
      const bool reached = approach();
      if (reached && lost_)
        look_again();
      else if (reached && refined)
        break;
      refined = reached;
    }
    return work_;
  }

 private:
  bool grouped(std::int64_t k) const { return t_.group[k] >= 0; }
  std::int64_t anchor_of(std::int64_t k) const { return grouped(k) ? t_.anchor[t_.group[k]] : -1; }
  double reduced(const double* values, std::int64_t k) const {
    const std::int64_t a = anchor_of(k);
    return a < 0 ? values[k] : values[k] - values[a];
  }

  // H z_k, everywhere.
  void find_image(std::int64_t k, double* image) const {
    const double* row = t_.block + k * n_;
    const std::int64_t a = anchor_of(k);
    if (a < 0) {
      for (std::int64_t i = 0; i < n_; ++i) image[i] = row[i];
      return;
    }
    const double* against = t_.block + a * n_;
    for (std::int64_t i = 0; i < n_; ++i) image[i] = row[i] - against[i];
  }

  // False: that would be too much work. The first variable of each group is its anchor. Row r of the triangle is built
  // for all unknowns, by their number, and then holds those of the movers, by their place.
  bool factorise() {
    for (std::int64_t k = n_ - 1; k >= 0; --k)
      if (grouped(k)) t_.anchor[t_.group[k]] = k;
    double largest = 0.0;
    for (std::int64_t k = 0; k < n_; ++k) {
      const std::int64_t a = anchor_of(k);
      t_.right[k] = 0.0;
      if (a == k) continue;
      t_.others[others_++] = k;
      const double* row = t_.block + k * n_;
      t_.right[k] = a < 0 ? row[k] : row[k] - 2.0 * row[a] + t_.block[a * n_ + a];
      largest = larger(largest, t_.right[k]);
    }
    smallest_ = t_.accuracy * largest;
    while (others_ > 0) {
      std::int64_t best = 0;
      for (std::int64_t o = 1; o < others_; ++o)
        if (t_.right[t_.others[o]] > t_.right[t_.others[best]]) best = o;
      const std::int64_t p = t_.others[best];
      const double pivot = t_.right[p];
      if (!(pivot > smallest_)) break;
      if ((work_ += static_cast<double>(movers_) * n_) > t_.most_work) return false;
      double* row = t_.triangle + movers_ * n_;
      find_image(p, t_.image);
      for (std::int64_t k = 0; k < n_; ++k) row[k] = reduced(t_.image, k);
      for (std::int64_t r = 0; r < movers_; ++r) add_row(row, t_.triangle + r * n_, -t_.triangle[r * n_ + p], n_);
      const double scale = 1.0 / std::sqrt(pivot);
      for (std::int64_t k = 0; k < n_; ++k) row[k] *= scale;
      for (std::int64_t k = 0; k < n_; ++k) t_.right[k] -= row[k] * row[k];
      t_.movers[movers_++] = p;
      t_.others[best] = t_.others[--others_];
    }
    for (std::int64_t r = 0; r < movers_; ++r) {
      double* row = t_.triangle + r * n_;
      for (std::int64_t c = r; c < movers_; ++c) t_.image[c] = row[t_.movers[c]];
      for (std::int64_t c = r; c < movers_; ++c) row[c] = t_.image[c];
    }
    return true;
  }

  // x = R⁻ᵀ x, and x = R⁻¹ x.
  void solve_forward(double* x) const {
    for (std::int64_t r = 0; r < movers_; ++r) {
      const double* row = t_.triangle + r * n_;
      x[r] /= row[r];
      add_row(x + r + 1, row + r + 1, -x[r], movers_ - r - 1);
    }
  }
  void solve_backward(double* x) const {
    for (std::int64_t r = movers_ - 1; r >= 0; --r) {
      const double* row = t_.triangle + r * n_;
      x[r] = (x[r] - dot(row + r + 1, x + r + 1, movers_ - r - 1)) / row[r];
    }
  }

  // Let the last of the others move: as one more mover, or along a direction without curvature. False: there is no
  // limit.
  bool spend(std::int64_t k) {
    for (;;) {
      if (grouped(k) && t_.anchor[t_.group[k]] < 0) t_.anchor[t_.group[k]] = k;  // the last one of its group stays
      if (anchor_of(k) == k) break;
      find_image(k, t_.image);
      double* column = t_.right;
      for (std::int64_t r = 0; r < movers_; ++r) column[r] = reduced(t_.image, t_.movers[r]);
      solve_forward(column);
      const double pivot = reduced(t_.image, k) - dot(column, column, movers_);
      if (pivot > smallest_) {
        for (std::int64_t r = 0; r < movers_; ++r) t_.triangle[r * n_ + movers_] = column[r];
        t_.triangle[movers_ * n_ + movers_] = std::sqrt(pivot);
        t_.movers[movers_++] = k;
        break;
      }
      solve_backward(column);
      double slope = reduced(t_.gradient, k), noise = std::fabs(slope);
      for (std::int64_t r = 0; r < movers_; ++r) {
        const double part = column[r] * reduced(t_.gradient, t_.movers[r]);
        slope -= part;
        noise += std::fabs(part);
      }
      if (std::fabs(slope) <= t_.accuracy * noise) return set_aside(k);
      const double uphill = slope > 0.0 ? 1.0 : -1.0;
      for (std::int64_t i = 0; i < n_; ++i) t_.direction[i] = 0.0;
      for (std::int64_t r = 0; r < movers_; ++r) push(t_.movers[r], -uphill * column[r]);
      push(k, uphill);
      find_change();
      const double bend = dot(t_.direction, t_.image, n_);
      const double step = take(bend > 0.0 ? std::fabs(slope) / bend : kInfinity);
      if (std::isinf(step)) return false;
      if (!blocked_) return set_aside(k);
      const bool stays = is_blocked(k);
      drop_blocked();
      if (stays) break;
    }
    --others_;
    return true;
  }

  // Nothing more is to be gained by this variable, as long as the movers are the same.
  bool set_aside(std::int64_t k) {
    --others_;
    t_.others[n_ - ++aside_] = k;
    return true;
  }

  void look_again() {
    for (; aside_ > 0; --aside_) t_.others[others_++] = t_.others[n_ - aside_];
    lost_ = false;
  }

  // Move towards the solution of the movers' equations. True: it is reached.
  bool approach() {
    if (!movers_) return true;
    for (std::int64_t r = 0; r < movers_; ++r) t_.right[r] = reduced(t_.gradient, t_.movers[r]);
    solve_forward(t_.right);
    solve_backward(t_.right);
    for (std::int64_t i = 0; i < n_; ++i) t_.direction[i] = 0.0;
    for (std::int64_t r = 0; r < movers_; ++r) push(t_.movers[r], t_.right[r]);
    find_change();
    take(1.0);
    const bool reached = !blocked_;
    drop_blocked();
    return reached;
  }

  void push(std::int64_t k, double much) const {
    const std::int64_t a = anchor_of(k);
    t_.direction[k] += much;
    if (a >= 0) t_.direction[a] -= much;
  }

  // image = H direction
  void find_change() {
    for (std::int64_t i = 0; i < n_; ++i) t_.image[i] = 0.0;
    for (std::int64_t i = 0; i < n_; ++i)
      if (t_.direction[i] != 0.0) add_row(t_.image, t_.block + i * n_, t_.direction[i], n_);
    work_ += static_cast<double>(movers_ + 1) * (movers_ + n_);
  }

  bool is_blocked(std::int64_t k) const { return t_.dual[k] <= t_.lower[k] || t_.dual[k] >= t_.upper[k]; }

  double room(std::int64_t i) const {
    const double d = t_.direction[i];
    return ((d > 0.0 ? t_.upper[i] : t_.lower[i]) - t_.dual[i]) / d;
  }

  // Go along the direction up to the limit or the box; whoever stops at the box is exactly there. Returns how far.
  double take(double limit) {
    double step = limit;
    for (std::int64_t i = 0; i < n_; ++i)
      if (t_.direction[i] != 0.0) step = smaller(step, room(i));
    blocked_ = false;
    if (std::isinf(step)) return step;
    for (std::int64_t i = 0; i < n_; ++i) {
      const double d = t_.direction[i];
      if (d == 0.0) continue;
      const bool stops = room(i) <= step;
      t_.dual[i] = stops ? (d > 0.0 ? t_.upper[i] : t_.lower[i]) : t_.dual[i] + step * d;
      blocked_ |= is_blocked(i);
    }
    add_row(t_.gradient, t_.image, -step, n_);
    return step;
  }

  // Those at the box stay there.
  void drop_blocked() {
    if (!blocked_) return;
    lost_ = aside_ > 0;
    for (std::int64_t r = movers_ - 1; r >= 0; --r)
      if (is_blocked(t_.movers[r])) drop(r);
    for (std::int32_t g = 0; g < t_.groups; ++g)
      if (t_.anchor[g] >= 0 && is_blocked(t_.anchor[g])) hand_over(g);
  }

  // The anchor's first follower a takes its place: z_k becomes z_k − z_a.
  void hand_over(std::int32_t g) {
    std::int64_t first = 0;
    while (first < movers_ && t_.group[t_.movers[first]] != g) ++first;
    if (first == movers_) {
      t_.anchor[g] = -1;
      return;
    }
    t_.anchor[g] = t_.movers[first];
    for (std::int64_t c = first + 1; c < movers_; ++c)
      if (t_.group[t_.movers[c]] == g)
        for (std::int64_t r = 0; r <= first; ++r) t_.triangle[r * n_ + c] -= t_.triangle[r * n_ + first];
    drop(first);
  }

  // Delete a column; plane rotations make a triangle again.
  void drop(std::int64_t place) {
    for (std::int64_t r = 0; r < movers_; ++r) {
      double* row = t_.triangle + r * n_;
      for (std::int64_t c = r > place ? r : place + 1; c < movers_; ++c) row[c - 1] = row[c];
    }
    --movers_;
    for (std::int64_t r = place; r < movers_; ++r) t_.movers[r] = t_.movers[r + 1];
    for (std::int64_t r = place; r < movers_; ++r) {
      double* upper = t_.triangle + r * n_;
      double* lower = upper + n_;
      const double length = std::sqrt(upper[r] * upper[r] + lower[r] * lower[r]);
      const double c = upper[r] / length, s = lower[r] / length;
      for (std::int64_t k = r; k < movers_; ++k) {
        const double a = upper[k], b = lower[k];
        upper[k] = c * a + s * b;
        lower[k] = c * b - s * a;
      }
    }
  }

  // In eight parts, whatever the instruction set: the sum is the same on all of them.
  static double dot(const double* a, const double* b, std::int64_t count) {
    double parts[8] = {}, sum = 0.0;
    std::int64_t k = 0;
    for (; k + 8 <= count; k += 8)
      for (int l = 0; l < 8; ++l) parts[l] += a[k + l] * b[k + l];
    for (; k < count; ++k) sum += a[k] * b[k];
    for (int l = 0; l < 8; ++l) sum += parts[l];
    return sum;
  }

  const FreeTask& t_;
  const std::int64_t n_;
  std::int64_t movers_ = 0, others_ = 0;  // how many
  std::int64_t aside_ = 0;                // how many more of the others are free; they are at the end of their list
  double smallest_ = 0.0, work_ = 0.0;
  bool blocked_ = false;  // whether the last step has reached the box
  bool lost_ = false;     // whether there are fewer movers since a variable was set aside
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
