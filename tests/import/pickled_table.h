#pragma once

// Tables of pandas, pickled as BFTrainer's log is.

#include <cstdint>
#include <string>
#include <vector>

#include "import/plain_pickle.h"

namespace foretrace::pickled {

/// A class or a function.
inline std::string named(const std::string& module, const std::string& name) {
  return text(module) + text(name) + "\x93";
}

inline std::string raw(const std::string& value) { return "B" + bytes(value.size(), 4) + value; }

inline std::string tuple(const std::vector<std::string>& elements) {
  std::string out = "(";
  for (const std::string& element : elements) out += element;
  return out + "t";
}

/// The result of a call, or an object made of nothing, with its state.
inline std::string called(const std::string& callable, const std::string& arguments) {
  return callable + arguments + "R";
}
inline std::string object(const std::string& made, const std::string& state) {
  return made + ")\x81" + state + "b";
}

/// An array of numpy. `unit` is the last part of the state of its type.
inline std::string array(const std::vector<std::string>& shape, const std::string& type,
                         const std::string& content, const std::string& unit = "N") {
  const std::string dtype = called(named("numpy", "dtype"), tuple({text(type), "\x89", "\x88"})) +
                            tuple({number(3), text("|"), "N", "N", "N", unit}) + "b";
  return called(named("numpy.core.multiarray", "_reconstruct"),
                tuple({named("numpy", "ndarray"), tuple({number(0)}), raw("b")})) +
         tuple({number(1), tuple(shape), dtype, "\x89", content}) + "b";
}

/// Two nodes, c05n06 and n2, at these times in seconds; values node by node.
inline std::string node_table(const std::string& values = {1, 0, 0, 0, 0, 1},
                              const std::vector<std::int64_t>& seconds = {100, 130, 160}) {
  std::string ticks;
  for (const std::int64_t second : seconds)
    ticks += bytes(static_cast<std::uint64_t>(second * 1'000'000'000), 8);
  const std::string unit = tuple({"}", tuple({raw("ns"), number(1), number(1), number(1)})});
  const std::string times = object(named("pandas.core.arrays.datetimes", "DatetimeArray"),
                                   dict({{"_data", array({number(3)}, "M8", raw(ticks), unit)}}));
  const std::string axes = list(
      {called(
           named("pandas.core.indexes.base", "_new_Index"),
           tuple({named("pandas.core.indexes.base", "Index"),
                  dict({{"data", array({number(2)}, "O8", list({text("c05n06"), text("n2")}))}})})),
       called(named("pandas.core.indexes.datetimes", "_new_DatetimeIndex"),
              tuple({named("pandas.core.indexes.datetimes", "DatetimeIndex"),
                     dict({{"data", times}})}))});
  const std::string block = dict({{"values", array({number(2), number(3)}, "i1", raw(values))}});
  const std::string manager =
      object(named("pandas.core.internals.managers", "BlockManager"),
             tuple({axes, "]", "]",
                    dict({{"0.14.1", dict({{"axes", axes}, {"blocks", list({block})}})}})}));
  return file(object(named("pandas.core.frame", "DataFrame"), dict({{"_mgr", manager}})));
}

}  // namespace foretrace::pickled
