// Bindings of files that are mapped into memory, where the system has such.
#include "bindings.hpp"

#ifndef _WIN32
#include "mapped_file.hpp"
#endif

namespace maxmargin {

void define_files([[maybe_unused]] nb::module_& m) {
#ifndef _WIN32
  nb::class_<MappedFile>(m, "MappedFile")
      .def(nb::init<int, std::size_t>(), nb::arg("descriptor"), nb::arg("size"))
      .def_prop_ro("lost", &MappedFile::lost)
      .def(
          "bytes",
          [](nb::object self, std::size_t first, std::size_t count) {
            const MappedFile& file = nb::cast<const MappedFile&>(self);
            require(first <= file.size() && count <= file.size() - first, "the range is outside of the file");
            return nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(file.data() + first, {count}, self);
          },
          nb::arg("first"), nb::arg("count"));
#endif
}

}  // namespace maxmargin
