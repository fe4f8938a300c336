// What the binding files share: array types, argument checks, and the argument structs of more than one function.
//
// A struct holds references to NumPy arrays and scalars that belong together. Its constructor checks types and shapes;
// indices inside the arrays are checked by every call, because the arrays may change in between.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "instruction_sets.hpp"
#include "parallel.hpp"

namespace nb = nanobind;

namespace maxmargin {

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;  // of a type that is checked by hand
using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AnyTable = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

extern const Level level;  // the instruction set in use, chosen once at import

// ---- checks -----------------------------------------------------------------------------------------------------

inline void require(bool condition, const char* sentence) {
  if (!condition) throw std::invalid_argument(sentence);
}

template <class Array> std::int64_t length(const Array& array, int axis = 0) {
  return static_cast<std::int64_t>(array.shape(axis));
}

template <class... Arrays> void require_length(std::int64_t count, const char* sentence, const Arrays&... arrays) {
  require((... && (length(arrays) == count)), sentence);
}

// Whether an optional array is given and not empty.
template <class Array> bool given(const Array& array) { return array.is_valid() && array.shape(0) > 0; }

template <class T> bool has_type(const nb::dlpack::dtype& type) { return type == nb::dtype<T>(); }

template <class T, class Array> const T* as(const Array& array) { return static_cast<const T*>(array.data()); }

inline void require_within(const Vector<const std::int64_t>& indices, std::int64_t count) {
  const std::int64_t* p = indices.data();
  for (std::size_t k = 0; k < indices.shape(0); ++k)
    require(p[k] >= 0 && p[k] < count, "a sample index is out of range");
}

// The memory of the arrays of a call, of which no array that is written may overlap another.
class Memory {
 public:
  template <class Array> Memory& reads(const char* name, const Array& array) { return add(name, array, false); }
  template <class Array> Memory& writes(const char* name, const Array& array) { return add(name, array, true); }

  template <class... Arguments> Memory& of(const Arguments&... arguments) {
    (arguments.add_to(*this), ...);
    return *this;
  }

  void require_disjoint() const {
    for (int i = 0; i < count_; ++i)
      for (int j = 0; j < i; ++j) {
        const Range &a = ranges_[i], &b = ranges_[j];
        if ((a.written || b.written) && a.begin < b.end && b.begin < a.end)
          throw std::invalid_argument(std::string(b.name) + " and " + a.name +
                                      " share memory; an array that is written to must not overlap another one");
      }
  }

 private:
  struct Range {
    const char *name, *begin, *end;
    bool written;
  };

  template <class Array> Memory& add(const char* name, const Array& array, bool written) {
    if (!array.is_valid() || array.nbytes() == 0) return *this;
    if (count_ == kMostArrays) throw std::logic_error("a call has too many arrays");
    const char* begin = static_cast<const char*>(static_cast<const void*>(array.data()));
    ranges_[count_++] = {name, begin, begin + array.nbytes(), written};
    return *this;
  }

  static constexpr int kMostArrays = 32;
  Range ranges_[kMostArrays];
  int count_ = 0;
};

template <class T>
std::vector<T*> row_pointers(const Table<T>& storage, const Vector<const std::int64_t>& slots, std::int64_t columns) {
  require(length(storage, 1) >= columns, "the rows of the storage are too short");
  require_within(slots, length(storage));
  std::vector<T*> rows(slots.shape(0));
  for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = storage.data() + slots.data()[k] * length(storage, 1);
  return rows;
}

// ---- definitions ------------------------------------------------------------------------------------------------

// An array argument, which is never converted: a copy would be written to and lost.
inline auto exact(const char* name) { return nb::arg(name).noconvert(); }
inline auto optional(const char* name) { return nb::arg(name).noconvert().none() = nb::none(); }

// Define a struct of arguments with a constructor that takes keywords only.
template <class Struct, class... Fields, class... Names>
nb::class_<Struct> define_arguments(nb::module_& m, const char* name, Names... names) {
  return nb::class_<Struct>(m, name).def(
      "__init__",
      [](Struct* self, Fields... fields) {
        Struct value{std::move(fields)...};
        value.check();
        new (self) Struct(std::move(value));
      },
      nb::kw_only(), names...);
}

void define_arguments(nb::module_& m);
void define_kernels(nb::module_& m);
void define_rows(nb::module_& m);
void define_solvers(nb::module_& m);
void define_small_problems(nb::module_& m);
void define_row_products(nb::module_& m);
void define_linear(nb::module_& m);
void define_primal(nb::module_& m);
void define_passes(nb::module_& m);
void define_small_linear(nb::module_& m);
void define_extended(nb::module_& m);
void define_online(nb::module_& m);
void define_ranking(nb::module_& m);
void define_calibration(nb::module_& m);
void define_folds(nb::module_& m);
void define_removals(nb::module_& m);
void define_text(nb::module_& m);
void define_files(nb::module_& m);

// ---- arguments of several functions -----------------------------------------------------------------------------

// max linear·b − Σ kink_i |b_i| − ½ bᵀMb − ½ Σ ridge_i b_i²,  lower ≤ b ≤ upper,  Σ over each group of b fixed; the
// matrix M is elsewhere.
struct BoxProblem {
  Vector<const double> lower, upper;
  Vector<const std::int32_t> group;  // 0 … groups−1, or −1 for a variable in no group
  std::int32_t groups;
  Vector<const double> linear, ridge;  // may be absent where only the constraints matter
  Vector<const double> kink;           // absent or empty: none

  std::int64_t size() const { return length(lower); }

  void check() const {
    constexpr const char* sentence = "the arrays of a box problem must have one length";
    require_length(size(), sentence, upper, group);
    require((!linear.is_valid() || length(linear) == size()) && (!ridge.is_valid() || length(ridge) == size()),
            sentence);
    require(!given(kink) || length(kink) == size(), sentence);
    require(groups >= 0, "groups must not be negative");
  }

  void add_to(Memory& memory) const {
    memory.reads("lower", lower).reads("upper", upper).reads("group", group);
    memory.reads("linear", linear).reads("ridge", ridge).reads("kink", kink);
  }

  const double* kink_data() const { return given(kink) ? kink.data() : nullptr; }

  void require_objective() const { require(linear.is_valid() && ridge.is_valid(), "linear and ridge must be given"); }

  // Check the group of every variable; returns how many are in no group.
  std::int64_t count_singles() const {
    std::int64_t singles = 0;
    for (std::int64_t k = 0; k < size(); ++k) {
      require(group.data()[k] >= -1 && group.data()[k] < groups, "a group is out of range");
      singles += group.data()[k] < 0;
    }
    return singles;
  }
};

// Matrix rows in float32 or float64, cached in the slots of a storage.
struct CachedRows {
  AnyTable storage;
  Vector<const std::int64_t> slot;  // of each variable's row, −1 if it is not cached
  Vector<std::int64_t> last_use;    // of each slot
  std::int64_t clock;
  Vector<const std::int64_t> valid;  // how many leading values of each slot are valid; absent: all

  void check() const {
    require(has_type<float>(storage.dtype()) || has_type<double>(storage.dtype()),
            "cached rows must be float32 or float64");
    require(length(storage, 1) >= length(slot) && length(last_use) == length(storage) &&
                (!valid.is_valid() || length(valid) == length(storage)),
            "the row cache is malformed");
  }

  void add_to(Memory& memory) const {
    memory.reads("storage", storage).reads("slot", slot).reads("valid", valid).writes("last_use", last_use);
  }

  void check_slots() const {
    for (std::int64_t k = 0; k < length(slot); ++k)
      require(slot.data()[k] >= -1 && slot.data()[k] < length(storage), "a slot is out of range");
    if (valid.is_valid())
      for (std::int64_t k = 0; k < length(valid); ++k)
        require(valid.data()[k] <= length(storage, 1), "the row cache is malformed");
  }
};

// When steps end: at a violation within the tolerance, after a number of steps, or after a time.
struct StepLimits {
  double tolerance;
  std::int64_t max_steps;
  double max_seconds;
  int threads;

  void check() const { require(threads >= 1, "threads must be at least 1"); }
};

}  // namespace maxmargin
